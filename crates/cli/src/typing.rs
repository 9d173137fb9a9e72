//! Passing standard input on to a call, for as long as the call lasts and not longer: what is typed
//! afterwards answers a question, or belongs to whoever reads next.

use std::io;
use std::thread::JoinHandle;

use ringfence_link::channel::CHUNK;
use ringfence_link::client::Ongoing;
use ringfence_link::warden::Control;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::failure::Failure;

/// A thread that reads standard input; it stops when this is dropped.
pub(crate) struct Typing {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Typing {
    pub(crate) fn forward(call: &Ongoing) -> Result<Self, Failure> {
        let call = call.try_clone().map_err(Failure::broken)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(Failure::broken)?;
        let stopped = stop.try_clone().map_err(Failure::broken)?;
        let thread = std::thread::spawn(move || forward(&call, &stopped));
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward(call: &Ongoing, stop: &OwnedFd) {
    let mut buffer = vec![0; CHUNK];
    while wait(stop) {
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer[..]) {
            Ok(0) => break,
            Ok(n) if call.input(&buffer[..n]).is_err() => return,
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    let _ = call.control(Control::EndOfInput);
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
