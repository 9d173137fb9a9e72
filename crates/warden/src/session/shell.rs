//! A shell that lives, and everything that has to be attended to while it does.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use ringfence_link::init::Ending;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::driver::Driver;
use super::files::{self, Files, Place, STREAMS};
use super::groups::Groups;
use super::memory::Memory;
use super::protocol::ShellKind;
use super::protocol::lines::{Handover, Speech};
use super::protocol::report::{Report, StatusReader};
use super::terminal::SilentTerminal;
use super::watch::{Source, Watch};
use crate::inside::Program;
use crate::ring::{Ring, Stream};
use crate::sandbox::Sandbox;

/// The largest environment that is kept for a restart.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
/// What a shell printed outside of its command, kept until it is known where it belongs.
const LONGEST_ASIDE: usize = 256 * 1024;
/// Reads from one descriptor before the others get their turn.
const TURN: usize = 16;

/// What a shell consists of.
pub(super) struct Parts {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) kind: ShellKind,
    pub(super) place: Place,
    pub(super) files: Files,
    pub(super) groups: Groups,
    pub(super) program: Program,
    pub(super) terminal: SilentTerminal,
    pub(super) driver: Driver,
    /// What the shell itself prints.
    pub(super) own: OwnedFd,
    /// Its directory in the host's `/proc`.
    pub(super) proc: Option<OwnedFd>,
    pub(super) log: Arc<Ring>,
}

pub(super) struct Shell {
    sandbox: Arc<Sandbox>,
    pub(super) kind: ShellKind,
    pub(super) place: Place,
    files: Files,
    pub(super) groups: Groups,
    pub(super) memory: Memory,
    program: Program,
    terminal: SilentTerminal,
    driver: Driver,
    own: OwnedFd,
    /// Its directory in the host's `/proc`.
    proc: Option<OwnedFd>,
    pub(super) watch: Watch,
    /// There may be something to read from the streams of the command.
    pub(super) ready: [bool; 2],
    /// The streams that were given more room for bulk output.
    enlarged: [bool; 2],
    log: Arc<Ring>,
    logs: HashMap<u32, (Stream, OwnedFd)>,
    next_log: u32,
    reports: StatusReader,
    pub(super) sequence: u64,
    /// It has said that it waits, since the last thing it was asked.
    idle: bool,
    ended: Option<Ending>,
    answer: Vec<u8>,
    /// Printed outside of the command while one runs.
    aside: Vec<u8>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("place", &self.place).finish_non_exhaustive()
    }
}

/// What happened, of the things that someone has to decide about.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The deadline came.
    pub(super) nothing: bool,
    pub(super) woken: bool,
    pub(super) died: bool,
    pub(super) caller: Option<EventFlags>,
    pub(super) input: bool,
    pub(super) reading: bool,
    pub(super) finished: Option<u8>,
    pub(super) idle: bool,
}

impl Shell {
    /// From what was made for it.
    pub(super) fn assemble(parts: Parts, wake: &OwnedFd) -> rustix::io::Result<Self> {
        let shell = Self {
            sandbox: parts.sandbox,
            kind: parts.kind,
            place: parts.place,
            files: parts.files,
            groups: parts.groups,
            memory: Memory::of(parts.proc.as_ref()),
            program: parts.program,
            terminal: parts.terminal,
            driver: parts.driver,
            own: parts.own,
            proc: parts.proc,
            watch: Watch::new()?,
            ready: [false; 2],
            enlarged: [false; 2],
            log: parts.log,
            logs: HashMap::new(),
            next_log: 0,
            reports: StatusReader::default(),
            sequence: 0,
            idle: false,
            ended: None,
            answer: Vec::new(),
            aside: Vec::new(),
            buffer: vec![0; ringfence_link::channel::CHUNK],
        };
        shell.watch_all(wake)?;
        Ok(shell)
    }

    fn watch_all(&self, wake: &OwnedFd) -> rustix::io::Result<()> {
        let watch = &self.watch;
        watch.add(wake, Source::Wake, EventFlags::IN)?;
        watch.add(&self.program, Source::Process, EventFlags::IN)?;
        watch.add_edge(&self.files.status, Source::Status)?;
        watch.add_edge(&self.files.answer, Source::Answer)?;
        watch.add_edge(&self.files.streams[0], Source::Stream(0))?;
        watch.add_edge(&self.files.streams[1], Source::Stream(1))?;
        watch.add_edge(&self.own, Source::Own)?;
        watch.add(&self.driver, Source::Driver, EventFlags::OUT | EventFlags::ET)?;
        watch.add_edge(&self.terminal, Source::Terminal)
    }

    /// How to speak to it.
    pub(super) fn speech(&self) -> Speech<'_> {
        Speech { kind: self.kind, directory: &self.place.directory }
    }

    /// Writes the files and sends the lines.
    pub(super) fn hand_over(&self, handover: &Handover) -> std::io::Result<()> {
        for (name, content) in &handover.files {
            self.files.write(name, content)?;
        }
        self.driver.send(&handover.lines);
        Ok(())
    }

    pub(super) fn write_text(&self, name: &str, content: &[u8]) -> std::io::Result<()> {
        self.files.write(name, content)
    }

    /// Begins to speak of something new: reports about what was before do not count any more.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.idle = false;
        self.answer.clear();
        self.sequence
    }

    pub(super) fn ask_status(&mut self, visited: bool) {
        let sequence = self.next_sequence();
        self.driver.send(&[self.speech().status_line(sequence, visited)]);
    }

    pub(super) fn ask_directory(&mut self) {
        let sequence = self.next_sequence();
        self.driver.send(&[self.speech().ask_directory_line(sequence)]);
    }

    /// Whether the shell has read everything it was sent.
    pub(super) fn has_read_all(&self) -> bool {
        self.driver.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    pub(super) fn take_answer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answer)
    }

    /// The directory the shell is in, links resolved.
    pub(super) fn directory(&self) -> Option<Vec<u8>> {
        let link = rustix::fs::readlinkat(self.proc.as_ref()?, c"cwd", Vec::new()).ok()?;
        let path = link.into_bytes();
        let path = path.strip_suffix(b" (deleted)").map_or(path.clone(), <[u8]>::to_vec);
        path.starts_with(b"/").then_some(path)
    }

    /// Waits for news until the deadline and does what needs no decision meanwhile.
    pub(super) fn step(&mut self, deadline: Option<Instant>) -> News {
        let mut news = News::default();
        let events = self.watch.wait(deadline);
        news.nothing = events.is_empty() && deadline.is_some_and(|at| Instant::now() >= at);
        for (source, flags) in events {
            match source {
                Source::Wake => news.woken = true,
                Source::Process => news.died = true,
                Source::Caller => news.caller = Some(flags),
                Source::Input => news.input = true,
                Source::Driver => self.driver.go_on(),
                Source::Stream(stream) => self.ready[stream] = true,
                Source::Status => self.read_reports(&mut news),
                Source::Answer => self.read_answer(),
                Source::Own => self.read_own(),
                Source::Terminal => self.terminal.attend(),
                Source::Log(number) => self.read_log(number),
            }
        }
        if news.idle {
            self.idle = true;
            // Written before the report; its own edge may come with the next turn.
            self.read_answer();
        }
        news
    }

    fn read_reports(&mut self, news: &mut News) {
        let mut bytes = [0; 4096];
        for _ in 0..TURN {
            let Ok(n @ 1..) = rustix::io::read(&self.files.status, &mut bytes[..]) else { return };
            for report in self.reports.push(&bytes[..n], self.sequence) {
                match report {
                    Report::Reading => news.reading = true,
                    Report::Finished(status) => news.finished = Some(status),
                    Report::Idle => news.idle = true,
                }
            }
        }
        self.watch.rearm(&self.files.status, Source::Status);
    }

    fn read_answer(&mut self) {
        for _ in 0..TURN {
            match rustix::io::read(&self.files.answer, &mut self.buffer[..]) {
                Ok(n @ 1..) if self.answer.len() < LONGEST_ANSWER => {
                    self.answer.extend(&self.buffer[..n]);
                }
                Ok(1..) => {}
                _ => return,
            }
        }
        self.watch.rearm(&self.files.answer, Source::Answer);
    }

    fn read_own(&mut self) {
        for _ in 0..TURN {
            let Ok(n @ 1..) = rustix::io::read(&self.own, &mut self.buffer[..]) else { return };
            self.aside.extend(&self.buffer[..n]);
            if self.aside.len() > LONGEST_ASIDE {
                self.log_aside();
            }
        }
        self.watch.rearm(&self.own, Source::Own);
    }

    /// What the shell printed outside of a command goes to the log.
    pub(super) fn log_aside(&mut self) {
        self.log.append(Stream::Output, &self.aside);
        self.aside.clear();
    }

    /// What the shell printed outside of its last command, to the end.
    pub(super) fn take_aside(&mut self) -> Vec<u8> {
        self.read_own();
        std::mem::take(&mut self.aside)
    }

    fn read_log(&mut self, number: u32) {
        let Some((stream, fd)) = self.logs.get(&number) else { return };
        for _ in 0..TURN {
            match rustix::io::read(fd, &mut self.buffer[..]) {
                Ok(0) => {
                    // Nobody has it open any more, and nobody can open it again.
                    self.logs.remove(&number);
                    return;
                }
                Ok(n) => self.log.append(*stream, &self.buffer[..n]),
                Err(_) => return,
            }
        }
        self.watch.rearm(fd, Source::Log(number));
    }

    /// Reads once from a stream of the command, at most so many bytes; nothing if there is nothing.
    pub(super) fn read_stream(&mut self, stream: usize, most: usize) -> &[u8] {
        let size = self.buffer.len().min(most);
        let n = match rustix::io::read(&self.files.streams[stream], &mut self.buffer[..size]) {
            Ok(n) => n,
            Err(Errno::INTR) => return &[],
            Err(_) => 0,
        };
        // Less than there is room for was all; what comes later is another edge.
        self.ready[stream] = n == size;
        if n == self.buffer.len() && !self.enlarged[stream] {
            self.enlarged[stream] = true;
            files::resize(&self.files.streams[stream], files::LARGE);
        }
        &self.buffer[..n]
    }

    /// How many bytes a stream holds now.
    pub(super) fn held(&self, stream: usize) -> usize {
        rustix::io::ioctl_fionread(&self.files.streams[stream]).unwrap_or(0) as usize
    }

    /// Takes away the streams that others still have open: what they print goes to the log.
    pub(super) fn refresh_streams(&mut self) -> std::io::Result<()> {
        for stream in 0..2 {
            if std::mem::take(&mut self.enlarged[stream]) {
                files::resize(&self.files.streams[stream], files::USUAL);
            }
            if self.has_ended(stream) {
                self.ready[stream] = false;
                continue;
            }
            let fresh = self.place.make_stream(STREAMS[stream])?;
            self.watch.add_edge(&fresh, Source::Stream(stream))?;
            let old = std::mem::replace(&mut self.files.streams[stream], fresh);
            self.ready[stream] = false;
            self.next_log = self.next_log.wrapping_add(1);
            let kind = [Stream::Output, Stream::Error][stream];
            self.watch.rearm(&old, Source::Log(self.next_log));
            self.logs.insert(self.next_log, (kind, old));
        }
        Ok(())
    }

    /// Whether a stream has no writers and holds nothing.
    fn has_ended(&self, stream: usize) -> bool {
        use rustix::event::{PollFd, PollFlags};
        let mut set = [PollFd::new(&self.files.streams[stream], PollFlags::IN)];
        crate::pump::poll_until(&mut set, Some(Instant::now()));
        set[0].revents() == PollFlags::HUP
    }

    pub(super) fn reset_terminal(&self) {
        self.terminal.reset();
    }

    pub(super) fn foreground(&self) -> i32 {
        self.terminal.foreground()
    }

    /// To the shell alone.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.program.pidfd, signal);
    }

    /// Ends the shell and everything it has started.
    pub(super) fn kill(&self) {
        self.groups.kill_all(self.program.pid);
        self.signal(Signal::KILL);
    }

    /// Looks at how much memory the processes of the command have.
    pub(super) fn look_at_memory(&mut self, now: Instant) {
        let groups = &self.groups;
        self.memory.look(now, || groups.processes());
    }

    /// How it ended, once it has.
    pub(super) fn ending(&mut self) -> Ending {
        *self.ended.get_or_insert_with(|| self.program.ending().0)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.kill();
        self.sandbox.inside.forget(self.program.id);
    }
}
