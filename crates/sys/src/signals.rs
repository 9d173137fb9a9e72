//! Signals as something to wait for, instead of handlers that interrupt.

use std::io;
use std::mem::MaybeUninit;

pub use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGWINCH};

/// A set of signals blocked for the whole process, received one at a time with [`wait`](Self::wait).
#[derive(Clone, Copy)]
pub struct BlockedSignals(libc::sigset_t);

impl std::fmt::Debug for BlockedSignals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlockedSignals")
    }
}

impl BlockedSignals {
    /// Blocks `signals` in the calling thread. Call it before any other thread starts: threads
    /// inherit the mask, and a signal only stays pending if every thread blocks it.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals.iter().copied());
        // SAFETY: `set` is initialised and the old mask is not asked for.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if result == 0 { Ok(Self(set)) } else { Err(io::Error::from_raw_os_error(result)) }
    }

    /// Waits for the next of the blocked signals and returns its number.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: the set is initialised and `signal` is valid for writing.
        let result = unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
        if result == 0 { Ok(signal) } else { Err(io::Error::from_raw_os_error(result)) }
    }
}

/// These signals and no others.
pub(crate) fn set_of(signals: impl Iterator<Item = i32>) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by sigemptyset just above.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: `set` is initialised; an invalid number is reported, not undefined.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Makes `set` the signals this thread blocks, and returns those it did.
pub(crate) fn replace_mask(set: &libc::sigset_t) -> libc::sigset_t {
    let mut old = set_of(std::iter::empty());
    // SAFETY: both sets are initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, &raw mut old) };
    old
}

/// Sends `signal` to this process; [`BlockedSignals::wait`] then returns it.
pub fn raise(signal: i32) {
    let me = rustix::process::getpid();
    if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
        // The process exists, since it is this one: the call cannot fail.
        let _ = rustix::process::kill_process(me, signal);
    }
}
