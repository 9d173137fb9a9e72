//! What a caller hears when a call fails.

use ringfence_policy::WorkspacePath;
use rustix::io::Errno;

use crate::events::AccessEvent;

/// Why a call failed: the error number a program would have got through the mount.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {}", describe(*errno, denial.as_ref()))]
pub struct FileError {
    /// As the caller gave it.
    pub path: WorkspacePath,
    pub errno: Errno,
    /// The decision of the policy that was in the way. What is hidden is `ENOENT` all the same, and
    /// then this is for the record only.
    pub denial: Option<AccessEvent>,
}

/// Errors by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileErrorKind {
    NotFound,
    Denied,
    Exists,
    NotADirectory,
    IsADirectory,
    NotEmpty,
    /// There is no room, or not so much is allowed.
    Full,
    /// The call makes no sense for what is there.
    Invalid,
    /// Something does not work.
    Io,
}

impl FileErrorKind {
    /// A name that does not change, for the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Exists => "exists",
            Self::NotADirectory => "not_a_directory",
            Self::IsADirectory => "is_a_directory",
            Self::NotEmpty => "not_empty",
            Self::Full => "full",
            Self::Invalid => "invalid",
            Self::Io => "io",
        }
    }
}

impl FileError {
    pub fn kind(&self) -> FileErrorKind {
        match self.errno {
            Errno::NOENT | Errno::STALE => FileErrorKind::NotFound,
            Errno::ACCESS | Errno::PERM => FileErrorKind::Denied,
            Errno::EXIST => FileErrorKind::Exists,
            Errno::NOTDIR => FileErrorKind::NotADirectory,
            Errno::ISDIR => FileErrorKind::IsADirectory,
            Errno::NOTEMPTY => FileErrorKind::NotEmpty,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => FileErrorKind::Full,
            Errno::INVAL | Errno::LOOP | Errno::NAMETOOLONG | Errno::BUSY | Errno::XDEV => {
                FileErrorKind::Invalid
            }
            _ => FileErrorKind::Io,
        }
    }
}

fn describe(errno: Errno, denial: Option<&AccessEvent>) -> String {
    let text = match errno {
        Errno::NOENT | Errno::STALE => "there is no such file or directory",
        Errno::EXIST => "it exists already",
        Errno::NOTDIR => "this, or something on the way to it, is not a directory",
        Errno::ISDIR => "it is a directory",
        Errno::NOTEMPTY => "the directory is not empty",
        Errno::LOOP => "there are too many symlinks on the way to it",
        Errno::BUSY => "this cannot be done to the workspace itself",
        Errno::INVAL => "this cannot be done to what is there",
        Errno::ACCESS | Errno::PERM => return refused(denial),
        other => return std::io::Error::from(other).to_string(),
    };
    text.to_owned()
}

/// Names what decided. The answer for a name that may not be made is the same whether or not it
/// exists, and so is this text.
fn refused(denial: Option<&AccessEvent>) -> String {
    let Some(denial) = denial else { return "its permissions do not allow this".into() };
    let because = match &denial.rule {
        Some(rule) => format!("rule `{rule}`"),
        None => "no rule covers it".into(),
    };
    let AccessEvent { path, needed, level, .. } = denial;
    format!("this needs level {needed} at {path}, which has {level} ({because})")
}
