//! Moving bytes between a command and its caller, and noticing what happens meanwhile.
//!
//! Nothing here waits without end: a caller that does not read makes the command wait (its pipes
//! fill up), never the warden, and deadlines are kept meanwhile.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_link::channel::{CHUNK, Channel, Kind};
use ringfence_link::warden::Control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Input taken from the caller before the command has read it.
const INPUT_AHEAD: usize = 1024 * 1024;

/// Why [`Pump::step`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The watched descriptor of this position has something to read.
    Ready(usize),
    Deadline,
    /// The caller is gone; from now on output is thrown away.
    HungUp,
    Control(Control),
    /// Both streams have ended.
    Silent,
}

#[derive(Debug)]
pub(crate) struct Pump<'a> {
    caller: &'a Channel,
    hung_up: bool,
    /// The caller had no room at the last look.
    stalled: bool,
    /// Standard output and standard error.
    streams: [Option<OwnedFd>; 2],
    pub(crate) moved: [u64; 2],
    input: Option<OwnedFd>,
    queue: VecDeque<u8>,
    input_ended: bool,
    buffer: Vec<u8>,
}

const KINDS: [Kind; 2] = [Kind::Output, Kind::Error];

impl<'a> Pump<'a> {
    /// The streams must not block; `input` neither.
    pub(crate) fn new(
        caller: &'a Channel,
        streams: [Option<OwnedFd>; 2],
        input: Option<OwnedFd>,
    ) -> Self {
        let input_ended = input.is_none();
        Self {
            caller,
            hung_up: false,
            stalled: false,
            streams,
            moved: [0; 2],
            input,
            queue: VecDeque::new(),
            input_ended,
            buffer: vec![0; CHUNK],
        }
    }

    /// Moves bytes until something happens that the command's owner must decide about.
    pub(crate) fn step(&mut self, watched: &[BorrowedFd<'_>], deadline: Option<Instant>) -> Wake {
        loop {
            if self.streams.iter().all(Option::is_none) && watched.is_empty() {
                return Wake::Silent;
            }
            let Some(ready) = self.wait(watched, deadline) else { return Wake::Deadline };
            if self.stalled && ready.caller_has_room {
                self.stalled = false;
            }
            for stream in 0..2 {
                if ready.streams[stream] {
                    self.forward(stream);
                }
            }
            if ready.input {
                self.feed();
            }
            // Not held up by streams that never run dry: who needs the rest takes what is there.
            if let Some(position) = ready.watched {
                return Wake::Ready(position);
            }
            if ready.caller
                && let Some(wake) = self.listen()
            {
                return wake;
            }
        }
    }

    fn wait(&self, watched: &[BorrowedFd<'_>], deadline: Option<Instant>) -> Option<Ready> {
        let mut places = Places::default();
        let mut set = Vec::with_capacity(4 + watched.len());
        for (stream, fd) in self.streams.iter().enumerate() {
            if let Some(fd) = fd.as_ref().filter(|_| !self.stalled) {
                places.streams[stream] = Some(set.len());
                set.push(PollFd::new(fd, PollFlags::IN));
            }
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.queue.is_empty()) {
            places.input = Some(set.len());
            set.push(PollFd::new(input, PollFlags::OUT));
        }
        if !self.hung_up {
            places.caller = Some(set.len());
            let mut flags = PollFlags::RDHUP;
            flags.set(PollFlags::IN, self.queue.len() < INPUT_AHEAD);
            flags.set(PollFlags::OUT, self.stalled);
            set.push(PollFd::new(self.caller, flags));
        }
        places.watched = set.len();
        set.extend(watched.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        poll_until(&mut set, deadline).then(|| places.read(&set))
    }

    /// Reads once from a stream and passes it on.
    fn forward(&mut self, stream: usize) {
        if !self.hung_up && !has_room(self.caller) {
            self.stalled = true;
            return;
        }
        let Some(fd) = &self.streams[stream] else { return };
        match rustix::io::read(fd, &mut self.buffer[..]) {
            Ok(0) => self.streams[stream] = None,
            Ok(n) => {
                self.moved[stream] += n as u64;
                self.hung_up = self.hung_up
                    || self.caller.send_bytes(KINDS[stream], &self.buffer[..n]).is_err();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A terminal whose other side is gone.
            Err(_) => self.streams[stream] = None,
        }
    }

    /// Writes what the command takes of its input.
    fn feed(&mut self) {
        let Some(input) = &self.input else { return };
        let (front, _) = self.queue.as_slices();
        match rustix::io::write(input, front) {
            Ok(n) => drop(self.queue.drain(..n)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => {
                // The command does not read any more; what comes is thrown away.
                self.queue.clear();
                self.input = None;
            }
        }
        self.close_input_if_done();
    }

    fn close_input_if_done(&mut self) {
        if self.input_ended && self.queue.is_empty() {
            self.input = None;
        }
    }

    /// Takes one frame from the caller.
    fn listen(&mut self) -> Option<Wake> {
        let Ok(frame) = self.caller.receive_frame() else {
            (self.hung_up, self.stalled) = (true, false);
            return Some(Wake::HungUp);
        };
        match frame.kind {
            Kind::Input if self.input.is_some() => {
                self.queue.extend(&frame.body);
                None
            }
            Kind::Message => match frame.message() {
                Ok(Control::EndOfInput) => {
                    self.input_ended = true;
                    self.close_input_if_done();
                    None
                }
                Ok(control) => Some(Wake::Control(control)),
                Err(_) => None,
            },
            _ => None,
        }
    }

    /// Passes on exactly what the streams hold now, as fast as the caller takes it.
    pub(crate) fn take_what_is_there(&mut self, deadline: Option<Instant>) {
        for stream in 0..2 {
            let Some(fd) = &self.streams[stream] else { continue };
            let held = rustix::io::ioctl_fionread(fd).unwrap_or(0);
            let until = self.moved[stream] + held;
            while self.moved[stream] < until && self.streams[stream].is_some() {
                self.forward(stream);
                if self.stalled && !self.wait_for_room(deadline) {
                    return;
                }
            }
        }
    }

    fn wait_for_room(&mut self, deadline: Option<Instant>) -> bool {
        let mut set = [PollFd::new(self.caller, PollFlags::OUT)];
        self.stalled = !poll_until(&mut set, deadline);
        !self.stalled
    }

    pub(crate) fn stop_input(&mut self) {
        self.input = None;
        self.queue.clear();
    }
}

/// Where in the set each descriptor is.
#[derive(Default)]
struct Places {
    streams: [Option<usize>; 2],
    input: Option<usize>,
    caller: Option<usize>,
    watched: usize,
}

struct Ready {
    streams: [bool; 2],
    input: bool,
    caller: bool,
    caller_has_room: bool,
    watched: Option<usize>,
}

impl Places {
    fn read(&self, set: &[PollFd<'_>]) -> Ready {
        let flags = |at: Option<usize>| at.map_or(PollFlags::empty(), |at| set[at].revents());
        let caller = flags(self.caller);
        Ready {
            streams: self.streams.map(|at| !flags(at).is_empty()),
            input: !flags(self.input).is_empty(),
            caller: caller.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::RDHUP),
            caller_has_room: caller.intersects(PollFlags::OUT | PollFlags::HUP | PollFlags::ERR),
            watched: set[self.watched..].iter().position(|fd| !fd.revents().is_empty()),
        }
    }
}

/// Whether a frame can be sent without waiting.
fn has_room(caller: &Channel) -> bool {
    let mut set = [PollFd::new(caller, PollFlags::OUT)];
    poll_until(&mut set, Some(Instant::now()))
}

/// Whether anything happened before the deadline.
pub(crate) fn poll_until(set: &mut [PollFd<'_>], deadline: Option<Instant>) -> bool {
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(timespec);
        match poll(set, timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

/// Whether a descriptor has something to read (or has ended) within the time.
pub(crate) fn readable(fd: impl AsFd, within: Duration) -> bool {
    let fd = fd.as_fd();
    let mut set = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll_until(&mut set, Some(Instant::now() + within))
}
