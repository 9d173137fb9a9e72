//! The record of a terminal: every byte by reference, and a recording if one was asked for.

use std::sync::Arc;

use super::cast::Cast;
use super::screen::Size;
use crate::journal::event::{Direction, TerminalBytes};
use crate::journal::{Event, Journal};

/// Bytes per entry of the journal.
const STRETCH: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Account {
    id: String,
    journal: Arc<Journal>,
    typed: Digest,
    shown: Digest,
    cast: Option<Cast>,
}

#[derive(Debug)]
struct Digest {
    direction: Direction,
    offset: u64,
    size: u64,
    hasher: Box<blake3::Hasher>,
}

impl Account {
    pub(super) fn new(id: &str, journal: Arc<Journal>) -> Self {
        let [typed, shown] = [Direction::Typed, Direction::Shown].map(Digest::new);
        Self { id: id.into(), journal, typed, shown, cast: None }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn record_to(&mut self, cast: Cast) {
        self.cast = Some(cast);
    }

    pub(super) fn typed(&mut self, bytes: &[u8]) {
        let (id, journal) = (&self.id, &self.journal);
        self.typed.add(bytes, |entry| write(journal, id, entry));
    }

    pub(super) fn shown(&mut self, bytes: &[u8]) {
        let (id, journal) = (&self.id, &self.journal);
        self.shown.add(bytes, |entry| write(journal, id, entry));
        if let Some(cast) = &mut self.cast {
            cast.show(bytes);
        }
    }

    pub(super) fn resized(&mut self, size: Size) {
        if let Some(cast) = &mut self.cast {
            cast.resize(size);
        }
    }

    /// Writes what has no entry yet.
    pub(super) fn close(&mut self) {
        let (id, journal) = (&self.id, &self.journal);
        for digest in [&mut self.typed, &mut self.shown] {
            digest.end(|entry| write(journal, id, entry));
        }
        if let Some(cast) = self.cast.take() {
            cast.close();
        }
    }
}

fn write(journal: &Journal, id: &str, entry: TerminalBytes) {
    // The journal itself counts what it could not write.
    let _ = journal.append(Event::TerminalBytes(TerminalBytes { terminal: id.into(), ..entry }));
}

impl Digest {
    fn new(direction: Direction) -> Self {
        Self { direction, offset: 0, size: 0, hasher: Box::default() }
    }

    /// Every entry is for a whole stretch, however the bytes came.
    fn add(&mut self, mut bytes: &[u8], mut entry: impl FnMut(TerminalBytes)) {
        while !bytes.is_empty() {
            let now = bytes.len().min((STRETCH - self.size) as usize);
            self.hasher.update(&bytes[..now]);
            self.size += now as u64;
            bytes = &bytes[now..];
            if self.size == STRETCH {
                self.end(&mut entry);
            }
        }
    }

    fn end(&mut self, entry: impl FnOnce(TerminalBytes)) {
        if self.size == 0 {
            return;
        }
        entry(TerminalBytes {
            terminal: String::new(),
            direction: self.direction,
            offset: self.offset,
            size: self.size,
            blake3: self.hasher.finalize().to_string(),
        });
        self.offset += self.size;
        self.size = 0;
        self.hasher.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_one_entry_and_the_hash_is_of_these_bytes() {
        let bytes: Vec<u8> = (0..STRETCH as usize * 2 + 5).map(|i| (i % 251) as u8).collect();
        let (mut digest, mut entries) = (Digest::new(Direction::Shown), Vec::new());
        bytes.chunks(100_000).for_each(|chunk| digest.add(chunk, |entry| entries.push(entry)));
        digest.end(|entry| entries.push(entry));
        digest.end(|entry| entries.push(entry));
        let ends: Vec<u64> = entries.iter().map(|entry| entry.offset + entry.size).collect();
        assert_eq!(ends, [STRETCH, 2 * STRETCH, 2 * STRETCH + 5]);
        for entry in entries {
            let part = &bytes[entry.offset as usize..][..entry.size as usize];
            assert_eq!(entry, TerminalBytes::of("", Direction::Shown, entry.offset, part));
        }
    }
}
