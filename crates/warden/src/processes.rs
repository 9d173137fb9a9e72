//! Commands in the background, with a log.

#[derive(Debug, Default)]
pub(crate) struct Processes {}
