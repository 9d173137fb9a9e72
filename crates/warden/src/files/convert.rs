//! What the filesystem says, in the words of the link. The engine says it in the same words where no
//! warden runs.

use std::time::{SystemTime, UNIX_EPOCH};

use ringfence_fs::changes::{Change, ChangeKind, EntryKind};
use ringfence_fs::files::{Entry, FileError, FileErrorKind};
use ringfence_link::files as link;
use ringfence_link::warden::{Code, Failure};

use crate::sandbox::failure;

pub fn entry_to_link(entry: Entry) -> link::Entry {
    link::Entry {
        path: entry.path.as_bytes().to_vec(),
        kind: kind_to_link(entry.kind),
        size: entry.size,
        mode: entry.mode,
        modified_ns: nanoseconds(entry.modified),
        target: entry.target,
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let (distance, sign) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (after, 1),
        Err(before) => (before.duration(), -1),
    };
    i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX) * sign
}

fn kind_to_link(kind: EntryKind) -> link::EntryKind {
    match kind {
        EntryKind::File => link::EntryKind::File,
        EntryKind::Directory => link::EntryKind::Directory,
        EntryKind::Symlink => link::EntryKind::Symlink,
        EntryKind::Fifo => link::EntryKind::Fifo,
        EntryKind::Socket => link::EntryKind::Socket,
        EntryKind::Device => link::EntryKind::Device,
    }
}

pub fn changes_to_link(changes: &[Change]) -> Vec<link::LayerChange> {
    changes.iter().map(change_to_link).collect()
}

pub fn change_to_link(change: &Change) -> link::LayerChange {
    let kind = match &change.kind {
        ChangeKind::Deleted => link::ChangeKind::Deleted,
        ChangeKind::Renamed { from } => {
            link::ChangeKind::Renamed { from: from.as_bytes().to_vec() }
        }
        ChangeKind::Added => link::ChangeKind::Added,
        ChangeKind::Modified => link::ChangeKind::Modified,
        ChangeKind::Mode { from, to } => link::ChangeKind::Mode { from: *from, to: *to },
    };
    let path = change.path.as_bytes().to_vec();
    link::LayerChange { path, entry: kind_to_link(change.entry), kind }
}

/// What is hidden is not found, without a word about why.
pub fn to_failure(error: &FileError) -> Failure {
    let code = match error.kind() {
        FileErrorKind::NotFound => Code::FileNotFound,
        FileErrorKind::Denied => Code::PermissionDenied,
        FileErrorKind::Exists => Code::FileExists,
        FileErrorKind::NotADirectory => Code::NotADirectory,
        FileErrorKind::IsADirectory => Code::IsADirectory,
        FileErrorKind::NotEmpty => Code::DirectoryNotEmpty,
        FileErrorKind::Full => Code::LimitReached,
        FileErrorKind::Invalid => Code::InvalidArgument,
        FileErrorKind::Io => Code::Internal,
    };
    let said = failure(code, error.to_string());
    match &error.denial {
        Some(denial) if code == Code::PermissionDenied => {
            let said = said.with("path", &denial.path).with("needed", denial.needed);
            let said = said.with("level", denial.level);
            denial.rule.iter().fold(said, |said, rule| said.with("rule", rule))
        }
        _ => said.with("path", &error.path),
    }
}
