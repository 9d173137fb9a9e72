//! A path inside the workspace that cannot be wrong: absolute, normalised, bytes.

use std::fmt::{self, Write as _};

use crate::error::PathError;

/// An absolute, normalised path below the workspace root. Bytes, because file names on Linux are:
/// a name that is not UTF-8 must be ruled like any other.
///
/// There is exactly one spelling of each path, so equality, hashing and prefix tests are plain byte
/// comparisons, and no rule can be dodged by writing `//` or `/./`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Box<[u8]>);

impl WorkspacePath {
    /// Where programs in a sandbox see the workspace.
    pub const MOUNT: &'static [u8] = b"/workspace";

    /// The workspace root, `/`.
    pub fn root() -> Self {
        WorkspacePath(Box::from(&b"/"[..]))
    }

    /// Normalises a spelling: a leading `/` is optional, `//`, `.` and a trailing `/` are removed.
    /// `..` is refused rather than resolved, since what it means depends on symlinks that a pure
    /// path cannot see.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let bytes = bytes.as_ref();
        if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
            return Err(PathError::Nul { offset });
        }
        let mut normal = Vec::with_capacity(bytes.len() + 1);
        for component in bytes.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => continue,
                b".." => return Err(PathError::ParentComponent),
                name => push(&mut normal, name),
            }
        }
        if normal.is_empty() {
            return Ok(Self::root());
        }
        Ok(WorkspacePath(normal.into_boxed_slice()))
    }

    /// A path as callers of the API spell it: `/workspace/x`, `/x` and `x` are the same file. Whoever
    /// has a directory of that name at the top writes `/workspace/workspace`, or `workspace` without
    /// a slash.
    pub fn from_caller(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let path = Self::parse(bytes.as_ref())?;
        if !bytes.as_ref().starts_with(b"/") {
            return Ok(path);
        }
        match path.0.strip_prefix(Self::MOUNT) {
            Some(b"") => Ok(Self::root()),
            Some(rest @ [b'/', ..]) => Ok(WorkspacePath(rest.into())),
            _ => Ok(path),
        }
    }

    /// The path of the entry `name` in this directory. `name` is one valid component, as a
    /// directory listing or the kernel hands them out.
    pub fn join(&self, name: &[u8]) -> Self {
        debug_assert!(is_name(name), "not a single path component: {:?}", name.escape_ascii());
        let mut joined = Vec::with_capacity(self.0.len() + 1 + name.len());
        joined.extend_from_slice(self.below_root());
        push(&mut joined, name);
        WorkspacePath(joined.into_boxed_slice())
    }

    /// `/` or `/a/b`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// The directory this path is an entry of; the root has none.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.last_slash()?;
        if slash == 0 {
            return Some(Self::root());
        }
        Some(WorkspacePath(Box::from(&self.0[..slash])))
    }

    /// The last component; the root has none.
    pub fn file_name(&self) -> Option<&[u8]> {
        self.last_slash().map(|slash| &self.0[slash + 1..])
    }

    /// The names from the root down; none for the root itself.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.below_root().split(|byte| *byte == b'/').skip(1)
    }

    /// Whether this path is `other` or lies below it. Component-wise: `/ab` is not below `/a`.
    pub fn starts_with(&self, other: &Self) -> bool {
        match self.below_root().strip_prefix(other.below_root()) {
            Some(rest) => rest.is_empty() || rest[0] == b'/',
            None => false,
        }
    }

    /// The form patterns are matched against: the root is empty, everything else is a sequence of
    /// `/name`. It makes "zero or more components" a plain repetition.
    pub(crate) fn below_root(&self) -> &[u8] {
        if self.is_root() { b"" } else { &self.0 }
    }

    fn last_slash(&self) -> Option<usize> {
        self.below_root().iter().rposition(|byte| *byte == b'/')
    }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    path.push(b'/');
    path.extend_from_slice(name);
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// For people and logs: never ambiguous, never able to move a terminal's cursor.
impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                write_escaped(f, char)?;
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, char: char) -> fmt::Result {
    match char {
        // `escape_debug` is made for quoted text; an unquoted path reads better without these two.
        '\'' | '"' => f.write_char(char),
        other => write!(f, "{}", other.escape_debug()),
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkspacePath({self})")
    }
}
