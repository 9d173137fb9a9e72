//! One entry as a line, and the chain that binds it to all before it.
//!
//! A line is `{"seq":N,"time":"…","kind":"…",…,"hash":"…"}`. The hash is BLAKE3 over the hash before
//! it and the bytes of the line up to the comma in front of `"hash"`. The bytes as they stand are
//! hashed, never a parsed and rewritten form, so that there is nothing to disagree about.

use std::io::Write;
use std::time::SystemTime;

use blake3::{Hash, Hasher};
use serde::{Deserialize, Serialize};

use super::event::{Event, Oversized};
use super::time::rfc3339;

/// No line is longer, its end included. A reader can rely on it.
pub(super) const LONGEST_LINE: usize = 1 << 20;

const START: &[u8] = b"{\"seq\":";
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
const HASH_DIGITS: usize = 2 * blake3::OUT_LEN;
const SEAL: usize = BEFORE_HASH.len() + HASH_DIGITS + AFTER_HASH.len();

/// One entry as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    pub time: String,
    #[serde(flatten)]
    pub event: Event,
    pub hash: String,
}

/// What the first entry chains from. It depends on the sandbox, so that the journal of another one
/// does not verify here.
pub(super) fn origin(sandbox: &str) -> Hash {
    Hash::from_bytes(blake3::derive_key("ringfence audit journal 1", sandbox.as_bytes()))
}

/// Writes an entry behind what is in `out` and returns its hash.
pub(super) fn seal(
    out: &mut Vec<u8>,
    seq: u64,
    before: Hash,
    event: &Event,
    at: SystemTime,
) -> Hash {
    let start = out.len();
    let time = rfc3339(at);
    push(out, format_args!("{{\"seq\":{seq},\"time\":\"{time}\""));
    push_event(out, event);
    let hash = chained(before, &out[start..]);
    push(out, format_args!(",\"hash\":\"{}\"}}\n", hash.to_hex()));
    hash
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector cannot fail");
}

/// The event's fields as further fields of the object that was begun.
fn push_event(out: &mut Vec<u8>, event: &Event) {
    let brace = out.len();
    serde_json::to_writer(&mut *out, event).expect("events are plain data with text keys");
    if out.len() - brace > LONGEST_LINE / 2 {
        let oversized = stand_in(&out[brace..]);
        out.truncate(brace);
        return push_event(out, &oversized);
    }
    out[brace] = b',';
    out.pop();
}

fn stand_in(event: &[u8]) -> Event {
    let blake3 = blake3::hash(event).to_string();
    Event::Oversized(Oversized { size: event.len() as u64, blake3 })
}

fn chained(before: Hash, sealed: &[u8]) -> Hash {
    Hasher::new().update(before.as_bytes()).update(sealed).finalize()
}

/// A line taken apart as far as the chain is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed<'a> {
    pub(super) seq: u64,
    bytes: &'a [u8],
    digits: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// `line` is without its end. None if it cannot be an entry.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (bytes, seal) = line.split_at_checked(line.len().checked_sub(SEAL)?)?;
        let digits = seal.strip_prefix(BEFORE_HASH)?.strip_suffix(AFTER_HASH)?;
        let rest = bytes.strip_prefix(START)?;
        let end = rest.iter().position(|byte| *byte == b',')?;
        let seq = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        Some(Self { seq, bytes, digits })
    }

    /// The hash of this line behind `before`, if it is the one it carries.
    pub(super) fn follows(&self, before: Hash) -> Option<Hash> {
        let hash = chained(before, self.bytes);
        (hash.to_hex().as_bytes() == self.digits).then_some(hash)
    }
}
