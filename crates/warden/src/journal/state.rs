//! Appending: a hash and a buffer, what is folded, what is left out, and when it reaches the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::event::{Access, Decision, Event, EventsLost, Limit, LimitHit, Lost};
use super::fold::Window;
use super::head::{self, Head, Record};
use super::line::seal;
use super::verify::Verified;
use super::write::Options;
use super::{JOURNAL_FILE, JournalError};

/// The buffer is written out when it is this big, even before its time.
const BUFFER: usize = 64 << 10;
/// While the disk cannot be written this much is held, and then accesses are only counted.
const HELD: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct State {
    pub(super) path: PathBuf,
    file: File,
    head_file: File,
    size_cap: u64,
    /// Where the buffer belongs in the file. Writing there again after a failure does no harm.
    offset: u64,
    buffer: Vec<u8>,
    window: Window,
    /// The last entry in the buffer, and the last that is in the file with its head.
    sealed: Head,
    pub(super) written: Head,
    /// Accesses left out since the last entry that said so.
    over_size: u64,
    unwritable: u64,
    cap_told: bool,
    closed: bool,
    /// The thread that writes out is to end.
    pub(super) stopping: bool,
}

impl State {
    pub(super) fn open(
        dir: &Path,
        file: File,
        options: Options,
        verified: &Verified,
    ) -> Result<Self, JournalError> {
        let path = dir.join(JOURNAL_FILE);
        file.set_len(verified.size)
            .map_err(|e| JournalError::io("cut the torn end of", &path, e))?;
        let head_file =
            head::open(dir).map_err(|e| JournalError::io("open the head of", &path, e))?;
        let mut state = Self {
            path,
            file,
            head_file,
            size_cap: options.size_cap,
            offset: verified.size,
            buffer: Vec::with_capacity(2 * BUFFER),
            window: Window::default(),
            sealed: verified.head,
            written: verified.head,
            over_size: 0,
            unwritable: 0,
            cap_told: false,
            closed: false,
            stopping: false,
        };
        // Before the first entry, or a crash right after it would leave one behind the end.
        state.write_head(false)?;
        Ok(state)
    }

    /// Whether nothing waits to be written, the head included.
    pub(super) fn is_idle(&self) -> bool {
        self.window.is_empty() && self.written == self.sealed
    }

    pub(super) fn append(&mut self, event: Event, now: SystemTime) -> Result<(), JournalError> {
        if self.closed {
            return Err(JournalError::Closed);
        }
        match event {
            Event::Access(access) => self.access(access, now),
            other => self.other(&other, now),
        }
        if self.buffer.len() >= BUFFER { self.write_out() } else { Ok(()) }
    }

    fn access(&mut self, access: Access, now: SystemTime) {
        if let Some(why) = self.no_room_for(&access) {
            return self.leave_out(access.count, why, now);
        }
        if let Some((oldest, first)) = self.window.push(access, now) {
            self.seal(&Event::Access(oldest), first);
        }
    }

    /// An entry that is no access: everything before it is told first, so that order is kept.
    fn other(&mut self, event: &Event, now: SystemTime) {
        self.drain_window();
        self.tell_what_was_left_out(now);
        self.seal(event, now);
    }

    fn no_room_for(&self, access: &Access) -> Option<Lost> {
        let size = self.offset + self.buffer.len() as u64;
        let cap = match access.decision {
            Decision::Granted => self.size_cap,
            Decision::Denied => self.size_cap.saturating_mul(2),
        };
        match self.buffer.len() > HELD {
            true => Some(Lost::NotWritable),
            false => (size >= cap).then_some(Lost::JournalSize),
        }
    }

    fn leave_out(&mut self, count: u64, why: Lost, now: SystemTime) {
        if why == Lost::NotWritable {
            self.unwritable += count;
            return;
        }
        if !std::mem::replace(&mut self.cap_told, true) {
            self.other(
                &Event::LimitHit(LimitHit { limit: Limit::JournalSize, command: None }),
                now,
            );
        }
        self.over_size += count;
    }

    fn tell_what_was_left_out(&mut self, now: SystemTime) {
        let counts = [
            (std::mem::take(&mut self.over_size), Lost::JournalSize),
            (std::mem::take(&mut self.unwritable), Lost::NotWritable),
        ];
        for (count, why) in counts.into_iter().filter(|(count, _)| *count > 0) {
            self.seal(&Event::EventsLost(EventsLost { count, why }), now);
        }
    }

    fn drain_window(&mut self) {
        while let Some((access, first)) = self.window.pop() {
            self.seal(&Event::Access(access), first);
        }
    }

    fn seal(&mut self, event: &Event, at: SystemTime) {
        let seq = self.sealed.seq + 1;
        let hash = seal(&mut self.buffer, seq, self.sealed.hash, event, at);
        self.sealed = Head { seq, hash };
    }

    pub(super) fn flush(&mut self) -> Result<(), JournalError> {
        self.drain_window();
        self.write_out()
    }

    fn write_out(&mut self) -> Result<(), JournalError> {
        if self.written == self.sealed {
            return Ok(());
        }
        self.file.write_all_at(&self.buffer, self.offset).map_err(|e| self.io("write", e))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(2 * BUFFER);
        self.write_head(false)
    }

    fn write_head(&mut self, closed: bool) -> Result<(), JournalError> {
        let record = Record { head: self.sealed, closed };
        head::write(&self.head_file, record).map_err(|e| self.io("write the head of", e))?;
        self.written = self.sealed;
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), JournalError> {
        if self.closed {
            return Ok(());
        }
        self.drain_window();
        self.tell_what_was_left_out(SystemTime::now());
        self.write_out()?;
        self.file.sync_all().map_err(|e| self.io("sync", e))?;
        self.write_head(true)?;
        self.head_file.sync_all().map_err(|e| self.io("sync the head of", e))?;
        self.closed = true;
        Ok(())
    }

    fn io(&self, step: &'static str, e: io::Error) -> JournalError {
        JournalError::io(step, &self.path, e)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::SandboxEnded;
    use super::super::line::origin;
    use super::super::verify::{Ending, verify};
    use super::*;
    use std::fs::OpenOptions;

    fn event() -> Event {
        Event::SandboxEnded(SandboxEnded { reason: "x".repeat(1000), clean: true })
    }

    fn access(number: u32) -> Event {
        let text = format!(
            r#"{{"kind":"access","operation":"read","path":"/{number}","decision":"granted",
                "needed":"read","level":"read","pid":1}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn state(dir: &Path) -> State {
        let head = Head { seq: 0, hash: origin("sb") };
        head::create(dir, Record { head, closed: false }).unwrap();
        let file = File::create(dir.join(JOURNAL_FILE)).unwrap();
        let verified = Verified { head, ending: Ending::InOrder, size: 0 };
        State::open(dir, file, Options::default(), &verified).unwrap()
    }

    #[test]
    fn what_cannot_be_written_is_held_counted_and_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = state(dir.path());
        let (now, path) = (SystemTime::now(), dir.path().join(JOURNAL_FILE));
        let created = r#"{"kind":"journal_created","sandbox":"sb","format":1}"#;
        state.append(serde_json::from_str(created).unwrap(), now).unwrap();
        state.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let failed = (0..6000).filter(|_| state.append(event(), now).is_err()).count();
        assert!(failed > 5000, "{failed}");
        (0..50).for_each(|number| drop(state.append(access(number), now)));
        assert!(state.flush().is_err());
        assert_eq!((state.unwritable, state.is_idle()), (50, false));

        state.file = OpenOptions::new().write(true).open(&path).unwrap();
        state.close().unwrap();
        let verified = verify(dir.path(), "sb").unwrap();
        assert_eq!((verified.head.seq, verified.ending), (6002, Ending::InOrder));
    }
}
