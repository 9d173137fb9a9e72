//! Terminals of the sandbox's own, so that programs find theirs by name.

use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
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

    /// A terminal for job control only. With nobody to answer, a program that asks for a password
    /// must see the end of input instead of hanging, whether it reads or polls: so the queue is
    /// full of end-of-file characters. Who empties it (`TCSAFLUSH`) is reported on the outer side,
    /// to be filled again from there.
    pub(crate) fn open_silent() -> rustix::io::Result<Self> {
        let terminal = Self::open(24, 80)?;
        let mut modes = tcgetattr(&terminal.inner)?;
        modes.local_modes &= !LocalModes::ECHO;
        modes.output_modes &= !OutputModes::OPOST;
        tcsetattr(&terminal.inner, OptionalActions::Now, &modes)?;
        let invalid = |_| rustix::io::Errno::INVAL;
        ringfence_sys::terminal::report_events(&terminal.outer).map_err(invalid)?;
        rustix::io::ioctl_fionbio(&terminal.outer, true)?;
        rustix::io::write(&terminal.outer, &[END_OF_FILE; 64])?;
        Ok(terminal)
    }
}

const END_OF_FILE: u8 = 4;
