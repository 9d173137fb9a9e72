//! Whatever is done in a workspace, `apply` makes the base what the workspace showed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{apply, changes, layer_command, layer_ok, tree};
use crate::support::{Mounted, Server, Workspace, binary, require_fuse};

/// A small generator with a fixed start: a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }

    /// One of a few paths, so that operations meet.
    fn path(&mut self, root: &Path) -> PathBuf {
        let depth = 1 + self.below(3);
        (0..depth)
            .fold(root.to_path_buf(), |path, _| path.join(["a", "b", "c"][self.below(3) as usize]))
    }
}

/// Does something. Most tries fail somehow, which is fine.
fn step(random: &mut Random, root: &Path) {
    let (path, other) = (random.path(root), random.path(root));
    let text = format!("text {}\n", random.below(4)).repeat(1 + random.below(3) as usize);
    let _ = match random.below(10) {
        0 | 1 => fs::write(&path, text),
        2 => fs::create_dir(&path),
        3 => fs::remove_file(&path),
        4 => fs::remove_dir_all(&path),
        5..=7 => fs::rename(&path, &other),
        8 => symlink("a/b", &path),
        _ => match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => fs::set_permissions(&path, Permissions::from_mode(0o711)),
            Ok(meta) if meta.is_file() => fs::set_permissions(&path, Permissions::from_mode(0o755)),
            _ => fs::hard_link(&other, &path),
        },
    };
}

fn prepare(random: &mut Random, base: &Path) {
    for _ in 0..30 {
        let path = random.path(base);
        let _ = fs::create_dir_all(path.parent().unwrap());
        let text = format!("base {}\n", random.below(1000));
        let _ = fs::write(path, text);
    }
}

fn mounted(ws: &Mounted, layer: &Path, work: impl FnOnce(&Path)) {
    let mut command = binary();
    command.args(["mount", "--preset", "full-access", "--base"]).arg(ws.base());
    command.arg("--layer").arg(layer).arg(ws.root());
    let server = Server::start(command).unwrap_or_else(|output| panic!("{output:?}"));
    work(&ws.root());
    assert_eq!(server.stop(), Some(0));
}

/// The files of a copy of the base after `git apply` with the layer's diff.
fn patched(ws: &Mounted, layer: &Path) -> Vec<String> {
    let copy = tempfile::tempdir().unwrap();
    let cp = Command::new("cp").arg("-a").arg(ws.base().join(".")).arg(copy.path()).status();
    assert!(cp.unwrap().success());
    let patch = layer_ok("diff", &[layer.as_os_str()]);
    fs::write(ws.scratch().join("patch"), &patch).unwrap();
    let input = fs::File::open(ws.scratch().join("patch")).unwrap();
    let git = Command::new("git")
        .args(["apply", "--allow-empty", "-"])
        .current_dir(copy.path())
        .stdin(input)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(git.status.success(), "{git:?}\n{patch}");
    without_directories(tree(copy.path()))
}

/// A patch says nothing of directories.
fn without_directories(tree: Vec<String>) -> Vec<String> {
    tree.into_iter().filter(|line| !line.contains(" d ")).collect()
}

fn try_out(seed: u64) {
    let mut random = Random(seed);
    let mut ws = Workspace::new().with_base(|base| prepare(&mut random, base)).mount();
    ws.unmount();
    let mut layer = ws.scratch().join("layer-0");
    let mut shown = Vec::new();
    let layers = 1 + seed % 3;
    for number in 1..=layers {
        mounted(&ws, &layer, |root| {
            (0..12).for_each(|_| step(&mut random, root));
            shown = tree(root);
        });
        if number < layers {
            layer_ok("freeze", &[layer.as_os_str()]);
            let next = ws.scratch().join(format!("layer-{number}"));
            layer_ok("fork", &[layer.as_os_str(), next.as_os_str()]);
            layer = next;
        }
    }
    let listed = changes(&layer);
    assert_eq!(patched(&ws, &layer), without_directories(shown.clone()), "seed {seed}: {listed:?}");
    let done = layer_command("apply", &[layer.as_os_str()]);
    assert!(done.status.success(), "seed {seed}: {listed:?} {done:?}");
    assert_eq!(tree(&ws.base()), shown, "seed {seed}: {listed:?}");
    assert_eq!(changes(&layer), Vec::<String>::new(), "seed {seed}: {listed:?}");
    mounted(&ws, &layer, |root| assert_eq!(tree(root), shown, "seed {seed}: {listed:?}"));
    assert_eq!(apply(&layer), "nothing to apply\n", "seed {seed}");
}

#[test]
fn random_work_is_applied_exactly() {
    require_fuse!();
    let (first, count) = match std::env::var("RINGFENCE_SEED") {
        Ok(seed) => (seed.parse().unwrap(), 1),
        Err(_) => (1, 30),
    };
    (first..first + count).for_each(try_out);
}
