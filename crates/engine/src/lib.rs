//! What exists and what can be done with it: the one API that everything in front of it speaks to.
//!
//! | module | what is in it |
//! |---|---|
//! | [`problem`] | why something could not be done |
//! | [`id`] | names of things |
//! | [`store`] | records, in SQLite |
//! | [`codebases`] | stored files: versions, uploads, listings |
//! | [`wardens`] | the processes that own sandboxes: starting, asking, cleaning up after them |

pub mod codebases;
pub mod id;
pub mod problem;
pub mod store;
pub mod wardens;
