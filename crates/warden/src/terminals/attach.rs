//! One who watches a terminal and types on it.

use std::time::Instant;

use ringfence_link::channel::{Channel, ChannelError, Kind};
use ringfence_link::warden::{Control, Failure, Reply};
use rustix::event::{PollFd, PollFlags};

use super::info;
use super::screen::{Screen, Size};
use crate::background::{Background, STEP};
use crate::pump::poll_until;
use crate::ring::{Piece, Watch};
use crate::sandbox::{Sandbox, internal};

impl Sandbox {
    /// Shows what was shown, then what comes, until the end. The last reply; none if the caller has
    /// hung up.
    pub(crate) fn attach(&self, caller: &Channel, id: &str) -> Result<Option<Reply>, Failure> {
        let terminal = self.terminals.registry.find(id)?;
        let Some(screen) = &terminal.screen else { return Err(internal("not a terminal")) };
        let watch = terminal.ring.watch().map_err(internal)?;
        screen.enter();
        let mut viewer = Viewer {
            sandbox: self,
            caller,
            terminal: &terminal,
            screen,
            watch,
            next: terminal.ring.start(),
            live_from: terminal.ring.end(),
            live: false,
            room: true,
        };
        let last = viewer.run();
        if screen.leave() && screen.end_when_left {
            terminal.hang_up();
            self.reactor.wake();
        }
        Ok(last.ok())
    }
}

struct Viewer<'a> {
    sandbox: &'a Sandbox,
    caller: &'a Channel,
    terminal: &'a Background,
    screen: &'a Screen,
    watch: Watch,
    next: u64,
    /// What is before was shown before.
    live_from: u64,
    live: bool,
    /// Whether the caller can be sent something without waiting.
    room: bool,
}

impl Viewer<'_> {
    /// A caller that does not read loses what the ring has left behind by then, and still gets the
    /// end; meanwhile what it types is taken.
    fn run(&mut self) -> Result<Reply, ChannelError> {
        self.caller.send(&Reply::Terminal(info(self.terminal, true)), &[])?;
        loop {
            self.watch.clear();
            let piece = match self.room {
                true => self.terminal.ring.read(self.next, STEP),
                false => Piece::Nothing { next: self.next },
            };
            let more = matches!(piece, Piece::Bytes { .. });
            match piece {
                Piece::Bytes { from, bytes, .. } => self.show(from, &bytes)?,
                Piece::End { next } => {
                    return Ok(Reply::LogEnd { next, status: Some(self.terminal.status()) });
                }
                Piece::Nothing { .. } => {}
            }
            let caught_up = self.room && self.next >= self.live_from;
            if caught_up && !self.live && !self.terminal.ring.is_closed() {
                self.live = true;
                self.caller.send(&Reply::Live, &[])?;
            }
            self.wait(more)?;
        }
    }

    fn show(&mut self, from: u64, bytes: &[u8]) -> Result<(), ChannelError> {
        if from != self.next {
            self.caller.send(&Reply::Log { from }, &[])?;
        }
        self.next = from + bytes.len() as u64;
        self.caller.send_bytes(Kind::Output, bytes)
    }

    /// Waits for news, or only looks if there is more to show; takes what is typed.
    fn wait(&mut self, only_look: bool) -> Result<(), ChannelError> {
        let mut wanted = PollFlags::RDHUP;
        wanted.set(PollFlags::IN, self.screen.takes_more());
        // Room is waited for only by one who has none: it is there most of the time.
        wanted.set(PollFlags::OUT, !self.room || only_look);
        let mut set = [PollFd::new(self.caller, wanted), PollFd::new(&self.watch, PollFlags::IN)];
        poll_until(&mut set, only_look.then(Instant::now));
        let said = set[0].revents();
        if wanted.contains(PollFlags::OUT) {
            self.room = said.intersects(PollFlags::OUT | PollFlags::HUP | PollFlags::ERR);
        }
        if said.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::RDHUP) {
            return self.listen();
        }
        Ok(())
    }

    fn listen(&self) -> Result<(), ChannelError> {
        let frame = self.caller.receive_frame()?;
        match frame.kind {
            Kind::Input => {
                if self.screen.type_in(&frame.body) {
                    self.sandbox.reactor.wake();
                }
            }
            _ => match frame.message() {
                Ok(Control::Cancel) => return Err(ChannelError::Closed),
                Ok(Control::Signal(signal)) => {
                    self.terminal.signal(signal);
                    self.sandbox.reactor.wake();
                }
                Ok(Control::Resize { rows, columns }) => {
                    let size = Size { rows, columns };
                    // There is no answer to this: what cannot be is not done.
                    if size.check().is_ok() {
                        self.screen.resize(size);
                    }
                }
                Ok(Control::EndOfInput) | Err(_) => {}
            },
        }
        Ok(())
    }
}
