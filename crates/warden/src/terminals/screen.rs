//! The outer side of a terminal: what is typed, what is shown, how large it is.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_link::warden::Failure;
use rustix::termios::{Winsize, tcsetwinsize};

use super::account::Account;
use super::cast::Cast;
use crate::environment::invalid;
use crate::journal::Journal;
use crate::sandbox::set_nonblocking;

/// Typed bytes that nobody has read yet; beyond that, who types waits.
const TYPED: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

impl Size {
    pub(crate) fn check(self) -> Result<(), Failure> {
        match self.rows > 0 && self.columns > 0 {
            true => Ok(()),
            false => Err(invalid("a terminal has at least one row and one column")),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Screen {
    inner: Mutex<Inner>,
    pub(super) end_when_left: bool,
}

#[derive(Debug)]
struct Inner {
    /// None before it runs and when it is over.
    outer: Option<OwnedFd>,
    typed: VecDeque<u8>,
    size: Size,
    watchers: u32,
    account: Account,
}

impl Screen {
    pub(super) fn new(id: &str, size: Size, journal: Arc<Journal>, end_when_left: bool) -> Self {
        let (typed, account) = (VecDeque::new(), Account::new(id, journal));
        let inner = Inner { outer: None, typed, size, watchers: 0, account };
        Self { inner: Mutex::new(inner), end_when_left }
    }

    /// Keeps everything shown from now on, below the sandbox's directory.
    pub(super) fn record_to(&self, dir: &Path) -> Result<(), Failure> {
        let mut inner = self.inner.lock();
        let cast = Cast::create(dir, inner.account.id(), inner.size)?;
        inner.account.record_to(cast);
        Ok(())
    }

    /// Takes the outer side, and returns another handle on it to read from.
    pub(crate) fn connect(&self, outer: OwnedFd) -> Option<OwnedFd> {
        // One that cannot be made not to wait must not be touched: it would stop all others.
        set_nonblocking(&outer).ok()?;
        let reader = outer.try_clone().ok()?;
        self.inner.lock().outer = Some(outer);
        Some(reader)
    }

    /// (rows, columns)
    pub(crate) fn size(&self) -> (u16, u16) {
        let Size { rows, columns } = self.inner.lock().size;
        (rows, columns)
    }

    pub(super) fn resize(&self, size: Size) {
        let mut inner = self.inner.lock();
        if let Some(outer) = &inner.outer {
            let (ws_row, ws_col) = (size.rows, size.columns);
            let _ = tcsetwinsize(outer, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
            inner.size = size;
            inner.account.resized(size);
        }
    }

    pub(super) fn watchers(&self) -> u32 {
        self.inner.lock().watchers
    }

    pub(super) fn enter(&self) {
        self.inner.lock().watchers += 1;
    }

    /// Whether nobody is left.
    pub(super) fn leave(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.watchers -= 1;
        inner.watchers == 0
    }

    /// Whether more may be typed.
    pub(super) fn takes_more(&self) -> bool {
        self.inner.lock().typed.len() < TYPED
    }

    /// Types. What the terminal does not take now is left for [`Screen::feed`]; whether there is
    /// something left.
    pub(super) fn type_in(&self, bytes: &[u8]) -> bool {
        let mut inner = self.inner.lock();
        if inner.outer.is_none() {
            return false;
        }
        inner.account.typed(bytes);
        inner.typed.extend(bytes);
        inner.write();
        !inner.typed.is_empty()
    }

    pub(crate) fn has_typed(&self) -> bool {
        !self.inner.lock().typed.is_empty()
    }

    /// Writes what the terminal takes; whether those who type need to wait no more.
    pub(crate) fn feed(&self) -> bool {
        let mut inner = self.inner.lock();
        let was_full = inner.typed.len() >= TYPED;
        inner.write();
        was_full && inner.typed.len() < TYPED
    }

    pub(crate) fn shown(&self, bytes: &[u8]) {
        self.inner.lock().account.shown(bytes);
    }

    /// It is over.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.outer = None;
        inner.typed = VecDeque::new();
        inner.account.close();
    }
}

impl Inner {
    fn write(&mut self) {
        use rustix::io::Errno;
        let Some(outer) = &self.outer else { return };
        while !self.typed.is_empty() {
            match rustix::io::write(outer, self.typed.as_slices().0) {
                Ok(n) => drop(self.typed.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody can read it any more.
                Err(_) => self.typed.clear(),
            }
        }
    }
}
