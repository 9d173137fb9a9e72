//! What do server, warden and init say to each other?
//!
//! Messages, how they are framed on a Unix socket, and how descriptors travel with them. Nothing
//! here knows how any of the three works.
//!
//! | file | what is in it |
//! |---|---|
//! | [`channel`] | frames with descriptors, bounded |
//! | [`init`] | what a warden asks of init, and what it hears (which it must not trust) |
//! | [`warden`] | what a caller asks of a warden, and what it hears |
//! | [`files`] | the part of that which is about files |
//! | [`client`] | asking, for callers |
//! | [`socket`] | sockets with long paths |

pub mod channel;
pub mod client;
pub mod files;
pub mod init;
pub mod socket;
pub mod warden;

/// Both sides of a connection say which version they speak; a difference is an error.
pub const VERSION: u32 = 3;
