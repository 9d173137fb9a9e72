//! Waiting for a process to get somewhere.

use std::time::{Duration, Instant};

use ringfence_link::channel::Channel;
use ringfence_link::warden::{Code, Failure, HttpCheck, Reply, Until};

use super::info;
use super::lines::{Lines, Wanted};
use super::port::{self, Tried};
use crate::background::{Background, Listener, Woke, told};
use crate::ring::Piece;
use crate::sandbox::{Sandbox, failure, internal};

/// Between two looks whether a port is open.
const PAUSE: Duration = Duration::from_millis(50);
const STEP: usize = 256 * 1024;

impl Sandbox {
    /// The last reply; none if the caller has hung up.
    pub(crate) fn wait_process(
        &self,
        caller: &Channel,
        id: &str,
        until: &Until,
        timeout_ms: Option<u64>,
    ) -> Result<Option<Reply>, Failure> {
        let process = self.processes.registry.find(id)?;
        let wanted = Wanted::of(until)?;
        // A time that does not fit is as good as none.
        let time = timeout_ms.map(Duration::from_millis);
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let waiter = Waiter { process: &process, caller, deadline };
        match (until, wanted) {
            (_, Some(wanted)) => waiter.for_line(wanted),
            (Until::Port { port, http }, None) => {
                port::check(*port, http.as_ref())?;
                waiter.for_port(self, *port, http.as_ref())
            }
            (_, None) => waiter.for_exit(),
        }
    }
}

struct Waiter<'a> {
    process: &'a Background,
    caller: &'a Channel,
    deadline: Option<Instant>,
}

type Answer = Result<Option<Reply>, Failure>;

impl Waiter<'_> {
    fn for_exit(&self) -> Answer {
        let end = self.process.ring.watch_end().map_err(internal)?;
        let listener = Listener::new(self.caller, end);
        match listener.wait(self.deadline) {
            Woke::News => Ok(Some(Reply::Process(info(self.process)))),
            Woke::HungUp => Ok(None),
            Woke::Deadline => Err(self.timed_out()),
        }
    }

    /// Looks at what is kept first, and then at what comes.
    fn for_line(&self, wanted: Wanted) -> Answer {
        let ring = &self.process.ring;
        let listener = Listener::new(self.caller, ring.watch().map_err(internal)?);
        let (mut lines, mut next) = (Lines::new(wanted), ring.start());
        loop {
            listener.watch.clear();
            let (found, wait) = match ring.read(next, STEP) {
                Piece::Bytes { from, stream, bytes } => {
                    if from != next {
                        lines.interrupt();
                    }
                    next = from + bytes.len() as u64;
                    (lines.add(stream, &bytes), false)
                }
                Piece::Nothing { .. } => (None, true),
                Piece::End { .. } => match lines.look() {
                    None => return Err(self.ended_first()),
                    found => (found, false),
                },
            };
            let now = Instant::now();
            let found = match found {
                None if lines.due().is_some_and(|due| due <= now) => lines.look(),
                found => found,
            };
            if let Some(line) = found {
                return Ok(Some(Reply::Ready { line: Some(line) }));
            }
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Err(self.timed_out());
            }
            // Who prints without end is looked at without waiting, but hanging up is noticed.
            let until = if wait { earlier(self.deadline, lines.due()) } else { Some(now) };
            if listener.wait(until) == Woke::HungUp {
                return Ok(None);
            }
        }
    }

    fn for_port(&self, sandbox: &Sandbox, port: u16, http: Option<&HttpCheck>) -> Answer {
        let end = self.process.ring.watch_end().map_err(internal)?;
        let listener = Listener::new(self.caller, end);
        loop {
            let tried = match self.process.ring.is_closed() {
                true => Tried::Ended,
                false => port::try_once(sandbox, (port, http), &listener, self.deadline),
            };
            let woke = match tried {
                Tried::Open => return Ok(Some(Reply::Ready { line: None })),
                Tried::HungUp => return Ok(None),
                Tried::Ended => return Err(self.ended_first()),
                Tried::NotYet => {
                    listener.wait(earlier(self.deadline, Some(Instant::now() + PAUSE)))
                }
            };
            if woke == Woke::HungUp {
                return Ok(None);
            }
            if woke == Woke::Deadline && self.deadline.is_some_and(|at| at <= Instant::now()) {
                return Err(self.timed_out());
            }
        }
    }

    fn timed_out(&self) -> Failure {
        let id = &self.process.id;
        failure(Code::TimedOut, format!("process {id} did not get there in time"))
    }

    fn ended_first(&self) -> Failure {
        let (id, how) = (&self.process.id, told(&self.process.status()));
        failure(Code::ExitedFirst, format!("process {id} ended first: {how}"))
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}
