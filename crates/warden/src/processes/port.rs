//! Whether a server inside answers.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_link::warden::{Failure, HttpCheck};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::background::{Listener, Woke};
use crate::environment::invalid;
use crate::pump::poll_until;
use crate::sandbox::Sandbox;

/// How long a server may take for one answer before it is asked again.
const ANSWER: Duration = Duration::from_secs(5);
/// A status line is much shorter.
const LONGEST: usize = 1024;

pub(super) enum Tried {
    Open,
    NotYet,
    /// The process.
    Ended,
    /// The caller.
    HungUp,
}

pub(super) fn check(port: u16, http: Option<&HttpCheck>) -> Result<(), Failure> {
    if port == 0 {
        return Err(invalid("there is no port 0"));
    }
    let Some(http) = http else { return Ok(()) };
    let plain = http.path.starts_with('/') && http.path.bytes().all(|c| c.is_ascii_graphic());
    if !plain {
        return Err(invalid(format!("{:?} is not the path of a URL", http.path)));
    }
    if http.status_from > http.status_to {
        return Err(invalid("the range of status codes is empty"));
    }
    Ok(())
}

/// Connects, and asks if it is HTTP.
pub(super) fn try_once(
    sandbox: &Sandbox,
    (port, http): (u16, Option<&HttpCheck>),
    listener: &Listener<'_>,
    deadline: Option<Instant>,
) -> Tried {
    let Ok(socket) = sandbox.inside.connect(port) else { return Tried::NotYet };
    let attempt = Instant::now() + ANSWER;
    let until = deadline.map_or(attempt, |deadline| deadline.min(attempt));
    let conversation = Conversation { socket, listener, until };
    let asked = conversation.is_connected().and_then(|()| match http {
        None => Ok(true),
        Some(http) => Ok(accepts(http, conversation.ask(port, &http.path)?)),
    });
    match asked {
        Ok(true) => Tried::Open,
        Ok(false) => Tried::NotYet,
        Err(tried) => tried,
    }
}

fn accepts(http: &HttpCheck, status: u16) -> bool {
    (http.status_from..=http.status_to).contains(&status)
}

struct Conversation<'a> {
    socket: OwnedFd,
    listener: &'a Listener<'a>,
    until: Instant,
}

impl Conversation<'_> {
    fn wait(&self, flags: PollFlags) -> Result<(), Tried> {
        loop {
            let socket = PollFd::from_borrowed_fd(self.socket.as_fd(), flags);
            match self.listener.wait_also_for(Some(socket.clone()), Some(self.until)) {
                Woke::HungUp => return Err(Tried::HungUp),
                Woke::Deadline => return Err(Tried::NotYet),
                Woke::News if self.listener.watch.wait(Some(Instant::now())) => {
                    return Err(Tried::Ended);
                }
                Woke::News if poll_until(&mut [socket], Some(Instant::now())) => return Ok(()),
                Woke::News => {}
            }
        }
    }

    fn is_connected(&self) -> Result<(), Tried> {
        self.wait(PollFlags::OUT)?;
        match rustix::net::sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => Ok(()),
            _ => Err(Tried::NotYet),
        }
    }

    /// The status of the answer to a request.
    fn ask(&self, port: u16, path: &str) -> Result<u16, Tried> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nUser-Agent: ringfence\r\n\
             Accept: */*\r\nConnection: close\r\n\r\n"
        );
        self.send(request.as_bytes())?;
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') && answer.len() < LONGEST {
            let mut buffer = [0; LONGEST];
            match rustix::io::read(&self.socket, &mut buffer) {
                Ok(0) => break,
                Ok(n) => answer.extend(&buffer[..n]),
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Tried::NotYet),
            }
        }
        status(&answer).ok_or(Tried::NotYet)
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), Tried> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Tried::NotYet),
            }
        }
        Ok(())
    }
}

/// The number in `HTTP/1.1 200 OK`.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| *byte == b' ');
    words.next().filter(|version| version.starts_with(b"HTTP/"))?;
    std::str::from_utf8(words.next()?.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_second_word_of_an_http_answer() {
        assert_eq!(status(b"HTTP/1.1 204 No Content\r\nA: b\r\n"), Some(204));
        assert_eq!(status(b"HTTP/1.0 404\r\n"), Some(404));
        for other in [&b"SSH-2.0-x 200 y\r\n"[..], b"", b"HTTP/1.1\r\n", b"HTTP/1.1 abc\r\n"] {
            assert_eq!(status(other), None);
        }
    }

    #[test]
    fn a_path_cannot_smuggle_headers() {
        let http = |path: &str| HttpCheck { path: path.into(), status_from: 200, status_to: 399 };
        assert!(check(80, Some(&http("/health?x=1"))).is_ok());
        for bad in ["", "x", "/a b", "/a\r\nX: y", "/é"] {
            assert!(check(80, Some(&http(bad))).is_err(), "{bad}");
        }
        assert!(check(0, None).is_err());
    }
}
