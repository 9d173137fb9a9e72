//! Wardens: starting them, asking them, finding them again, and cleaning up after those that died.
//!
//! | file | what is in it |
//! |---|---|
//! | [`call`] | asking a warden, without a thread for each question |
//! | [`launch`] | from a description to a warden that answers |
//! | [`end`] | noticing that one has gone, and removing what it held |

pub mod call;
pub mod end;
pub mod launch;
