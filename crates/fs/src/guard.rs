//! The policy in front of the tree. A reviewer checks the security of the workspace by reading this
//! file: it has the operations of [`Tree`] under the same names, and the adapter to the kernel
//! talks to nothing else.
//!
//! | answer | operations |
//! |---|---|
//! | passed through (`guard/passed.rs`) | `forget`, `release`; `read`, `write`, `fsync`, `fallocate`, `seek_*`, `copy_range` on a handle that an open granted; `statfs`; `fsync_dir` |
//! | decided by the node's level | `getattr`, `readlink`, `open`, `open_beside` (`guard/calls.rs`), `setattr`, `getxattr`, `listxattr`, `setxattr`, `removexattr`, `readdir` (`guard/listing.rs`) |
//! | decided by the name's level | `lookup`, `create`, `put` (`guard/calls.rs`), `mkdir`, `mknod`, `symlink`, `unlink`, `rmdir` |
//! | decided by both | `link`, `rename` |
//! | not decided (`guard/owner.rs`) | what the owner of the workspace does; the adapter to the kernel has no way there |
//! | refused | devices, foreign owners, attributes that are not `user.*`, everything that is not here (see `fuse`) |
//!
//! Errors follow one rule: what is hidden does not exist (`ENOENT`); what is visible but not
//! allowed is `EACCES`; making a name that may not be made is `EACCES` whether or not something
//! hidden has it.

mod calls;
mod listing;
mod owner;
mod passed;

use std::sync::Arc;

use ringfence_policy::{Level, Policy, WorkspacePath};
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use crate::events::{AccessEvent, EventSink, Operation};
use crate::layers::copy::is_user_attribute;
use crate::layers::stack::Found;
use crate::levels::{Access, Levels, lowest, may_show};
use crate::tree::{
    Attr, Backer, Handle, Name, Node, NodeId, OpenFor, Opened, RenameMode, SetAttr, Tree,
};

pub use listing::Seen;

/// How long the kernel may remember an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Until it is told otherwise.
    Long,
    /// A second: the base may change there without our noticing.
    Short,
    /// Not at all: every use must come back, to be decided and recorded.
    No,
}

/// Answer to a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    Found(Attr, Keep),
    Absent(Keep),
}

/// The owner that files of the workspace are shown with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Debug)]
pub struct Guard {
    tree: Arc<Tree>,
    levels: Arc<Levels>,
    events: EventSink,
    owner: Owner,
    /// Whether answers are kept by a kernel, which must then hear of changes of the base.
    serves_kernel: bool,
}

/// Names of one inode share a node only if they have one level. Files that may be written to are
/// class 0, so that the number of a file does not change when it gets a second name.
fn class(level: Level) -> u8 {
    if level == Level::Write { 0 } else { level as u8 + 1 }
}

/// A process that asks; only for the record.
pub type Pid = u32;

impl Guard {
    pub fn new(tree: Tree, policy: Arc<Policy>, events: EventSink, owner: Owner) -> Self {
        let (tree, levels) = (Arc::new(tree), Arc::new(Levels::new(policy)));
        Self { tree, levels, events, owner, serves_kernel: true }
    }

    /// The same decisions about the same tree, told to somebody else: for calls of the API, which
    /// are not accesses of a program and keep nothing.
    pub(crate) fn heard_by(&self, events: EventSink) -> Self {
        let (tree, levels, owner) = (self.tree.clone(), self.levels.clone(), self.owner);
        Self { tree, levels, events, owner, serves_kernel: false }
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub fn owner(&self) -> Owner {
        self.owner
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.levels.policy()
    }

    /// New opens are decided by `policy` from now on. Names of one file that no longer have one
    /// level get nodes of their own: those names are returned, for the kernel to forget.
    pub fn set_policy(&self, policy: Arc<Policy>) -> Vec<Name> {
        self.levels.replace_policy(policy);
        self.record_kept_files();
        let mut detached = Vec::new();
        for (id, names) in self.tree.linked() {
            let level =
                |(dir, name): &(NodeId, Box<[u8]>)| self.levels.of_name(&self.tree, *dir, name);
            let levels: Vec<_> = names.iter().map(level).collect();
            if levels.windows(2).any(|pair| pair[0] != pair[1]) {
                self.tree.detach(id);
                detached.extend(names);
            }
        }
        detached
    }

    /// Open descriptors keep what they were granted; the record says which.
    fn record_kept_files(&self) {
        if !self.events.is_on() {
            return;
        }
        let policy = self.levels.policy();
        for (id, write) in self.tree.open_files() {
            let needed = if write { Level::Write } else { Level::Read };
            let paths = self.tree.paths(id);
            if lowest(&policy, &paths) < needed {
                self.record(0, Operation::KeptOpen, &paths, needed, true);
            }
        }
    }

    /// Names the kernel knows that are hidden now; nothing if there are more than `most`.
    pub fn hidden_names(&self, most: usize) -> Result<Option<Vec<Name>>> {
        let policy = self.levels.policy();
        let mut hidden = Vec::new();
        for dir in self.tree.known_directories() {
            let paths = self.tree.paths(dir);
            let parents: Vec<_> = paths.iter().map(|path| policy.verdict(path)).collect();
            for name in self.tree.known_names(dir) {
                let levels = paths
                    .iter()
                    .zip(&parents)
                    .map(|(path, parent)| policy.child_verdict(parent, &path.join(&name)).level);
                if levels.min() > Some(Level::None) || self.is_known_passage(dir, &name)? {
                    continue;
                }
                hidden.push((dir, name));
                if hidden.len() > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some(hidden))
    }

    fn is_known_passage(&self, dir: NodeId, name: &[u8]) -> Result<bool> {
        match self.tree.known_child(dir, name) {
            Some(node) => Ok(self.levels.of_node(&self.tree, &node)? != Access::Hidden),
            None => Ok(false),
        }
    }

    // ---- decided by the name's level ----

    /// A hidden name is absent without a look at the layers, so that neither the answer nor its
    /// time depends on what is there, and it is never kept, so that every try is recorded.
    pub fn lookup(&self, pid: Pid, parent: NodeId, name: &[u8]) -> Result<Looked> {
        self.entered(parent)?;
        let level = self.levels.of_name(&self.tree, parent, name);
        if level == Level::None {
            return self.lookup_passage(pid, parent, name);
        }
        match self.tree.lookup(parent, name, class(level))? {
            None => Ok(Looked::Absent(self.keep(parent))),
            Some(attr) => match self.keep_found(parent, &attr, level)? {
                Some(keep) => Ok(Looked::Found(attr, keep)),
                None => {
                    self.tree.forget(attr.id, 1);
                    let paths = self.tree.paths_below(parent, name);
                    self.record(pid, Operation::Lookup, &paths, Level::View, false);
                    Ok(Looked::Absent(Keep::No))
                }
            },
        }
    }

    /// How long something that was found may be remembered; nothing if it must not be seen after
    /// all, because of a path it had before it was renamed.
    fn keep_found(&self, parent: NodeId, attr: &Attr, level: Level) -> Result<Option<Keep>> {
        self.watch(attr);
        if attr.kind == FileType::Directory && self.tree.has_origins(attr.id) {
            let node = self.tree.node(attr.id)?;
            return Ok(match self.levels.of_node(&self.tree, &node)? {
                Access::Hidden => None,
                Access::Passage => Some(Keep::No),
                Access::Level(_) => Some(self.keep(parent)),
            });
        }
        // Another name of the same file may be written to, through another node; and a directory
        // that nobody has entered is not watched yet.
        let shared = attr.nlink > 1 && level < Level::Write && attr.kind == FileType::RegularFile;
        let unwatched = attr.kind == FileType::Directory && !self.tree.is_watched(attr.id);
        Ok(Some(if shared || unwatched { Keep::Short } else { self.keep(parent) }))
    }

    fn lookup_passage(&self, pid: Pid, parent: NodeId, name: &[u8]) -> Result<Looked> {
        let paths = self.tree.paths_below(parent, name);
        if may_show(&self.levels.policy(), &paths)
            && let Found::Dir(dir) = self.tree.peek(parent, name)?
            && self.levels.is_passage(&self.tree, &paths, &dir)?
        {
            let found = self.tree.lookup(parent, name, class(Level::None))?;
            found.iter().for_each(|attr| self.watch(attr));
            return Ok(found.map_or(Looked::Absent(Keep::No), |attr| Looked::Found(attr, Keep::No)));
        }
        self.record(pid, Operation::Lookup, &paths, Level::View, false);
        Ok(Looked::Absent(Keep::No))
    }

    pub fn create(
        &self,
        pid: Pid,
        parent: NodeId,
        name: &[u8],
        mode: u32,
        backer: &dyn Backer,
    ) -> Result<(Attr, Keep, Opened)> {
        self.may_make(pid, Operation::Create, parent, name)?;
        let (attr, opened) = self.tree.create(parent, name, mode, backer)?;
        self.changed(pid, Operation::Create, parent, name);
        Ok((attr, self.keep(parent), opened))
    }

    pub fn mkdir(&self, pid: Pid, parent: NodeId, name: &[u8], mode: u32) -> Result<(Attr, Keep)> {
        self.may_make(pid, Operation::Create, parent, name)?;
        let attr = self.tree.mkdir(parent, name, mode)?;
        self.changed(pid, Operation::Create, parent, name);
        Ok((attr, self.keep(parent)))
    }

    /// Fifos, sockets and regular files; a device is `EPERM` even where everything may be written.
    pub fn mknod(
        &self,
        pid: Pid,
        parent: NodeId,
        name: &[u8],
        kind: FileType,
        mode: u32,
    ) -> Result<(Attr, Keep)> {
        self.may_make(pid, Operation::Create, parent, name)?;
        if !matches!(kind, FileType::Fifo | FileType::Socket | FileType::RegularFile) {
            return Err(Errno::PERM);
        }
        let attr = self.tree.mknod(parent, name, kind, mode)?;
        self.changed(pid, Operation::Create, parent, name);
        Ok((attr, self.keep(parent)))
    }

    pub fn symlink(
        &self,
        pid: Pid,
        parent: NodeId,
        name: &[u8],
        target: &[u8],
    ) -> Result<(Attr, Keep)> {
        self.may_make(pid, Operation::Create, parent, name)?;
        let attr = self.tree.symlink(parent, name, target)?;
        self.changed(pid, Operation::Create, parent, name);
        Ok((attr, self.keep(parent)))
    }

    pub fn unlink(&self, pid: Pid, parent: NodeId, name: &[u8]) -> Result<()> {
        self.may_remove(pid, Operation::Remove, parent, name)?;
        self.tree.unlink(parent, name)?;
        self.changed(pid, Operation::Remove, parent, name);
        Ok(())
    }

    /// The tree refuses unless the directory is really empty, hidden entries included.
    pub fn rmdir(&self, pid: Pid, parent: NodeId, name: &[u8]) -> Result<()> {
        self.may_remove(pid, Operation::Remove, parent, name)?;
        self.tree.rmdir(parent, name)?;
        self.changed(pid, Operation::Remove, parent, name);
        Ok(())
    }

    // ---- decided by both ----

    pub fn link(&self, pid: Pid, id: NodeId, parent: NodeId, name: &[u8]) -> Result<(Attr, Keep)> {
        self.node_with(pid, Operation::Link, id, Level::Write)?;
        self.may_make(pid, Operation::Link, parent, name)?;
        let attr = self.tree.link(id, parent, name)?;
        self.changed(pid, Operation::Link, parent, name);
        Ok((attr, self.keep(parent)))
    }

    /// Both names must be writable, and everything below a directory that moves. Returns whether
    /// levels of things the kernel knows may have changed with their paths.
    pub fn rename(
        &self,
        pid: Pid,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        mode: RenameMode,
    ) -> Result<bool> {
        self.may_remove(pid, Operation::Rename, from.0, from.1)?;
        self.may_make(pid, Operation::Rename, to.0, to.1)?;
        let mut moves_dir = self.may_move(pid, from)?;
        if mode == RenameMode::Exchange {
            moves_dir |= self.may_move(pid, to)?;
        }
        self.tree.rename(from, to, mode)?;
        self.levels.forget();
        self.changed(pid, Operation::Rename, from.0, from.1);
        self.changed(pid, Operation::Rename, to.0, to.1);
        Ok(moves_dir && !self.is_uniform())
    }

    /// Whether what is at `at` may be moved with all that is below it; says if it is a directory.
    fn may_move(&self, pid: Pid, at: (NodeId, &[u8])) -> Result<bool> {
        let Found::Dir(dir) = self.tree.peek(at.0, at.1)? else { return Ok(false) };
        let mut paths = self.tree.paths_below(at.0, at.1);
        paths.extend(dir.origins.iter().cloned());
        if self.levels.all_writable(&self.tree, &paths, &dir)? {
            return Ok(true);
        }
        self.record(pid, Operation::Rename, &paths, Level::Write, false);
        Err(Errno::ACCESS)
    }

    // ---- decided by the node's level ----

    /// An open descriptor keeps what it was granted when the policy changes. (The kernel does not
    /// say for which descriptor it asks; whoever asks by path has come through `lookup`.)
    pub fn getattr(&self, id: NodeId) -> Result<(Attr, Keep)> {
        let node = self.tree.node(id)?;
        let keep = match self.levels.of_node(&self.tree, &node)? {
            Access::Hidden if !self.tree.is_open(id) => return Err(Errno::NOENT),
            Access::Hidden | Access::Passage => Keep::No,
            Access::Level(_) => self.keep(id),
        };
        Ok((self.tree.getattr(id)?, keep))
    }

    pub fn readlink(&self, pid: Pid, id: NodeId) -> Result<Vec<u8>> {
        self.node_with(pid, Operation::ReadLink, id, Level::View)?;
        self.tree.readlink(id)
    }

    pub fn open(
        &self,
        pid: Pid,
        id: NodeId,
        write: bool,
        truncate: bool,
        backer: &dyn Backer,
    ) -> Result<Opened> {
        let (operation, needed) = match write || truncate {
            true => (Operation::Write, Level::Write),
            false => (Operation::Read, Level::Read),
        };
        let level = self.node_with(pid, operation, id, needed)?;
        let may_be_written = level == Level::Write;
        let opened = self.tree.open(id, OpenFor { write, truncate, may_be_written }, backer)?;
        if self.events.is_on() {
            self.record(pid, operation, &self.tree.paths(id), needed, true);
        }
        Ok(opened)
    }

    /// A size may be set through a descriptor that was opened for writing, whatever the level is
    /// now. The owner can only be set to what it is anyway.
    pub fn setattr(
        &self,
        pid: Pid,
        id: NodeId,
        handle: Option<Handle>,
        set: SetAttr,
        owner: (Option<u32>, Option<u32>),
    ) -> Result<(Attr, Keep)> {
        let granted = handle.is_some_and(|handle| self.tree.is_writable(handle));
        let only_size = SetAttr { size: None, ..set } == SetAttr::default();
        if !(granted && only_size && owner == (None, None)) {
            let changes_owner = owner != (None, None);
            match self.node_with(pid, Operation::SetAttributes, id, Level::Write) {
                Err(Errno::ACCESS) if changes_owner => return Err(Errno::PERM),
                other => other?,
            };
        }
        let Owner { uid, gid } = self.owner;
        if owner.0.is_some_and(|u| u != uid) || owner.1.is_some_and(|g| g != gid) {
            return Err(Errno::PERM);
        }
        let attr = self.tree.setattr(id, handle, set)?;
        if self.events.is_on() {
            let paths = self.tree.paths(id);
            self.record(pid, Operation::SetAttributes, &paths, Level::Write, true);
        }
        Ok((attr, self.keep(id)))
    }

    pub fn getxattr(&self, pid: Pid, id: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        // Asked for before the level: `ls -l` takes an error about an ACL as a failure.
        if !is_user_attribute(name) {
            return Err(Errno::OPNOTSUPP);
        }
        self.node_with(pid, Operation::GetXattr, id, Level::Read)?;
        self.tree.getxattr(id, name)
    }

    pub fn listxattr(&self, id: NodeId) -> Result<Vec<u8>> {
        let node = self.tree.node(id)?;
        match self.levels.of_node(&self.tree, &node)?.level() {
            Level::None => Err(Errno::NOENT),
            Level::View => Ok(Vec::new()),
            Level::Read | Level::Write => self.tree.listxattr(id),
        }
    }

    pub fn setxattr(
        &self,
        pid: Pid,
        id: NodeId,
        name: &[u8],
        value: &[u8],
        flags: i32,
    ) -> Result<()> {
        self.may_set_attribute(pid, id, name)?;
        self.tree.setxattr(id, name, value, flags)
    }

    pub fn removexattr(&self, pid: Pid, id: NodeId, name: &[u8]) -> Result<()> {
        self.may_set_attribute(pid, id, name)?;
        self.tree.removexattr(id, name)
    }

    fn may_set_attribute(&self, pid: Pid, id: NodeId, name: &[u8]) -> Result<()> {
        self.node_with(pid, Operation::SetXattr, id, Level::Write)?;
        match name {
            name if is_user_attribute(name) => Ok(()),
            // `install` and `cp -p` fall back to modes where there are no access control lists.
            name if name.starts_with(b"system.") => Err(Errno::OPNOTSUPP),
            _ => Err(Errno::PERM),
        }
    }

    // ---- the decisions ----

    /// The directory through which a request comes must itself be there for the caller.
    fn entered(&self, parent: NodeId) -> Result<Arc<Node>> {
        let node = self.tree.node(parent)?;
        match self.levels.of_node(&self.tree, &node)? {
            Access::Hidden => Err(Errno::NOENT),
            _ => Ok(node),
        }
    }

    /// The level of a node, if it is at least `needed`.
    fn node_with(
        &self,
        pid: Pid,
        operation: Operation,
        id: NodeId,
        needed: Level,
    ) -> Result<Level> {
        let node = self.tree.node(id)?;
        let level = self.levels.of_node(&self.tree, &node)?.level();
        if level >= needed {
            return Ok(level);
        }
        self.record(pid, operation, &self.tree.paths(id), needed, false);
        Err(if level == Level::None { Errno::NOENT } else { Errno::ACCESS })
    }

    fn may_make(&self, pid: Pid, operation: Operation, parent: NodeId, name: &[u8]) -> Result<()> {
        self.entered(parent)?;
        if self.levels.of_name(&self.tree, parent, name) == Level::Write {
            return Ok(());
        }
        let paths = self.tree.paths_below(parent, name);
        self.record(pid, operation, &paths, Level::Write, false);
        Err(Errno::ACCESS)
    }

    fn may_remove(
        &self,
        pid: Pid,
        operation: Operation,
        parent: NodeId,
        name: &[u8],
    ) -> Result<()> {
        self.entered(parent)?;
        let level = match self.levels.of_name(&self.tree, parent, name) {
            Level::Write => return Ok(()),
            Level::None => match self.tree.known_child(parent, name) {
                Some(node) => self.levels.of_node(&self.tree, &node)?.level(),
                None => Level::None,
            },
            visible => visible,
        };
        let paths = self.tree.paths_below(parent, name);
        self.record(pid, operation, &paths, Level::Write, false);
        Err(if level == Level::None { Errno::NOENT } else { Errno::ACCESS })
    }

    /// Something was done to a name; recorded only when it has succeeded.
    fn changed(&self, pid: Pid, operation: Operation, parent: NodeId, name: &[u8]) {
        if self.events.is_on() {
            let paths = self.tree.paths_below(parent, name);
            self.record(pid, operation, &paths, Level::Write, true);
        }
    }

    /// A directory the kernel learns of is watched from then on.
    fn watch(&self, attr: &Attr) {
        if self.serves_kernel && attr.kind == FileType::Directory {
            self.tree.watch(attr.id);
        }
    }

    fn keep(&self, dir: NodeId) -> Keep {
        if self.tree.is_watched(dir) { Keep::Long } else { Keep::Short }
    }

    /// Whether one level holds everywhere, so that moving things cannot change theirs.
    fn is_uniform(&self) -> bool {
        let bounds = self.levels.policy().subtree(&WorkspacePath::root());
        bounds.min == bounds.max
    }

    fn record(
        &self,
        pid: Pid,
        operation: Operation,
        paths: &[WorkspacePath],
        needed: Level,
        granted: bool,
    ) {
        if !self.events.is_on() {
            return;
        }
        let policy = self.levels.policy();
        // The path that decides: the one with the lowest level.
        let Some(path) = paths.iter().min_by_key(|path| policy.level(path)) else { return };
        let rule = policy.verdict(path).rule;
        self.events.send(AccessEvent {
            origin: 0,
            pid,
            operation,
            path: path.clone(),
            needed,
            level: lowest(&policy, paths),
            granted,
            rule: rule.and_then(|index| policy.rules().get(index as usize)).cloned(),
        });
    }
}
