//! The one who asked for a command: takes its output, sends input, changes its mind, hangs up.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use ringfence_link::channel::{Channel, Kind};
use ringfence_link::warden::{Control, Reply};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags};

use super::watch::{Source, Watch};
use crate::pump::poll_until;

const KINDS: [Kind; 2] = [Kind::Output, Kind::Error];

#[derive(Debug)]
pub(super) struct Caller {
    channel: Channel,
    pub(super) hung_up: bool,
    /// There was no room at the last look.
    pub(super) stalled: bool,
    /// Taken of each stream.
    pub(super) moved: [u64; 2],
    interest: EventFlags,
}

/// What a caller said.
#[derive(Debug)]
pub(super) enum Said {
    Nothing,
    HungUp,
    Input(Vec<u8>),
    EndOfInput,
    Signal(i32),
    Cancel,
}

impl Caller {
    pub(super) fn new(channel: Channel) -> Self {
        let interest = EventFlags::empty();
        Self { channel, hung_up: false, stalled: false, moved: [0; 2], interest }
    }

    /// Whether it has hung up by now. (What it said before that is not looked at.)
    pub(super) fn is_gone(&self) -> bool {
        let mut set = [PollFd::new(&self.channel, PollFlags::RDHUP)];
        poll_until(&mut set, Some(Instant::now()))
    }

    pub(super) fn watch(&mut self, watch: &Watch) -> rustix::io::Result<()> {
        self.interest = EventFlags::IN | EventFlags::RDHUP;
        watch.add(&self.channel, Source::Caller, self.interest)
    }

    /// Says what to wait for: `listens` if there is room for what it says.
    pub(super) fn update(&mut self, watch: &Watch, listens: bool) {
        let mut wanted = EventFlags::RDHUP;
        wanted.set(EventFlags::IN, listens);
        wanted.set(EventFlags::OUT, self.stalled);
        if self.hung_up {
            if !self.interest.is_empty() {
                watch.remove(&self.channel);
                self.interest = EventFlags::empty();
            }
        } else if wanted != self.interest {
            watch.change(&self.channel, Source::Caller, wanted);
            self.interest = wanted;
        }
    }

    /// Whether output can be passed on without waiting.
    pub(super) fn can_take(&mut self) -> bool {
        self.stalled = !self.hung_up && !self.has_room();
        !self.stalled
    }

    fn has_room(&self) -> bool {
        let mut set = [PollFd::new(&self.channel, PollFlags::OUT)];
        poll_until(&mut set, Some(Instant::now()))
    }

    pub(super) fn pass(&mut self, stream: usize, bytes: &[u8]) {
        self.moved[stream] += bytes.len() as u64;
        if !bytes.is_empty() && !self.hung_up {
            self.hung_up = self.channel.send_bytes(KINDS[stream], bytes).is_err();
        }
    }

    pub(super) fn tell(&mut self, reply: &Reply) {
        self.hung_up = self.hung_up || self.channel.send(reply, &[]).is_err();
    }

    /// Takes one frame.
    pub(super) fn listen(&mut self) -> Said {
        let Ok(frame) = self.channel.receive_frame() else {
            self.hung_up = true;
            return Said::HungUp;
        };
        match frame.kind {
            Kind::Input => Said::Input(frame.body),
            Kind::Message => match frame.message() {
                Ok(Control::EndOfInput) => Said::EndOfInput,
                Ok(Control::Signal(signal)) => Said::Signal(signal),
                Ok(Control::Cancel) => Said::Cancel,
                _ => Said::Nothing,
            },
            _ => Said::Nothing,
        }
    }

    /// Ends the call: the rest of the output, then the reply. One who does not read gets it from a
    /// thread of its own; the session goes on.
    pub(super) fn finish(self, rest: Vec<(usize, Vec<u8>)>, reply: Reply) {
        if self.hung_up {
            return;
        }
        let channel = self.channel;
        let deliver = move || {
            let passed =
                rest.iter().try_for_each(|(s, bytes)| channel.send_bytes(KINDS[*s], bytes));
            let _ = passed.and_then(|()| channel.send(&reply, &[]));
        };
        match self.stalled {
            false => deliver(),
            true => drop(std::thread::Builder::new().name("rest".into()).spawn(deliver)),
        }
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// Input taken from the caller before the command has read it.
const AHEAD: usize = 1024 * 1024;

/// What the command reads: a FIFO of its own.
#[derive(Debug)]
pub(super) struct Input {
    /// Open for reading too until the shell has opened it: before that it must not end.
    fifo: Option<OwnedFd>,
    queue: std::collections::VecDeque<u8>,
    opened: bool,
    ended: bool,
}

impl Input {
    pub(super) fn new(fifo: OwnedFd, watch: &Watch) -> rustix::io::Result<Self> {
        watch.add(&fifo, Source::Input, EventFlags::OUT | EventFlags::ET)?;
        let queue = std::collections::VecDeque::new();
        Ok(Self { fifo: Some(fifo), queue, opened: false, ended: false })
    }

    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < AHEAD
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.fifo.is_some() {
            self.queue.extend(bytes);
            self.feed();
        }
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
        self.feed();
    }

    /// The shell has it open. From now on the end can be seen from both sides.
    pub(super) fn opened(&mut self, watch: &Watch) {
        use rustix::fs::OFlags;
        self.opened = true;
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let writer = self.fifo.as_ref().map(|fifo| ringfence_sys::files::reopen(fifo, flags));
        if let Some(Ok(writer)) = writer {
            let _ = watch.add(&writer, Source::Input, EventFlags::OUT | EventFlags::ET);
            self.fifo = Some(writer);
        }
        self.feed();
    }

    /// Writes what the command takes.
    pub(super) fn feed(&mut self) {
        while let (Some(fifo), false) = (&self.fifo, self.queue.is_empty()) {
            let (front, _) = self.queue.as_slices();
            match rustix::io::write(fifo, front) {
                Ok(n) => drop(self.queue.drain(..n)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                // The command does not read any more; what comes is thrown away.
                Err(_) => {
                    self.queue.clear();
                    self.fifo = None;
                }
            }
        }
        if self.ended && self.opened {
            self.fifo = None;
        }
    }
}
