//! A mounted workspace: checks, layers, guard, session, and telling the kernel what changed.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL};
use ringfence_policy::{Level, Policy, WorkspacePath};

use crate::error::{LayerError, MountError};
use crate::events::EventSink;
use crate::files::{Files, View};
use crate::fuse::Adapter;
use crate::guard::{Guard, Owner};
use crate::kernel::Kernel;
use crate::layers::copy::Work;
use crate::layers::format::LayerDir;
use crate::layers::mask::{MaskDir, MaskOptions};
use crate::layers::pool::DirPool;
use crate::layers::stack::{LayerIndex, Part};
use crate::mountpoint;
use crate::tree::{Live, NodeId};
use crate::watch::{BaseEvent, Watch};
use crate::workspace;

/// Up to this many names are taken back one by one when the policy changes.
const FEW_NAMES: usize = 1000;

/// What to mount and how.
#[derive(Debug, Clone)]
pub struct MountOptions {
    pub base: PathBuf,
    /// The base is somebody's directory that may change: watch it. A stored codebase does not.
    pub base_in_place: bool,
    /// Where changes go; made if it does not exist.
    pub layer: PathBuf,
    pub mountpoint: PathBuf,
    pub mask: MaskOptions,
    pub owner: Owner,
    /// Let the kernel read and write files directly where it can.
    pub passthrough: bool,
}

/// A workspace that is mounted. Dropping it unmounts.
#[derive(Debug)]
pub struct Mounted {
    guard: Arc<Guard>,
    kernel: Arc<Kernel>,
    mountpoint: PathBuf,
    layer: LayerDir,
    session: Option<JoinHandle<io::Result<()>>>,
    watch: Option<(Arc<Watch>, JoinHandle<()>)>,
    gone: Arc<AtomicBool>,
}

/// Mounts a workspace. Everything is checked before anything is made.
pub fn mount(
    options: &MountOptions,
    policy: Arc<Policy>,
    events: EventSink,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<Mounted, MountError> {
    if let Some(advice) = ringfence_sys::probe::fuse_device().advice() {
        return Err(MountError::NoFuse { advice });
    }
    let base = workspace::check_base(&options.base)?;
    let mountpoint = mountpoint::prepare(&options.mountpoint)?;
    check_apart(&base, &options.layer, &mountpoint)?;
    let base_fd = workspace::open_base(&base)?;
    let mask = MaskDir::root(&options.mask, &base_fd);
    let layer = workspace::open_layer(&options.layer, &base, &policy, &options.mask)?;
    let depth = stack_depth(options, &base, layer.path());
    let layers = workspace::open_stack(base_fd, mask, &layer, &DirPool::for_this_process())?;
    let watch = match options.base_in_place {
        true => Some(Watch::new().map_err(|e| MountError::io("watch", &base, e))?),
        false => None,
    };
    let tree = workspace::build_tree(layers, &layer, depth > 0, watch.clone())?;
    let guard = Arc::new(Guard::new(tree, policy, events, options.owner));
    start(guard, layer, mountpoint, depth, watch, on_end)
}

fn start(
    guard: Arc<Guard>,
    layer: LayerDir,
    mountpoint: PathBuf,
    stack_depth: u32,
    watch: Option<Arc<Watch>>,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<Mounted, MountError> {
    let kernel = Arc::new(Kernel::default());
    let adapter = Adapter { guard: guard.clone(), stack_depth, kernel: kernel.clone() };
    let session = Session::new(adapter, &mountpoint, &session_config())
        .map_err(|e| MountError::io("mount", &mountpoint, e))?;
    let device = rustix::io::fcntl_dupfd_cloexec(session.as_fd(), 3)
        .map_err(|e| MountError::io("keep the connection of", &mountpoint, e.into()))?;
    kernel.connect(session.notifier(), device);
    let gone = Arc::new(AtomicBool::new(false));
    let ended = gone.clone();
    let session = std::thread::Builder::new()
        .name("session".into())
        .spawn(move || {
            let result = session.run();
            ended.store(true, Ordering::Release);
            on_end();
            result
        })
        .map_err(|e| MountError::io("serve", &mountpoint, e))?;
    let watch = watch.map(|watch| follow_base(watch, guard.clone(), kernel.clone()));
    Ok(Mounted { guard, kernel, mountpoint, layer, session: Some(session), watch, gone })
}

/// As root any user may enter, since the sandbox runs as another one; modes are checked by the
/// kernel against the owner that files are shown with.
fn session_config() -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(mountpoint::SOURCE.into()),
        MountOption::Subtype(mountpoint::SOURCE.into()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
    ];
    if rustix::process::geteuid().is_root() {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(2);
    config.clone_fd = true;
    config
}

impl Mounted {
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    pub fn layer(&self) -> &LayerDir {
        &self.layer
    }

    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Whether somebody else has unmounted it.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// New opens are decided by `policy` as soon as this returns; open files keep what they have.
    pub fn set_policy(&mut self, policy: Arc<Policy>) -> Result<(), LayerError> {
        let rules = workspace::records(&policy);
        let mut stale = self.guard.set_policy(policy);
        // A few names are taken back one by one. To forget all is one message, but the next walk
        // through a directory then drops everything cached below it, which takes its time.
        match self.guard.hidden_names(FEW_NAMES) {
            Ok(Some(hidden)) => {
                stale.extend(hidden);
                stale.iter().for_each(|(dir, name)| self.kernel.forget_name(*dir, name));
            }
            _ => self.kernel.forget_all_names(self.guard.tree()),
        }
        for id in self.guard.tree().known_directories() {
            self.kernel.forget_content(id);
        }
        // Last, because it waits for the disk.
        self.layer.record_rules(rules)
    }

    /// The files of the workspace, for calls that come from outside. What is changed through them is
    /// seen by programs at once.
    pub fn files(&self, view: View) -> Files {
        Files::new(self.guard.clone(), self.kernel.clone(), view)
    }

    /// Brings everything that programs wrote through mappings to the layer, where the kernel has kept
    /// it so far; for who is about to look at the layer's own files.
    pub fn collect_mapped(&self) {
        for id in self.guard.tree().maybe_mapped() {
            self.kernel.forget_content(id);
        }
    }

    /// Freezes the live layer and goes on in a new one at `path`: a snapshot. Nothing is copied
    /// except the files that are open now. For a snapshot of one moment the caller holds the
    /// programs still meanwhile.
    pub fn freeze(&mut self, path: &Path) -> Result<(), LayerError> {
        let next = self.layer.make_child(path)?;
        let index = next.meta().parents.len() as LayerIndex + 1;
        let pool = DirPool::for_this_process();
        let root = Part::root(index, next.open_dir("tree")?, None, &pool);
        let links = vec![Part::root(index, next.open_dir("links")?, None, &pool)];
        let work = Work::new(next.open_dir("work")?, next.meta().parents.clone());
        let live = Live { layer: index, work: work.into(), links };
        self.guard
            .tree()
            .freeze(live, root)
            .map_err(|e| LayerError::io("freeze", self.layer.path(), e.into()))?;
        self.layer.freeze()?;
        self.layer = next;
        Ok(())
    }

    /// Unmounts and lets go of the layer. Programs that still hold files open get errors from then
    /// on.
    pub fn unmount(mut self) -> Result<(), MountError> {
        self.end()
    }

    /// The same for who shares it; the layer is free when this is dropped.
    pub fn end(&mut self) -> Result<(), MountError> {
        let Some(session) = self.session.take() else { return Ok(()) };
        if !self.is_gone() {
            mountpoint::detach(&self.mountpoint)?;
        }
        if let Some((watch, thread)) = self.watch.take() {
            watch.stop();
            let _ = thread.join();
            watch.release();
        }
        // With files still open the session lives on until they are closed; it is not waited for.
        let deadline = Instant::now() + Duration::from_secs(1);
        while Instant::now() < deadline {
            if session.is_finished() {
                let _ = session.join();
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Tells the kernel what changed in the base, but nothing about what programs may not see.
fn follow_base(
    watch: Arc<Watch>,
    guard: Arc<Guard>,
    kernel: Arc<Kernel>,
) -> (Arc<Watch>, JoinHandle<()>) {
    let events = watch.clone();
    let thread = std::thread::spawn(move || {
        events.run(|event| match event {
            BaseEvent::Name { dir, name, path } => {
                guard.tree().forget_listing(dir);
                if guard.is_visible(dir, &name, path) {
                    guard.tree().times_moved(dir);
                    // The listing first: who finds the name must find it listed too.
                    kernel.forget_content(dir);
                    kernel.forget_name(dir, &name);
                }
            }
            BaseEvent::Content { dir, name } => {
                if let Some(node) = guard.tree().known_child(dir, &name) {
                    guard.tree().content_changed_outside(node.id);
                    kernel.forget_content(node.id);
                }
            }
            BaseEvent::Directory { dir } => {
                guard.tree().times_moved(dir);
                kernel.forget_content(dir);
            }
            BaseEvent::Overflow => {
                kernel.forget_names();
                for id in guard.tree().known_directories() {
                    guard.tree().times_moved(id);
                    guard.tree().forget_listing(id);
                    kernel.forget_content(id);
                }
            }
        });
    });
    (watch, thread)
}

/// None of the three may contain another: the workspace would show its own layer, or itself.
fn check_apart(base: &Path, layer: &Path, mountpoint: &Path) -> Result<(), MountError> {
    let layer = workspace::resolve_future(layer);
    let inside = |what: &'static str, other: &Path| MountError::MountpointInside {
        mountpoint: mountpoint.into(),
        what,
        other: other.into(),
    };
    if mountpoint.starts_with(base) {
        return Err(inside("the base", base));
    }
    if mountpoint.starts_with(&layer) {
        return Err(inside("the layer", &layer));
    }
    if layer.starts_with(base) || base.starts_with(&layer) {
        return Err(MountError::LayerInsideBase { layer, base: base.into() });
    }
    if layer.starts_with(mountpoint) || base.starts_with(mountpoint) {
        return Err(MountError::MountpointBusy { path: mountpoint.into() });
    }
    Ok(())
}

/// Passthrough to files on overlayfs needs one more level than to ordinary ones.
fn stack_depth(options: &MountOptions, base: &Path, layer: &Path) -> u32 {
    if !options.passthrough {
        return 0;
    }
    let stacked = [base, layer].iter().any(|path| ringfence_sys::probe::is_on_overlayfs(path));
    1 + u32::from(stacked)
}

impl Guard {
    /// Whether programs may know that `name` is or is not in this directory.
    /// `path` is the entry's in the base, in case the kernel does not know the directory any more.
    pub(crate) fn is_visible(&self, dir: NodeId, name: &[u8], path: WorkspacePath) -> bool {
        let mut paths = self.tree().paths_below(dir, name);
        paths.push(path);
        let policy = self.policy();
        crate::levels::lowest(&policy, &paths) > Level::None
            || crate::levels::may_show(&policy, &paths)
    }
}
