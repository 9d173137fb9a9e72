//! From a path to what is there.
//!
//! Symlinks are followed as they are for programs, which see the workspace at `/workspace`: an
//! absolute target is looked for from there, and what leads anywhere else is not there. Every
//! component is looked up in the tree, so that no symlink ever leads to a file of the host.

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::call::{Call, Held};
use crate::tree::Attr;

/// As many symlinks as the kernel follows.
const MOST_LINKS: usize = 40;

/// Where a path leads.
pub(super) enum Spot {
    /// The root, or a directory that a symlink leads up to.
    Above(Held),
    Found(Found),
    Absent(Absent),
}

pub(super) struct Found {
    pub(super) dir: Held,
    pub(super) name: Box<[u8]>,
    pub(super) node: Held,
    pub(super) attr: Attr,
}

/// A name that is not there, in a directory that is.
pub(super) struct Absent {
    pub(super) dir: Held,
    pub(super) name: Box<[u8]>,
    /// What comes behind it on the path.
    pub(super) rest: Vec<Box<[u8]>>,
}

/// What is done with a symlink in the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

struct Walk<'c> {
    call: &'c Call,
    /// The directories on the way, from the root on; never empty.
    dirs: Vec<Held>,
    /// Above the workspace, where nothing is but the workspace.
    outside: bool,
    /// The components still to come, in reverse.
    todo: Vec<Box<[u8]>>,
    links: usize,
}

impl Call {
    pub(super) fn resolve(&self, path: &WorkspacePath, last: Last) -> Result<Spot> {
        let mut todo: Vec<Box<[u8]>> = path.components().map(Box::from).collect();
        todo.reverse();
        let dirs = vec![self.root()];
        Walk { call: self, dirs, outside: false, todo, links: 0 }.run(last)
    }
}

impl Walk<'_> {
    fn run(mut self, last: Last) -> Result<Spot> {
        while let Some(name) = self.todo.pop() {
            match &name[..] {
                b".." => self.up(),
                _ if self.outside => self.down(&name)?,
                _ => {
                    if let Some(spot) = self.step(name, last)? {
                        return Ok(spot);
                    }
                }
            }
        }
        match self.outside {
            true => Err(Errno::NOENT),
            false => self.dirs.pop().map(Spot::Above).ok_or(Errno::NOENT),
        }
    }

    fn up(&mut self) {
        match self.dirs.len() {
            1 => self.outside = true,
            _ => drop(self.dirs.pop()),
        }
    }

    fn down(&mut self, name: &[u8]) -> Result<()> {
        if name != &WorkspacePath::MOUNT[1..] {
            return Err(Errno::NOENT);
        }
        self.outside = false;
        Ok(())
    }

    /// Takes one name; gives where the path leads if it ends here.
    fn step(&mut self, name: Box<[u8]>, last: Last) -> Result<Option<Spot>> {
        let dir = self.dirs.last().ok_or(Errno::NOENT)?;
        let is_last = self.todo.is_empty();
        let Some((node, attr)) = self.call.find(dir.id, &name)? else {
            return self.absent(name).map(Some);
        };
        match attr.kind {
            FileType::Symlink if !is_last || last == Last::Follow => {
                self.follow(&node)?;
                Ok(None)
            }
            _ if is_last => {
                let dir = self.dirs.pop().ok_or(Errno::NOENT)?;
                Ok(Some(Spot::Found(Found { dir, name, node, attr })))
            }
            FileType::Directory => {
                self.dirs.push(node);
                Ok(None)
            }
            _ => Err(Errno::NOTDIR),
        }
    }

    fn absent(&mut self, name: Box<[u8]>) -> Result<Spot> {
        let mut rest = std::mem::take(&mut self.todo);
        rest.reverse();
        // A way back from what is not there leads nowhere.
        if rest.iter().any(|name| &**name == b"..") {
            return Err(Errno::NOENT);
        }
        let dir = self.dirs.pop().ok_or(Errno::NOENT)?;
        Ok(Spot::Absent(Absent { dir, name, rest }))
    }

    fn follow(&mut self, link: &Held) -> Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        let target = self.call.nodes.readlink(link.id)?;
        if target.first() == Some(&b'/') {
            self.dirs.truncate(1);
            self.outside = true;
        }
        let names = target.split(|byte| *byte == b'/');
        let names = names.filter(|name| !matches!(*name, b"" | b"."));
        self.todo.extend(names.rev().map(Box::from));
        Ok(())
    }
}

impl Spot {
    /// What is there, if anything is.
    pub(super) fn existing(self, call: &Call) -> Result<(Held, Attr)> {
        match self {
            Self::Above(node) => {
                let attr = call.nodes.getattr(node.id)?;
                Ok((node, attr))
            }
            Self::Found(Found { node, attr, .. }) => Ok((node, attr)),
            Self::Absent(_) => Err(Errno::NOENT),
        }
    }
}
