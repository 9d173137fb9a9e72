//! Reading entries, also while they are written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_sys::files::Locked;
use rustix::fs::{FlockOperation, flock};

use super::line::{Entry, LONGEST_LINE};
use super::{JOURNAL_FILE, JournalError};

/// How often a follower looks for more.
const POLL: Duration = Duration::from_millis(100);

/// Why an entry could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error("line {line} of the journal is not an entry: {source}")]
    NotAnEntry { line: u64, source: serde_json::Error },
    #[error("line {line} of the journal is too long to be an entry")]
    TooLong { line: u64 },
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A line as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Counted from 1.
    pub number: u64,
    /// Without the line's end.
    pub bytes: Vec<u8>,
}

impl StoredLine {
    pub fn entry(&self) -> Result<Entry, ReadError> {
        serde_json::from_slice(&self.bytes)
            .map_err(|source| ReadError::NotAnEntry { line: self.number, source })
    }
}

/// The complete lines of a journal, as far as it goes now. Nothing is verified.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// Complete lines read so far, and where the next one begins.
    number: u64,
    offset: u64,
    torn: u64,
}

/// The entries of the journal in `dir`, oldest first. Nothing is verified, and an entry that was
/// torn by a crash is left out.
pub fn read(dir: &Path) -> Result<impl Iterator<Item = Result<Entry, ReadError>>, ReadError> {
    Ok(Lines::open(dir)?.map(|line| line?.entry()))
}

/// The lines of the journal in `dir` after number `from`, waiting for more as long as somebody
/// writes it.
pub fn follow(dir: &Path, from: u64) -> Result<Follow, ReadError> {
    Ok(Follow { lines: Lines::open(dir)?, from, last_look: false })
}

impl Lines {
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let path = dir.join(JOURNAL_FILE);
        match File::open(&path) {
            Ok(file) => Ok(Self::new(path, file)),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    fn new(path: PathBuf, file: File) -> Self {
        let reader = BufReader::with_capacity(64 << 10, file);
        Self { path, reader, number: 0, offset: 0, torn: 0 }
    }

    /// Where the complete lines read so far end.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The size of the incomplete line that was found at the end.
    pub(super) fn torn(&self) -> u64 {
        self.torn
    }

    /// Whether somebody has this journal open for writing.
    pub(super) fn is_written(&self) -> bool {
        Locked::is_held(self.reader.get_ref())
    }

    fn read_line(&mut self) -> Result<Option<StoredLine>, ReadError> {
        let mut bytes = Vec::new();
        let mut limited = self.reader.by_ref().take(LONGEST_LINE as u64);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|source| self.io(source))?;
        if bytes.pop_if(|byte| *byte == b'\n').is_none() {
            return self.incomplete(read);
        }
        self.number += 1;
        self.offset += read as u64;
        Ok(Some(StoredLine { number: self.number, bytes }))
    }

    /// Goes back to the start of the line, which may be complete or gone when it is next asked for.
    fn incomplete(&mut self, read: usize) -> Result<Option<StoredLine>, ReadError> {
        if read == LONGEST_LINE {
            return Err(ReadError::TooLong { line: self.number + 1 });
        }
        self.torn = read as u64;
        self.reader.seek(SeekFrom::Start(self.offset)).map_err(|source| self.io(source))?;
        Ok(None)
    }

    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.clone(), source }
    }
}

impl Iterator for Lines {
    type Item = Result<StoredLine, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}

/// See [`follow`]. Ends when all was read and nobody writes the journal any more.
#[derive(Debug)]
pub struct Follow {
    lines: Lines,
    from: u64,
    last_look: bool,
}

impl Follow {
    /// The next line that is there already.
    pub fn next_now(&mut self) -> Option<Result<StoredLine, ReadError>> {
        let from = self.from;
        self.lines.find(|line| line.as_ref().map_or(true, |line| line.number > from))
    }
}

impl Iterator for Follow {
    type Item = Result<StoredLine, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.next_now();
            // The writer may have written and gone between the look before and this one.
            if line.is_some() || self.last_look {
                return line;
            }
            match self.lines.is_written() {
                true => std::thread::sleep(POLL),
                false => self.last_look = true,
            }
        }
    }
}

/// Takes the lock that says "being written". A reader who asks whether it is taken holds it for a
/// moment, so one refusal is not believed.
pub(super) fn lock_for_writing(file: &File, path: &Path) -> Result<(), JournalError> {
    for _ in 0..50 {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(2)),
            result => return result.map_err(|e| JournalError::io("lock", path, e)),
        }
    }
    Err(JournalError::InUse { path: path.into() })
}
