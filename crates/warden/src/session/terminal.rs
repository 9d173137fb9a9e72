//! The terminal that a session's shell has for job control and nobody types on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sys::terminal::INPUT_THROWN_AWAY;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
use rustix::termios::{
    OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr,
};

/// Enough for any program that asks more than once.
const ENDS_OF_FILE: [u8; 64] = [4; 64];

#[derive(Debug)]
pub(super) struct SilentTerminal {
    outer: OwnedFd,
    /// Kept open: the queue is emptied from this side.
    inner: OwnedFd,
    modes: Termios,
}

impl SilentTerminal {
    /// From the side that init hands out.
    pub(super) fn new(outer: OwnedFd) -> rustix::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        let modes = tcgetattr(&inner)?;
        Ok(Self { outer, inner, modes })
    }

    /// Takes back what a command did to the modes, and answers every question to come with the end
    /// of input again.
    pub(super) fn reset(&self) {
        let modes = tcgetattr(&self.inner);
        if modes.is_ok_and(|modes| differ(&modes, &self.modes)) {
            let _ = tcsetattr(&self.inner, OptionalActions::Now, &self.modes);
        }
        // Makes the outer side say that the queue is empty, whereupon it is filled.
        let _ = tcflush(&self.inner, QueueSelector::IFlush);
        self.attend();
    }

    /// Throws away what was written to the terminal (its writer would have to wait otherwise), and
    /// fills the queue if it was emptied.
    pub(super) fn attend(&self) {
        let mut bytes = [0; 4096];
        while let Ok(1..) = rustix::io::read(&self.outer, &mut bytes[..]) {
            if bytes[0] & INPUT_THROWN_AWAY != 0 {
                let _ = rustix::io::write(&self.outer, &ENDS_OF_FILE);
            }
        }
    }

    /// The process group in the foreground, as it is called outside; 0 if there is none.
    pub(super) fn foreground(&self) -> i32 {
        tcgetpgrp(&self.outer).map_or(0, |group| group.as_raw_pid())
    }
}

fn differ(one: &Termios, two: &Termios) -> bool {
    use SpecialCodeIndex as Code;
    const CODES: [Code; 6] =
        [Code::VEOF, Code::VMIN, Code::VTIME, Code::VINTR, Code::VSUSP, Code::VQUIT];
    let flags = |t: &Termios| (t.input_modes, t.output_modes, t.control_modes, t.local_modes);
    let codes = |t: &Termios| CODES.map(|code| t.special_codes[code]);
    flags(one) != flags(two) || codes(one) != codes(two)
}

impl AsFd for SilentTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outer.as_fd()
    }
}
