//! Writing a file: streamed to a place of its own, and put where it belongs when it is complete.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use md5::Digest as _;
use ringfence_policy::WorkspacePath;
use rustix::fs::Mode;

use crate::problem::{Problem, Result};
use crate::store::{Digest, Stamp};

use super::scratch::Scratch;
use super::trouble::cannot_write;
use super::{Codebases, Inner, manifest, path};

/// Whoever takes a staged file gives it another.
pub(super) const STAGED_MODE: u32 = 0o644;

/// Where the bytes of an upload go.
#[derive(Debug, Clone)]
pub enum UploadTarget {
    /// A file of the codebase. Without a mode, programs (by their first bytes) may be executed.
    File { path: String, mode: Option<u32> },
    /// Content for a commit. If its digest is known it must be this one.
    Stage { digest: Option<String> },
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadDone {
    pub size: u64,
    /// In hexadecimal digits, as the next.
    pub md5: String,
    pub blake3: String,
}

/// A file that is being sent. Nothing is left of it unless it is finished.
#[derive(Debug)]
pub struct Upload {
    inner: Arc<Inner>,
    account: String,
    id: String,
    target: Target,
    growing: Growing,
    md5: md5::Md5,
    /// The first bytes, which tell programs apart.
    head: Vec<u8>,
    /// What the account could store here when this began; what is in the way is told at the end.
    room: u64,
}

#[derive(Debug)]
enum Target {
    File(WorkspacePath, Option<u32>),
    Stage(Option<Digest>),
}

/// A file of which more is to come, in a place of its own.
#[derive(Debug)]
pub(super) struct Growing {
    // Closed before its name is removed.
    file: File,
    scratch: Scratch,
    blake3: Box<blake3::Hasher>,
    size: u64,
}

/// A complete file that waits to be put in its place.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) scratch: Scratch,
    pub(super) digest: Digest,
    pub(super) mode: u32,
    pub(super) stamp: Stamp,
}

impl Codebases {
    pub fn begin_upload(&self, account: &str, id: &str, target: UploadTarget) -> Result<Upload> {
        let target = match target {
            UploadTarget::File { path, mode } => Target::File(path::parse_file(path)?, mode),
            UploadTarget::Stage { digest: None } => Target::Stage(None),
            UploadTarget::Stage { digest: Some(digest) } => {
                Target::Stage(Some(manifest::parse_digest(&digest)?))
            }
        };
        let codebase = self.inner.stored_record(account, id)?;
        Ok(Upload {
            room: self.inner.room(&codebase)?,
            growing: self.inner.begin_file(id)?,
            inner: self.inner.clone(),
            account: account.to_owned(),
            id: id.to_owned(),
            target,
            md5: md5::Md5::new(),
            head: Vec::with_capacity(4),
        })
    }
}

impl Inner {
    /// An empty file beside those of the codebase.
    pub(super) fn begin_file(&self, id: &str) -> Result<Growing> {
        let scratch = self.place(id).scratch();
        let file = File::options().write(true).create_new(true).mode(0o600).open(scratch.path());
        let file = file.map_err(cannot_write)?;
        Ok(Growing { file, scratch, blake3: Box::default(), size: 0 })
    }
}

impl Growing {
    /// The next bytes, if that leaves the file within all limits.
    pub(super) fn write(&mut self, bytes: &[u8], inner: &Inner, room: u64) -> Result<()> {
        let size = self.size.saturating_add(bytes.len() as u64);
        inner.check_growth(size, room)?;
        self.file.write_all(bytes).map_err(cannot_write)?;
        self.blake3.update(bytes);
        self.size = size;
        Ok(())
    }

    pub(super) fn complete(self, mode: u32) -> Result<Complete> {
        let Self { file, scratch, blake3, .. } = self;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(cannot_write)?;
        // After a loss of power the file is there as a whole or not at all, and nobody waits.
        ringfence_sys::files::start_writeback(&file);
        let stamp = Stamp::of(&rustix::fs::fstat(&file).map_err(cannot_write)?);
        Ok(Complete { scratch, digest: blake3.finalize(), mode, stamp })
    }
}

impl Upload {
    /// The next bytes. After a problem the upload can only be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.growing.write(bytes, &self.inner, self.room)?;
        self.inner.touch(&self.id);
        let missing = 4 - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.md5.update(bytes);
        Ok(())
    }

    /// Puts the file in its place: until this has returned, whatever was there is there.
    pub fn finish(self) -> Result<UploadDone> {
        let mode = match self.target {
            Target::File(_, mode) => file_mode(mode, &self.head),
            Target::Stage(_) => STAGED_MODE,
        };
        let complete = self.growing.complete(mode)?;
        let done = UploadDone {
            size: complete.stamp.size,
            md5: self.md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            blake3: complete.digest.to_hex().to_string(),
        };
        match self.target {
            Target::File(path, _) => self.inner.put(&self.account, &self.id, &path, complete)?,
            Target::Stage(Some(expected)) if expected != complete.digest => {
                return Err(Problem::invalid(format!(
                    "the content does not have the digest {expected}"
                )));
            }
            Target::Stage(_) => self.inner.stage(&self.account, &self.id, vec![complete])?,
        }
        Ok(done)
    }
}

/// Permission bits as they are asked for, but never such that the server could not replace the file.
pub(super) fn given_mode(mode: u32) -> u32 {
    mode & 0o777 | 0o600
}

fn file_mode(given: Option<u32>, head: &[u8]) -> u32 {
    match given {
        Some(mode) => given_mode(mode),
        None if head.starts_with(b"#!") || head.starts_with(b"\x7fELF") => 0o755,
        None => 0o644,
    }
}
