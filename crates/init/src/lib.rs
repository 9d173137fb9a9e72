//! The program inside: PID 1 of a sandbox.
//!
//! Starts programs on the descriptors it is handed, collects everything that ends, and makes the
//! few things that can only be made inside (terminals, the files a shell is driven through,
//! connections to its loopback). Bytes never pass through it. It knows nothing of what is outside;
//! when the socket to the outside closes it ends, and the kernel ends everything with it.
//!
//! Start with [`serve`]; [`confine`] and [`filter`] are what it does to itself and to whatever it
//! starts.

mod confine;
mod files;
mod filter;
mod loopback;
mod programs;
mod serve;
mod terminal;
mod trees;

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub use serve::serve;

/// Where the socket to the warden is found.
pub const SOCKET: i32 = 3;

/// Where no descriptor can be handed down, in a container, the warden is found by a path. Waits until
/// it has put everything in place: what init does to itself depends on what is mounted.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let mut socket = UnixStream::connect(path)?;
    socket.read_exact(&mut [0])?;
    Ok(socket.into())
}
