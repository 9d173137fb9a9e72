//! How something in the background gets from running to over.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_link::init::{Ending, Usage};
use ringfence_link::warden::{Outcome, ProcessStatus};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::{Background, told};
use crate::inside::Program;
use crate::journal::Event;
use crate::journal::event::{ProcessClosed, TerminalClosed};
use crate::ring::Stream;
use crate::sandbox::{Sandbox, Started};

/// How long what it left running may still print.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How long its streams may stay open after everything was killed: somebody else may hold them.
const LAST_WORDS: Duration = Duration::from_secs(1);

const STREAMS: [Stream; 2] = [Stream::Output, Stream::Error];

#[derive(Debug)]
pub(super) struct Job {
    background: Arc<Background>,
    program: Program,
    streams: [Option<OwnedFd>; 2],
    moved: [u64; 2],
    started: Started,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// Its first process has ended; what that left behind has until then.
    Left {
        until: Instant,
    },
    /// Everything was killed.
    Killed {
        until: Instant,
    },
}

/// What `poll` said about the descriptors of a job.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Ready {
    streams: [bool; 2],
    takes_input: bool,
    ended: bool,
}

impl Job {
    pub(super) fn new(
        background: Arc<Background>,
        program: Program,
        streams: [Option<OwnedFd>; 2],
        started: Started,
    ) -> Self {
        Self { background, program, streams, moved: [0; 2], started, stage: Stage::Running }
    }

    /// Its descriptors, in the order in which [`Job::ready`] expects them.
    pub(super) fn watch<'a>(&'a self, set: &mut Vec<PollFd<'a>>) {
        let typed = self.background.screen.as_ref().is_some_and(|screen| screen.has_typed());
        for stream in self.streams.iter().flatten() {
            let flags = if typed { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            set.push(PollFd::new(stream, flags));
        }
        if matches!(self.stage, Stage::Running) {
            set.push(PollFd::from_borrowed_fd(self.program.as_fd(), PollFlags::IN));
        }
    }

    pub(super) fn ready(&self, flags: &mut impl Iterator<Item = PollFlags>) -> Ready {
        let mut ready = Ready::default();
        for stream in 0..2 {
            if self.streams[stream].is_some() {
                let flags = flags.next().unwrap_or(PollFlags::empty());
                ready.takes_input |= flags.contains(PollFlags::OUT);
                ready.streams[stream] = flags.intersects(!PollFlags::OUT);
            }
        }
        if matches!(self.stage, Stage::Running) {
            ready.ended = flags.next().is_some_and(|flags| !flags.is_empty());
        }
        ready
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Running => self.background.kill_at(),
            Stage::Left { until } | Stage::Killed { until } => Some(until),
        }
    }

    /// Does what is due. Whether it is over.
    pub(super) fn advance(&mut self, ready: Ready, buffer: &mut [u8]) -> bool {
        for stream in (0..2).filter(|stream| ready.streams[*stream]) {
            self.take(stream, buffer);
        }
        if ready.takes_input
            && let Some(screen) = &self.background.screen
            && screen.feed()
        {
            self.background.ring.poke();
        }
        let now = Instant::now();
        if ready.ended {
            self.stage = Stage::Left { until: now + AFTERMATH };
        }
        let silent = self.streams.iter().all(Option::is_none);
        match self.stage {
            Stage::Running => self.background.kill_if_due(now),
            Stage::Left { .. } if silent => return true,
            Stage::Left { until } if now >= until => {
                if let Some(tree) = self.background.tree() {
                    tree.kill();
                }
                self.stage = Stage::Killed { until: now + LAST_WORDS };
            }
            Stage::Killed { until } => return silent || now >= until,
            Stage::Left { .. } => {}
        }
        false
    }

    /// Reads once from a stream.
    fn take(&mut self, stream: usize, buffer: &mut [u8]) {
        let Some(fd) = &self.streams[stream] else { return };
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) => self.streams[stream] = None,
            Ok(n) => {
                self.moved[stream] += n as u64;
                if let Some(screen) = &self.background.screen {
                    screen.shown(&buffer[..n]);
                }
                self.background.ring.append(STREAMS[stream], &buffer[..n]);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A terminal whose other side is gone.
            Err(_) => self.streams[stream] = None,
        }
    }

    /// Makes the end final: nothing of it is left when others learn of it. May take a while.
    pub(super) fn finish(self, sandbox: &Sandbox) {
        let (ending, usage) = self.program.ending();
        sandbox.inside.forget(self.program.id);
        let tree = self.background.take_tree();
        let cpu = tree.as_ref().and_then(|tree| tree.cpu_time());
        if let Some(tree) = &tree {
            tree.kill();
        }
        sandbox.running.lock().remove(&self.started.name);
        drop(tree);
        let outcome = self.outcome(ending, usage, cpu);
        let outcome = sandbox.finish(&self.started, outcome);
        let status = match ending {
            Ending::Exited(code) => ProcessStatus::Exited(code & 0xff),
            Ending::Signalled(signal) => ProcessStatus::Killed(signal),
        };
        if outcome.oom_killed {
            self.background
                .ring
                .append(Stream::Error, b"ringfence: the memory limit was reached\n");
        }
        if let Some(screen) = &self.background.screen {
            screen.close();
        }
        self.background.end(status);
        sandbox.record(closed(&self.background));
        sandbox.registry_of(&self.background).tidy();
    }

    fn outcome(&self, ending: Ending, usage: Usage, cpu: Option<Duration>) -> Outcome {
        let cpu = cpu.map(|time| time.as_micros() as u64);
        Outcome {
            exit_code: ending.code(),
            signal: match ending {
                Ending::Signalled(signal) => Some(signal),
                Ending::Exited(_) => None,
            },
            cpu_micros: cpu.unwrap_or(usage.user_micros + usage.system_micros),
            peak_memory: usage.peak_memory,
            stdout_bytes: self.moved[0],
            stderr_bytes: self.moved[1],
            ..Outcome::default()
        }
    }
}

/// What the journal is told at the end.
pub(super) fn closed(background: &Background) -> Event {
    let (id, reason) = (background.id.clone(), told(&background.status()));
    match background.screen {
        None => Event::ProcessClosed(ProcessClosed { process: id, reason }),
        Some(_) => Event::TerminalClosed(TerminalClosed { terminal: id, reason }),
    }
}
