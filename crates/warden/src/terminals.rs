//! Commands on terminals that people and agents can attach to.

#[derive(Debug, Default)]
pub(crate) struct Terminals {}
