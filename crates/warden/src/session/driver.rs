//! The way lines take to a shell.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::protocol::Transport;

/// The writing end of a pipe that the shell reads lines from.
///
/// A user who has many pipes gets small ones from the kernel, with room for two lines; the rest has
/// to wait until the shell has read.
#[derive(Debug)]
pub(super) struct Driver {
    pipe: OwnedFd,
    transport: Transport,
    waiting: RefCell<VecDeque<Vec<u8>>>,
}

impl Driver {
    pub(super) fn new(pipe: OwnedFd, transport: Transport) -> Self {
        Self { pipe, transport, waiting: RefCell::default() }
    }

    pub(super) fn send(&self, lines: &[Vec<u8>]) {
        match self.transport {
            // It reads byte by byte: the fewer wakes the better.
            Transport::StdinPipe => self.waiting.borrow_mut().push_back(lines.concat()),
            Transport::PacketScript => self.waiting.borrow_mut().extend(lines.iter().cloned()),
        }
        self.go_on();
    }

    /// Writes what there is room for. A shell that has ended cannot be told anything: its pidfd
    /// says so.
    pub(super) fn go_on(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(line) = waiting.front_mut() {
            match rustix::io::write(&self.pipe, line) {
                Ok(n) if n < line.len() => drop(line.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(_) | Err(_) => drop(waiting.pop_front()),
            }
        }
    }

    /// Whether the shell has read everything.
    pub(super) fn is_empty(&self) -> bool {
        let held = rustix::io::ioctl_fionread(&self.pipe);
        self.waiting.borrow().is_empty() && held.is_ok_and(|held| held == 0)
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_come_later_and_in_order() {
        let (reader, writer) = rustix::pipe::pipe_with(
            rustix::pipe::PipeFlags::DIRECT | rustix::pipe::PipeFlags::NONBLOCK,
        )
        .unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 8192).unwrap();
        let driver = Driver::new(writer, Transport::PacketScript);
        let lines: Vec<Vec<u8>> = (0..9).map(|n| format!("line {n}\n").into_bytes()).collect();
        driver.send(&lines);
        let mut read = Vec::new();
        let mut buffer = [0; 100];
        while read.len() < 9 {
            let n = rustix::io::read(&reader, &mut buffer).unwrap();
            read.push(buffer[..n].to_vec());
            driver.go_on();
        }
        assert_eq!(read, lines);
        assert!(driver.is_empty());
    }
}
