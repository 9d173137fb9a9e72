//! What callers are told when something is in the way. No path of the host is ever in it.

use ringfence_policy::WorkspacePath;
use rustix::io::Errno;

use crate::problem::{Code, Problem};

pub(super) fn no_codebase() -> Problem {
    Problem::new(Code::CodebaseNotFound, "codebase not found")
}

pub(super) fn no_file(path: &WorkspacePath) -> Problem {
    Problem::new(Code::FileNotFound, format!("{path}: not found")).with("path", path.to_string())
}

pub(super) fn used_in_place() -> Problem {
    let message = "the codebase is a directory used in place, which is never written to";
    Problem::new(Code::Unsupported, message)
        .with("hint", "change the files in the directory itself, or store a copy of them")
}

pub(super) fn bad_path(path: &WorkspacePath, why: &str) -> Problem {
    Problem::invalid(format!("{path}: {why}")).with("path", path.to_string())
}

pub(super) fn over_limit(limit: &str, most: u64, what: &str) -> Problem {
    Problem::new(Code::ResourceLimitExceeded, format!("{what}: the limit is {most}"))
        .with("limit", limit)
        .with("most", most.to_string())
}

/// Looking for something failed. A symlink on the way counts as nothing being there: it may lead
/// anywhere, so it is not followed.
pub(super) fn cannot_find(path: &WorkspacePath, errno: Errno) -> Problem {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG => {
            no_file(path)
        }
        Errno::ACCESS | Errno::PERM => {
            Problem::new(Code::PermissionDenied, format!("{path}: the server may not read it"))
                .with("path", path.to_string())
        }
        errno => Problem::internal("read the codebase", errno),
    }
}

/// Writing failed. A full disk is the owner's business, everything else is ours.
pub(super) fn cannot_write(cause: impl Into<std::io::Error>) -> Problem {
    let cause = cause.into();
    match cause.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            Problem::new(Code::ResourceLimitExceeded, "there is no space left on the server")
                .with("limit", "disk")
        }
        _ => Problem::internal("write to the codebase", cause),
    }
}
