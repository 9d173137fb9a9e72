//! Shells that live on.

#[derive(Debug, Default)]
pub(crate) struct Sessions {}
