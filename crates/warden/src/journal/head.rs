//! The head of the chain, kept outside the journal: how far it goes and which hash it ends with.
//!
//! `journal.head` is one line of fixed size, overwritten in place:
//! `ringfence-head 1 SEQ HASH open|done CHECK`. The check tells a half written or damaged record
//! from one that contradicts the journal; it is no secret.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::str::FromStr;

use blake3::Hash;

use super::HEAD_FILE;

/// How far a journal goes and the hash of its last entry. Zero entries have the hash the first one
/// chains from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub seq: u64,
    pub hash: Hash,
}

/// `SEQ:HASH`, for keeping it elsewhere.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash.to_hex())
    }
}

/// Text that is not `SEQ:HASH`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a head is written SEQ:HASH, with 64 hexadecimal digits")]
pub struct NotAHead;

impl FromStr for Head {
    type Err = NotAHead;

    fn from_str(text: &str) -> Result<Self, NotAHead> {
        let (seq, hash) = text.split_once(':').ok_or(NotAHead)?;
        let hash = Hash::from_hex(hash).map_err(|_| NotAHead)?;
        Ok(Self { seq: seq.parse().map_err(|_| NotAHead)?, hash })
    }
}

/// What `journal.head` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) head: Head,
    /// The journal was closed in order, so nothing comes after.
    pub(super) closed: bool,
}

const CHECK_DIGITS: usize = 16;
/// A reader may see a record that is being overwritten; it is whole again in no time.
const TRIES: usize = 100;

impl Record {
    fn to_line(self) -> String {
        let state = if self.closed { "done" } else { "open" };
        let text =
            format!("ringfence-head 1 {:020} {} {state}", self.head.seq, self.head.hash.to_hex());
        format!("{text} {}\n", check(&text))
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.strip_suffix('\n')?.split(' ').collect();
        let ["ringfence-head", "1", seq, hash, state, _check] = fields[..] else { return None };
        let head = Head { seq: seq.parse().ok()?, hash: Hash::from_hex(hash).ok()? };
        let record = Self { head, closed: state == "done" };
        // There is exactly one spelling of a record, and this compares the check as well.
        (record.to_line() == line).then_some(record)
    }
}

fn check(text: &str) -> String {
    let mut digits = blake3::hash(text.as_bytes()).to_string();
    digits.truncate(CHECK_DIGITS);
    digits
}

/// Makes the file, whole from the first moment on.
pub(super) fn create(dir: &Path, record: Record) -> io::Result<File> {
    let (path, new) = (dir.join(HEAD_FILE), dir.join("journal.head.new"));
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    write(&file, record)?;
    fs::rename(&new, &path)?;
    Ok(file)
}

pub(super) fn open(dir: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(dir.join(HEAD_FILE))
}

pub(super) fn write(file: &File, record: Record) -> io::Result<()> {
    file.write_all_at(record.to_line().as_bytes(), 0)
}

/// How far the journal in `dir` goes, by its head alone. None if that is missing or damaged.
pub fn last(dir: &Path) -> io::Result<Option<Head>> {
    match read(dir) {
        Ok(record) => Ok(record.map(|record| record.head)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The record; `None` if it is damaged.
pub(super) fn read(dir: &Path) -> io::Result<Option<Record>> {
    for _ in 0..TRIES {
        let bytes = fs::read(dir.join(HEAD_FILE))?;
        if let Some(record) = std::str::from_utf8(&bytes).ok().and_then(Record::parse) {
            return Ok(Some(record));
        }
        std::thread::yield_now();
    }
    Ok(None)
}
