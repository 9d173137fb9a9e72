//! The last bytes of something that prints, kept for whoever wants to read them, now or later.
//!
//! A byte keeps its number for ever: readers say from where they want to go on, and learn when what
//! they asked for is no longer kept. The one who writes never waits for one who reads.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};

use crate::pump::poll_until;

/// Which of the two a byte was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

#[derive(Debug)]
pub(crate) struct Ring {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Runs of bytes of one stream, in order, without gaps.
    runs: VecDeque<Run>,
    /// The number of the first byte kept.
    start: u64,
    capacity: usize,
    closed: bool,
    bells: Vec<Weak<Bell>>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    stream: Stream,
    /// The number after its last byte.
    end: u64,
}

/// What there is to read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of one stream. `from` is later than asked for if what was there before is gone.
    Bytes { from: u64, stream: Stream, bytes: Vec<u8> },
    /// Nothing yet; `next` is the number the next byte will have.
    Nothing { next: u64 },
    /// Nothing, and nothing will come.
    End { next: u64 },
}

/// Short runs cost more than their bytes: one who writes to both streams in turn, byte by byte,
/// must not take more memory than one who does not.
const BYTES_PER_RUN: usize = 64;
const FEW_RUNS: usize = 16;

impl Ring {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: Mutex::new(Kept {
                bytes: VecDeque::new(),
                runs: VecDeque::new(),
                start: 0,
                capacity,
                closed: false,
                bells: Vec::new(),
            }),
        }
    }

    pub(crate) fn append(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut kept = self.kept.lock();
        kept.append(stream, bytes);
        kept.ring_bells(false);
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        let mut kept = self.kept.lock();
        kept.closed = true;
        kept.bytes.shrink_to_fit();
        kept.runs.shrink_to_fit();
        kept.ring_bells(true);
    }

    /// Gives up the bytes; their numbers stay used.
    pub(crate) fn discard(&self) {
        let mut kept = self.kept.lock();
        kept.start = kept.end();
        kept.bytes = VecDeque::new();
        kept.runs = VecDeque::new();
    }

    /// Wakes everyone who watches, without news.
    pub(crate) fn poke(&self) {
        self.kept.lock().ring_bells(false);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.kept.lock().closed
    }

    /// The number of the first byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.kept.lock().start
    }

    /// The number the next byte will have.
    pub(crate) fn end(&self) -> u64 {
        self.kept.lock().end()
    }

    /// How many bytes are kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.lock().bytes.len()
    }

    /// At most `most` bytes from a number on, all of one stream.
    pub(crate) fn read(&self, from: u64, most: usize) -> Piece {
        self.kept.lock().read(from, most)
    }

    /// Something that rings with every change.
    pub(crate) fn watch(&self) -> io::Result<Watch> {
        self.add_bell(false)
    }

    /// Something that rings when the ring is closed.
    pub(crate) fn watch_end(&self) -> io::Result<Watch> {
        self.add_bell(true)
    }

    fn add_bell(&self, only_end: bool) -> io::Result<Watch> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let bell = Arc::new(Bell { fd, only_end });
        let mut kept = self.kept.lock();
        kept.bells.push(Arc::downgrade(&bell));
        // What happened before is news for one who has not looked yet.
        bell.ring(kept.closed);
        Ok(Watch { bell })
    }
}

impl Kept {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        let end = self.end() + bytes.len() as u64;
        let skipped = bytes.len().saturating_sub(self.capacity);
        let tail = &bytes[skipped..];
        let surplus = (self.bytes.len() + tail.len()).saturating_sub(self.capacity);
        self.bytes.drain(..surplus);
        self.make_room(tail.len());
        self.bytes.extend(tail);
        self.start = end - self.bytes.len() as u64;
        match self.runs.back_mut() {
            Some(last) if last.stream == stream => last.end = end,
            _ => self.runs.push_back(Run { stream, end }),
        }
        self.forget_runs();
    }

    /// Grows by doubling, never beyond the capacity.
    fn make_room(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let wanted = (self.bytes.capacity() * 2).clamp(needed, self.capacity.max(needed));
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }

    fn forget_runs(&mut self) {
        while self.runs.front().is_some_and(|run| run.end <= self.start) {
            self.runs.pop_front();
        }
        while self.runs.len() > self.capacity / BYTES_PER_RUN + FEW_RUNS {
            let Some(run) = self.runs.pop_front() else { return };
            self.bytes.drain(..(run.end - self.start) as usize);
            self.start = run.end;
        }
    }

    fn read(&self, from: u64, most: usize) -> Piece {
        let from = from.clamp(self.start, self.end());
        let at = self.runs.partition_point(|run| run.end <= from);
        let Some(run) = self.runs.get(at) else {
            return match self.closed {
                true => Piece::End { next: from },
                false => Piece::Nothing { next: from },
            };
        };
        let begin = (from - self.start) as usize;
        let end = ((run.end - self.start) as usize).min(begin + most);
        let bytes = self.bytes.range(begin..end).copied().collect();
        Piece::Bytes { from, stream: run.stream, bytes }
    }

    fn ring_bells(&mut self, end: bool) {
        self.bells.retain(|bell| match bell.upgrade() {
            Some(bell) => {
                bell.ring(end);
                true
            }
            None => false,
        });
    }
}

#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    only_end: bool,
}

impl Bell {
    fn ring(&self, end: bool) {
        if end || !self.only_end {
            // Full means that it rings already.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}

/// Has something to read (for `poll`) from a change on until [`Watch::clear`].
#[derive(Debug)]
pub(crate) struct Watch {
    bell: Arc<Bell>,
}

impl Watch {
    /// To be called before looking, so that what comes while one looks rings again.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.bell.fd, &mut [0u8; 8]);
    }

    /// Whether it rang before the deadline.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        poll_until(&mut [PollFd::new(self, PollFlags::IN)], deadline)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn bytes(piece: Piece) -> (u64, Stream, Vec<u8>) {
        match piece {
            Piece::Bytes { from, stream, bytes } => (from, stream, bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_reader_gets_the_same_bytes_from_where_it_asks() {
        let ring = Ring::new(100);
        ring.append(Stream::Output, b"one");
        ring.append(Stream::Error, b"two");
        ring.append(Stream::Error, b"three");
        assert_eq!(bytes(ring.read(0, 99)), (0, Stream::Output, b"one".to_vec()));
        assert_eq!(bytes(ring.read(1, 99)), (1, Stream::Output, b"ne".to_vec()));
        assert_eq!(bytes(ring.read(3, 99)), (3, Stream::Error, b"twothree".to_vec()));
        assert_eq!(bytes(ring.read(3, 2)), (3, Stream::Error, b"tw".to_vec()));
        assert_eq!(ring.read(11, 99), Piece::Nothing { next: 11 });
        assert_eq!(ring.read(500, 99), Piece::Nothing { next: 11 });
        ring.close();
        assert_eq!(bytes(ring.read(10, 99)), (10, Stream::Error, b"e".to_vec()));
        assert_eq!(ring.read(11, 99), Piece::End { next: 11 });
    }

    #[test]
    fn what_is_gone_is_skipped_and_said() {
        let ring = Ring::new(4);
        ring.append(Stream::Output, b"abcdef");
        assert_eq!(bytes(ring.read(0, 99)), (2, Stream::Output, b"cdef".to_vec()));
        ring.append(Stream::Error, b"g");
        assert_eq!(bytes(ring.read(0, 99)), (3, Stream::Output, b"def".to_vec()));
        ring.discard();
        assert_eq!((ring.start(), ring.end(), ring.len()), (7, 7, 0));
    }

    #[test]
    fn a_watcher_is_woken_by_news_and_one_for_the_end_by_the_end_only() {
        let ring = Ring::new(4);
        let (all, end) = (ring.watch().unwrap(), ring.watch_end().unwrap());
        let now = || Some(Instant::now());
        all.clear();
        assert!(!all.wait(now()) && !end.wait(now()));
        ring.append(Stream::Output, b"x");
        assert!(all.wait(now()) && !end.wait(now()));
        ring.close();
        assert!(end.wait(Some(Instant::now() + Duration::from_secs(10))));
        assert!(ring.watch_end().unwrap().wait(now()), "it ended before");
    }

    #[test]
    fn streams_that_alternate_take_no_more_memory() {
        let ring = Ring::new(64 * 1024);
        for _ in 0..200_000 {
            ring.append(Stream::Output, b"o");
            ring.append(Stream::Error, b"e");
        }
        let kept = ring.kept.lock();
        assert!(kept.runs.len() <= 1024 + FEW_RUNS && kept.bytes.len() <= 64 * 1024);
        assert_eq!(kept.end(), 400_000);
    }

    proptest! {
        #[test]
        fn it_holds_the_tail_of_everything_written(
            writes in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..40),
            capacity in 1usize..600,
        ) {
            let ring = Ring::new(capacity);
            let mut all = Vec::new();
            for (error, bytes) in &writes {
                let stream = if *error { Stream::Error } else { Stream::Output };
                ring.append(stream, bytes);
                all.extend(bytes.iter().map(|byte| (stream, *byte)));
            }
            ring.close();
            let (mut next, mut read) = (ring.start(), Vec::new());
            while let Piece::Bytes { from, stream, bytes } = ring.read(next, 37) {
                prop_assert_eq!(from, next);
                next += bytes.len() as u64;
                read.extend(bytes.into_iter().map(|byte| (stream, byte)));
            }
            prop_assert_eq!(next, all.len() as u64);
            prop_assert!(ring.len() <= capacity);
            prop_assert_eq!(&read[..], &all[ring.start() as usize..]);
        }
    }
}
