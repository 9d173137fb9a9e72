//! Files of a workspace: what a caller may ask, and what it hears.
//!
//! Paths are bytes, since names on Linux are. In requests `/workspace/x`, `/x` and `x` are the same;
//! in answers a path begins at the root of the workspace, `/x`.

use serde::{Deserialize, Serialize};

/// With whose eyes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// Everything is there and nothing is refused.
    Owner,
    /// What the policy lets code in the sandbox do.
    Agent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest {
    pub view: View,
    pub call: FileCall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileCall {
    /// Answered by `Reply::File`; of a symlink, unless it is followed, with the link itself.
    Stat {
        path: Vec<u8>,
        follow: bool,
    },
    /// Answered by any number of `Reply::Entries` in the order of their paths, then `Reply::Ok`.
    List {
        path: Vec<u8>,
        recursive: bool,
        files_only: bool,
    },
    /// Answered by `Reply::Reading`, then bytes as output, then `Reply::Ok`.
    Read {
        path: Vec<u8>,
        offset: u64,
        length: Option<u64>,
    },
    /// Answered by `Reply::Send`; then bytes are taken as input until `Control::EndOfInput`, and the
    /// file is there when `Reply::File` comes. Hanging up before gives it up.
    Write {
        path: Vec<u8>,
        mode: Option<u32>,
        parents: bool,
    },
    /// Answered by `Reply::File`.
    MakeDirectory {
        path: Vec<u8>,
        mode: Option<u32>,
        parents: bool,
    },
    Remove {
        path: Vec<u8>,
        recursive: bool,
    },
    Rename {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    /// Answered by `Reply::File`.
    MakeSymlink {
        path: Vec<u8>,
        target: Vec<u8>,
        parents: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: Vec<u8>,
    pub kind: EntryKind,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Nanoseconds since 1970.
    pub modified_ns: i64,
    /// Of a symlink.
    pub target: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// One difference between the workspace and its base. A path can have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerChange {
    pub path: Vec<u8>,
    pub entry: EntryKind,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    Deleted,
    Renamed { from: Vec<u8> },
    Added,
    Modified,
    Mode { from: u32, to: u32 },
}

/// Writing the changes to a directory of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apply {
    /// Let the workspace win where both sides changed.
    pub force: bool,
    /// Find out what would happen and write nothing.
    pub dry_run: bool,
    /// A path of the host; the base if not given.
    pub to: Option<Vec<u8>>,
}

/// What was done, or would be. The changes themselves come before, as `Reply::Changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Changes the policy does not let the agent make, and the path that may not be written.
    pub refused: Vec<(LayerChange, Vec<u8>)>,
    /// If there are any, nothing was written.
    pub conflicts: Vec<Conflict>,
    pub written: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub path: Vec<u8>,
    pub reason: String,
    pub yields_to_force: bool,
}
