//! What termios(3) does not offer.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Makes reads from the outer side of a terminal begin with a byte that is not zero if something
/// happened to it, such as its input queue having been thrown away (`TIOCPKT`).
pub fn report_events(outer: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the request reads one integer, which lives for the call.
    match unsafe { libc::ioctl(outer.as_fd().as_raw_fd(), libc::TIOCPKT, &raw const on) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Set in that byte when the input queue was thrown away.
pub const INPUT_THROWN_AWAY: u8 = 1;
