//! Passing standard input on to a call, for as long as the call lasts and not longer: what is typed
//! afterwards answers a question, or belongs to whoever reads next.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::failure::Failure;

const PIECE: usize = 64 * 1024;

/// A thread that reads standard input; it stops when this is dropped.
#[derive(Debug)]
pub(super) struct Input {
    stop: OwnedFd,
    stopped: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// What becomes of a piece of input, or of its end.
pub(super) type Wrap<T> = fn(Option<Bytes>) -> Option<T>;

impl Input {
    /// Sends every piece as it comes. Within a runtime.
    pub(super) fn forward<T: Send + 'static>(
        to: mpsc::Sender<T>,
        wrap: Wrap<T>,
    ) -> Result<Self, Failure> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(Failure::broken)?;
        let stopped = Arc::new(Notify::new());
        let reader = Reader {
            stop: stop.try_clone().map_err(Failure::broken)?,
            stopped: stopped.clone(),
            runtime: Handle::current(),
            to,
            wrap,
        };
        let thread = std::thread::spawn(move || reader.read());
        Ok(Self { stop, stopped, thread: Some(thread) })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        self.stopped.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reader<T> {
    stop: OwnedFd,
    stopped: Arc<Notify>,
    runtime: Handle,
    to: mpsc::Sender<T>,
    wrap: Wrap<T>,
}

impl<T> Reader<T> {
    fn read(self) {
        let mut buffer = vec![0; PIECE];
        while wait(&self.stop) {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..]) {
                Ok(0) => break,
                Ok(n) if !self.pass(Some(Bytes::copy_from_slice(&buffer[..n]))) => return,
                Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => break,
            }
        }
        self.pass(None);
    }

    /// A command that does not read makes this wait; its end does not.
    fn pass(&self, piece: Option<Bytes>) -> bool {
        let Some(message) = (self.wrap)(piece) else { return true };
        self.runtime.block_on(async {
            tokio::select! {
                sent = self.to.send(message) => sent.is_ok(),
                () = self.stopped.notified() => false,
            }
        })
    }
}

/// Whether there is something to read, as opposed to the end.
fn wait(stop: &OwnedFd) -> bool {
    let input = io::stdin();
    let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(&input, PollFlags::IN)];
    loop {
        match poll(&mut fds, None) {
            Ok(_) => return fds[0].revents().is_empty(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
