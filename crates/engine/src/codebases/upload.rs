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
use super::trouble::{cannot_write, over_limit};
use super::{Codebases, Inner, manifest, path};

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
    aside: Aside,
    md5: md5::Md5,
    blake3: Box<blake3::Hasher>,
    size: u64,
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

/// The file as long as it is not in its place. Closed before its name is removed.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) file: File,
    pub(super) scratch: Scratch,
}

/// A complete file that waits to be put in its place.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) aside: Aside,
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
            aside: self.inner.aside(id)?,
            inner: self.inner.clone(),
            account: account.to_owned(),
            id: id.to_owned(),
            target,
            md5: md5::Md5::new(),
            blake3: Box::default(),
            size: 0,
            head: Vec::with_capacity(4),
        })
    }
}

impl Inner {
    fn aside(&self, id: &str) -> Result<Aside> {
        let scratch = self.place(id).scratch();
        let file = File::options().write(true).create_new(true).mode(0o600).open(scratch.path());
        Ok(Aside { file: file.map_err(cannot_write)?, scratch })
    }
}

impl Upload {
    /// The next bytes. After a problem the upload can only be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let size = self.size.saturating_add(bytes.len() as u64);
        let limits = self.inner.limits;
        if size > limits.max_file_size {
            return Err(over_limit("max_file_size", limits.max_file_size, "the file is too big"));
        }
        if size > limits.max_codebase_size {
            let most = limits.max_codebase_size;
            return Err(over_limit("max_codebase_size", most, "the codebase gets too big"));
        }
        if size > self.room {
            let most = limits.max_account_size;
            return Err(over_limit("max_account_size", most, "the account stores too much"));
        }
        self.aside.file.write_all(bytes).map_err(cannot_write)?;
        self.inner.touch(&self.id);
        self.size = size;
        let missing = 4 - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.md5.update(bytes);
        self.blake3.update(bytes);
        Ok(())
    }

    /// Puts the file in its place: until this has returned, whatever was there is there.
    pub fn finish(self) -> Result<UploadDone> {
        let mode = match self.target {
            Target::File(_, mode) => file_mode(mode, &self.head),
            Target::Stage(_) => 0o644,
        };
        let done = UploadDone {
            size: self.size,
            md5: self.md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            blake3: self.blake3.finalize().to_hex().to_string(),
        };
        let complete = complete(self.aside, self.blake3.finalize(), mode)?;
        match self.target {
            Target::File(path, _) => self.inner.put(&self.account, &self.id, &path, complete)?,
            Target::Stage(Some(expected)) if expected != complete.digest => {
                return Err(Problem::invalid(format!(
                    "the content does not have the digest {expected}"
                )));
            }
            Target::Stage(_) => self.inner.stage(&self.account, &self.id, complete)?,
        }
        Ok(done)
    }
}

fn complete(aside: Aside, digest: Digest, mode: u32) -> Result<Complete> {
    rustix::fs::fchmod(&aside.file, Mode::from_raw_mode(mode)).map_err(cannot_write)?;
    // After a loss of power the file is there as a whole or not at all, and nobody waits.
    ringfence_sys::files::start_writeback(&aside.file);
    let stamp = Stamp::of(&rustix::fs::fstat(&aside.file).map_err(cannot_write)?);
    Ok(Complete { aside, digest, mode, stamp })
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
