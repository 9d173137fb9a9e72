//! Which level a node or a name has now, and which hidden directories must be shown all the same.
//!
//! A thing may be known by several paths: hard links, and directories that were renamed and keep
//! the path they came from. The lowest level of all of them counts, so that nothing gains a level
//! by being moved or linked.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use ringfence_policy::{Level, Policy, WorkspacePath};
use rustix::fs::FileType;
use rustix::io::Result;

use crate::layers::stack::{Found, Merged, Stack};
use crate::tree::{Node, NodeId, Tree};

/// What may be done with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It does not exist for programs.
    Hidden,
    /// A hidden directory on the way to something visible: it can be passed and listed.
    Passage,
    Level(Level),
}

impl Access {
    /// The level for operations on the thing itself; a passage shows no more than its name.
    pub fn level(self) -> Level {
        match self {
            Self::Hidden => Level::None,
            Self::Passage => Level::View,
            Self::Level(level) => level,
        }
    }
}

/// How long the answer about a subtree may be kept where changes below are not noticed.
const UNWATCHED_AGE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
struct Shown {
    generation: u64,
    since: Instant,
    shows: bool,
}

#[derive(Debug)]
pub struct Levels {
    policy: RwLock<Arc<Policy>>,
    /// Levels cached in nodes are valid for one epoch.
    epoch: AtomicU64,
    passages: Mutex<HashMap<WorkspacePath, Shown>>,
}

impl Levels {
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { policy: RwLock::new(policy), epoch: AtomicU64::new(1), passages: Mutex::default() }
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.read().clone()
    }

    pub fn replace_policy(&self, policy: Arc<Policy>) {
        *self.policy.write() = policy;
        self.forget();
    }

    /// Levels that were worked out so far may be wrong.
    pub fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.passages.lock().clear();
    }

    /// The level of a name, whether or not anything has it.
    pub fn of_name(&self, tree: &Tree, parent: NodeId, name: &[u8]) -> Level {
        lowest(&self.policy.read(), &tree.paths_below(parent, name))
    }

    /// What may be done with a known node.
    pub fn of_node(&self, tree: &Tree, node: &Node) -> Result<Access> {
        let epoch = self.epoch.load(Ordering::Acquire);
        let tag = node.tag.load(Ordering::Acquire);
        if tag >> 8 == epoch {
            return Ok(Access::Level(level_from((tag & 0xff) as u8)));
        }
        if node.id == NodeId::ROOT {
            return Ok(Access::Level(lowest(&self.policy(), &[WorkspacePath::root()])));
        }
        let paths = tree.paths(node.id);
        let level = lowest(&self.policy(), &paths);
        if level > Level::None {
            node.tag.store(epoch << 8 | level as u64, Ordering::Release);
            return Ok(Access::Level(level));
        }
        if node.is_dir() && self.is_passage(tree, &paths, &tree.merged(node.id)?)? {
            return Ok(Access::Passage);
        }
        Ok(Access::Hidden)
    }

    /// Whether a hidden directory has a visible descendant, and so must be shown.
    pub fn is_passage(&self, tree: &Tree, paths: &[WorkspacePath], dir: &Merged) -> Result<bool> {
        let policy = self.policy();
        if !may_show(&policy, paths) {
            return Ok(false);
        }
        let Some(key) = paths.first() else { return Ok(false) };
        let generation = tree.generation();
        if let Some(known) = self.passages.lock().get(key)
            && known.generation == generation
            && known.since.elapsed() < UNWATCHED_AGE
        {
            return Ok(known.shows);
        }
        let shows = tree.with_stack(|stack| shows_something(&policy, stack, paths, dir))?;
        let shown = Shown { generation, since: Instant::now(), shows };
        self.passages.lock().insert(key.clone(), shown);
        Ok(shows)
    }

    /// Whether everything that exists below a directory may be written. This reads the whole
    /// subtree unless the policy answers for it as a whole.
    pub fn all_writable(&self, tree: &Tree, paths: &[WorkspacePath], dir: &Merged) -> Result<bool> {
        let policy = self.policy();
        tree.with_stack(|stack| all_writable(&policy, stack, paths, dir))
    }
}

fn level_from(code: u8) -> Level {
    Level::ALL[usize::from(code.min(3))]
}

/// The lowest level of several paths of one thing. No path at all: nothing may be done.
pub fn lowest(policy: &Policy, paths: &[WorkspacePath]) -> Level {
    paths.iter().map(|path| policy.level(path)).min().unwrap_or(Level::None)
}

/// Whether anything below could be visible, by policy alone.
pub fn may_show(policy: &Policy, paths: &[WorkspacePath]) -> bool {
    paths.iter().all(|path| policy.subtree(path).max > Level::None)
}

fn shows_something(
    policy: &Policy,
    stack: &Stack,
    paths: &[WorkspacePath],
    dir: &Merged,
) -> Result<bool> {
    for entry in stack.list(&dir.parts)? {
        let below = join_all(paths, &entry.name);
        if lowest(policy, &below) > Level::None {
            return Ok(true);
        }
        if entry.kind == FileType::Directory
            && may_show(policy, &below)
            && let Found::Dir(inner) = stack.find(&dir.parts, &entry.name)?
        {
            let below = with_origins(below, &inner);
            if shows_something(policy, stack, &below, &inner)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn all_writable(
    policy: &Policy,
    stack: &Stack,
    paths: &[WorkspacePath],
    dir: &Merged,
) -> Result<bool> {
    if paths.iter().all(|path| policy.subtree(path).min == Level::Write) {
        return Ok(true);
    }
    for entry in stack.list(&dir.parts)? {
        let below = join_all(paths, &entry.name);
        if lowest(policy, &below) < Level::Write {
            return Ok(false);
        }
        if entry.kind == FileType::Directory
            && let Found::Dir(inner) = stack.find(&dir.parts, &entry.name)?
        {
            let below = with_origins(below, &inner);
            if !all_writable(policy, stack, &below, &inner)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn join_all(paths: &[WorkspacePath], name: &[u8]) -> Vec<WorkspacePath> {
    paths.iter().map(|path| path.join(name)).collect()
}

fn with_origins(mut paths: Vec<WorkspacePath>, dir: &Merged) -> Vec<WorkspacePath> {
    paths.extend(dir.origins.iter().cloned());
    paths
}
