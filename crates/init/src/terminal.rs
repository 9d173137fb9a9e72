//! Terminals of the sandbox's own, so that programs find theirs by name.

use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};

/// Both sides of a terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// The side that shows and types.
    pub(crate) outer: OwnedFd,
    /// The side of the programs.
    pub(crate) inner: OwnedFd,
}

impl Terminal {
    pub(crate) fn open(rows: u16, columns: u16) -> rustix::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags)?;
        unlockpt(&outer)?;
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&outer, size)?;
        Ok(Self { outer, inner })
    }

    /// A terminal for job control only. Reading from it never waits: with nobody to answer, a
    /// program that asks for a password must see the end of input instead of hanging.
    pub(crate) fn open_silent() -> rustix::io::Result<Self> {
        let terminal = Self::open(24, 80)?;
        let mut modes = tcgetattr(&terminal.inner)?;
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal.inner, OptionalActions::Now, &modes)?;
        Ok(terminal)
    }
}
