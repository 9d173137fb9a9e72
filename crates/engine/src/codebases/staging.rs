//! The contents of many files, one after the other, for a commit.
//!
//! A source tree is many small files. What each of them would cost alone (looking the codebase up,
//! waiting for its turn, counting what is stored) is done once for many here.

use std::sync::Arc;

use crate::problem::{Problem, Result};
use crate::store::Digest;

use super::trouble::over_limit;
use super::upload::{Complete, Growing, STAGED_MODE};
use super::{Codebases, Inner};

/// Files that are put in their place together.
const TOGETHER: usize = 1024;
/// So many digests fit into an answer of 4 MiB, which is what most clients take.
const MOST_FILES: u64 = 50_000;

/// A part of a file.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'d> {
    pub data: &'d [u8],
    /// The file ends with it.
    pub end: bool,
}

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingDone {
    /// Of the files in the order they came, in hexadecimal digits.
    pub blake3: Vec<String>,
    pub bytes: u64,
}

/// Files that are being sent. Those that are complete are kept, however this ends.
#[derive(Debug)]
pub struct Staging {
    inner: Arc<Inner>,
    account: String,
    id: String,
    /// What the account could store here when this began.
    room: u64,
    growing: Option<Growing>,
    complete: Vec<Complete>,
    /// Not the constant, so that a test need not send as many.
    pub(super) most_files: u64,
    digests: Vec<Digest>,
    bytes: u64,
}

impl Codebases {
    pub fn begin_staging(&self, account: &str, id: &str) -> Result<Staging> {
        let codebase = self.inner.stored_record(account, id)?;
        Ok(Staging {
            room: self.inner.room(&codebase)?,
            inner: self.inner.clone(),
            account: account.to_owned(),
            id: id.to_owned(),
            growing: None,
            complete: Vec::new(),
            most_files: MOST_FILES,
            digests: Vec::new(),
            bytes: 0,
        })
    }
}

impl Staging {
    /// The next pieces. After a problem this can only be dropped.
    pub fn take<'d>(&mut self, pieces: impl IntoIterator<Item = Piece<'d>>) -> Result<()> {
        self.inner.touch(&self.id);
        let taken = pieces.into_iter().try_for_each(|piece| self.take_piece(piece));
        // Also what came before a problem.
        let kept = self.keep();
        taken.and(kept)
    }

    fn take_piece(&mut self, piece: Piece<'_>) -> Result<()> {
        let mut growing = match self.growing.take() {
            Some(growing) => growing,
            None => self.begin_file()?,
        };
        growing.write(piece.data, &self.inner, self.room)?;
        match piece.end {
            false => self.growing = Some(growing),
            true => self.end_file(growing)?,
        }
        Ok(())
    }

    fn begin_file(&self) -> Result<Growing> {
        let most = self.most_files;
        match self.digests.len() as u64 >= most {
            true => Err(over_limit("max_files_of_a_stream", most, "these are too many files")
                .with("hint", "send the rest in another stream")),
            false => self.inner.begin_file(&self.id),
        }
    }

    fn end_file(&mut self, growing: Growing) -> Result<()> {
        let complete = growing.complete(STAGED_MODE)?;
        self.digests.push(complete.digest);
        self.bytes += complete.stamp.size;
        self.complete.push(complete);
        match self.complete.len() < TOGETHER {
            true => Ok(()),
            false => self.keep(),
        }
    }

    fn keep(&mut self) -> Result<()> {
        match self.complete.is_empty() {
            true => Ok(()),
            false => self.inner.stage(&self.account, &self.id, std::mem::take(&mut self.complete)),
        }
    }

    pub fn finish(self) -> Result<StagingDone> {
        if self.growing.is_some() {
            return Err(Problem::invalid("the stream ended in the middle of a file"));
        }
        let blake3 = self.digests.iter().map(|digest| digest.to_hex().to_string()).collect();
        Ok(StagingDone { blake3, bytes: self.bytes })
    }
}
