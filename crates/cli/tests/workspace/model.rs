//! Random operations against a model: a plain directory in memory on which the same operations are
//! done. After every step both must have answered the same, after every remount, freeze and fork
//! both trees must be the same. A failure prints its seed and the last operations.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};

use crate::support::{Server, binary, require_fuse};

/// A small generator, so that a seed gives the same run everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Few names and little depth, so that operations meet each other.
    fn path(&mut self) -> PathBuf {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| ["a", "b", "c", "d", "e"][self.below(5) as usize]).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = if self.below(8) == 0 { self.below(200_000) } else { self.below(40) };
        let first = self.below(256) as u8;
        (0..length).map(|i| first.wrapping_add(i as u8)).collect()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write(PathBuf, Vec<u8>),
    CreateNew(PathBuf, u32),
    Append(PathBuf, Vec<u8>),
    Overwrite(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    Mkdir(PathBuf, u32),
    Unlink(PathBuf),
    Rmdir(PathBuf),
    RemoveAll(PathBuf),
    Rename(PathBuf, PathBuf, u32),
    Link(PathBuf, PathBuf),
    Symlink(PathBuf, PathBuf),
    Chmod(PathBuf, u32),
    Touch(PathBuf, i64),
    SetAttribute(PathBuf, Vec<u8>),
    Read(PathBuf),
    List(PathBuf),
}

fn random_op(r: &mut Random) -> Op {
    let path = r.path();
    match r.below(24) {
        0 | 1 => Op::Write(path, r.bytes()),
        2 => Op::CreateNew(path, [0o644, 0o600, 0o755, 0o444][r.below(4) as usize]),
        3 | 4 => Op::Append(path, r.bytes()),
        5 => Op::Overwrite(path, r.below(50), r.bytes()),
        6 => Op::Truncate(path, r.below(100)),
        7..=9 => Op::Mkdir(path, [0o755, 0o700, 0o775][r.below(3) as usize]),
        10 | 11 => Op::Unlink(path),
        12 => Op::Rmdir(path),
        13 => Op::RemoveAll(path),
        14..=17 => Op::Rename(path, r.path(), 0),
        18 => Op::Rename(path, r.path(), 1 + r.below(2) as u32),
        19 => Op::Link(path, r.path()),
        20 => Op::Symlink(r.path(), path),
        21 => match r.below(3) {
            0 => Op::Chmod(path, [0o644, 0o755, 0o700, 0o0][r.below(4) as usize]),
            1 => Op::Touch(path, 1_000_000 + r.below(1_000_000) as i64),
            _ => Op::SetAttribute(path, r.bytes().into_iter().take(30).collect()),
        },
        22 => Op::Read(path),
        _ => Op::List(path),
    }
}

/// Does an operation below `root` and returns what a program would see of its result.
fn perform(root: &Path, op: &Op) -> Result<Vec<u8>, i32> {
    let at = |path: &Path| root.join(path);
    let done =
        |result: rustix::io::Result<()>| result.map(|()| Vec::new()).map_err(|e| e.raw_os_error());
    let io = |result: std::io::Result<()>| {
        result.map(|()| Vec::new()).map_err(|e| e.raw_os_error().unwrap_or(-1))
    };
    match op {
        Op::Write(path, data) => io(fs::write(at(path), data)),
        Op::CreateNew(path, mode) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            done(rustix::fs::open(at(path), flags, Mode::from(*mode)).map(drop))
        }
        Op::Append(path, data) => io(fs::File::options()
            .append(true)
            .open(at(path))
            .and_then(|mut file| std::io::Write::write_all(&mut file, data))),
        Op::Overwrite(path, offset, data) => io(fs::File::options()
            .write(true)
            .open(at(path))
            .and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, data, *offset))),
        Op::Truncate(path, size) => {
            io(fs::File::options().write(true).open(at(path)).and_then(|file| file.set_len(*size)))
        }
        Op::Mkdir(path, mode) => done(rustix::fs::mkdir(at(path), Mode::from(*mode))),
        Op::Unlink(path) => done(rustix::fs::unlink(at(path))),
        Op::Rmdir(path) => done(rustix::fs::rmdir(at(path))),
        Op::RemoveAll(path) => match fs::symlink_metadata(at(path)) {
            Ok(meta) if meta.is_dir() => io(fs::remove_dir_all(at(path))),
            _ => Ok(vec![]),
        },
        Op::Rename(from, to, flags) => {
            let flags = RenameFlags::from_bits_retain(*flags);
            done(rustix::fs::renameat_with(CWD, at(from), CWD, at(to), flags))
        }
        Op::Link(from, to) => {
            done(rustix::fs::linkat(CWD, at(from), CWD, at(to), AtFlags::empty()))
        }
        Op::Symlink(target, path) => io(symlink(target, at(path))),
        Op::Chmod(path, mode) => match fs::symlink_metadata(at(path)) {
            Ok(meta) if !meta.is_symlink() => {
                io(fs::set_permissions(at(path), fs::Permissions::from_mode(*mode)))
            }
            Ok(_) => Ok(vec![]),
            Err(e) => Err(e.raw_os_error().unwrap_or(-1)),
        },
        Op::Touch(path, seconds) => {
            let time = rustix::fs::Timespec { tv_sec: *seconds, tv_nsec: 5 };
            let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            done(rustix::fs::utimensat(CWD, at(path), &times, flags))
        }
        Op::SetAttribute(path, value) => {
            let flags = rustix::fs::XattrFlags::empty();
            match fs::symlink_metadata(at(path)) {
                Ok(meta) if meta.is_file() => {
                    done(rustix::fs::setxattr(at(path), "user.test", value, flags))
                }
                _ => Ok(vec![]),
            }
        }
        Op::Read(path) => fs::read(at(path)).map_err(|e| e.raw_os_error().unwrap_or(-1)),
        Op::List(path) => {
            let mut names = Vec::new();
            let dir = fs::read_dir(at(path)).map_err(|e| e.raw_os_error().unwrap_or(-1))?;
            for entry in dir {
                let entry = entry.map_err(|e| e.raw_os_error().unwrap_or(-1))?;
                names.push(entry.file_name().into_encoded_bytes());
            }
            names.sort();
            Ok(names.join(&b'/'))
        }
    }
}

/// Everything a program can learn about a tree, except inode numbers and times of directories.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    mode: u32,
    content: Vec<u8>,
    attribute: Option<Vec<u8>>,
    links: u64,
    mtime: Option<(i64, i64)>,
}

fn facts(root: &Path) -> BTreeMap<PathBuf, Facts> {
    let mut all = BTreeMap::new();
    collect(root, Path::new(""), &mut all);
    all
}

fn collect(root: &Path, below: &Path, all: &mut BTreeMap<PathBuf, Facts>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let path = below.join(entry.unwrap().file_name());
        let full = root.join(&path);
        let meta = fs::symlink_metadata(&full).unwrap();
        let content = match meta.file_type() {
            kind if kind.is_dir() => vec![],
            kind if kind.is_symlink() => {
                fs::read_link(&full).unwrap().into_os_string().into_encoded_bytes()
            }
            _ => fs::read(&full).unwrap(),
        };
        let mut value = [0u8; 64];
        let attribute = match meta.is_file() {
            true => rustix::fs::getxattr(&full, "user.test", &mut value[..]).ok(),
            false => None,
        };
        let touched = meta.mtime() < 10_000_000;
        all.insert(
            path.clone(),
            Facts {
                mode: meta.mode(),
                content,
                attribute: attribute.map(|len| value[..len].to_vec()),
                links: if meta.is_dir() { 0 } else { meta.nlink() },
                mtime: (touched && meta.is_file()).then(|| (meta.mtime(), meta.mtime_nsec())),
            },
        );
        if meta.is_dir() {
            collect(root, &path, all);
        }
    }
}

struct Run {
    dir: tempfile::TempDir,
    passthrough: bool,
    layers: u32,
    server: Option<Server>,
    log: Vec<(Op, Result<Vec<u8>, i32>)>,
}

impl Run {
    fn new(r: &mut Random, passthrough: bool) -> Self {
        // In memory, so that the model is not slower than what it checks.
        let dir = tempfile::TempDir::new_in("/dev/shm").unwrap();
        for sub in ["base", "mnt", "model"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let mut run = Self { dir, passthrough, layers: 0, server: None, log: vec![] };
        for _ in 0..60 {
            let op = random_op(r);
            // Links of the base have rules of their own, tested elsewhere.
            if !matches!(op, Op::Link(..)) {
                let _ = perform(&run.at("base"), &op);
            }
        }
        copy_tree(&run.at("base"), &run.at("model"));
        run.mount();
        run
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn layer(&self) -> PathBuf {
        self.at(&format!("layer{}", self.layers))
    }

    fn mount(&mut self) {
        self.server = Some(self.start(&self.layer()));
    }

    fn start(&self, layer: &Path) -> Server {
        let mut command = binary();
        command.args(["mount", "--preset", "full-access", "--base"]).arg(self.at("base"));
        command.arg("--layer").arg(layer);
        if !self.passthrough {
            command.arg("--no-passthrough");
        }
        command.arg(self.at("mnt"));
        Server::start(command).unwrap()
    }

    fn unmount(&mut self) {
        if let Some(server) = self.server.take() {
            assert_eq!(server.stop(), Some(0));
        }
    }

    fn step(&mut self, r: &mut Random) {
        let op = random_op(r);
        let expected = perform(&self.at("model"), &op);
        let found = perform(&self.at("mnt"), &op);
        self.log.push((op, expected.clone()));
        assert_eq!(found, expected, "after {:#?}", self.last_operations());
    }

    fn last_operations(&self) -> &[(Op, Result<Vec<u8>, i32>)] {
        &self.log[self.log.len().saturating_sub(25)..]
    }

    fn compare(&self) {
        let (mut found, mut expected) = (facts(&self.at("mnt")), facts(&self.at("model")));
        // Names deleted in a layer above still count for a file of a frozen one.
        if self.layers > 0 {
            found.values_mut().chain(expected.values_mut()).for_each(|fact| fact.links = 0);
        }
        for (path, fact) in &expected {
            assert_eq!(
                found.get(path),
                Some(fact),
                "at {}, after {:#?}",
                path.display(),
                self.last_operations()
            );
        }
        let surplus: Vec<_> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
        assert!(surplus.is_empty(), "{surplus:?} after {:#?}", self.last_operations());
    }

    fn remount(&mut self) {
        self.compare();
        self.unmount();
        self.mount();
        self.compare();
    }

    /// Freezes the layer, forks it twice, checks that a change in one fork does not reach the
    /// other, and goes on with the first.
    fn fork(&mut self) {
        self.unmount();
        let (frozen, twin) = (self.layer(), self.at("twin"));
        layer_command(&["freeze"], &[&frozen]);
        self.layers += 1;
        layer_command(&["fork"], &[&frozen, &self.layer(), &twin]);
        self.server = Some(self.start(&twin));
        self.compare();
        fs::write(self.at("mnt").join("only in the twin"), "x").unwrap();
        self.unmount();
        layer_command(&["rm"], &[&twin]);
        self.mount();
        self.compare();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

fn layer_command(args: &[&str], paths: &[&Path]) {
    let output = binary().arg("layer").args(args).args(paths).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

fn copy_tree(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

fn run(seed: u64, passthrough: bool, steps: u32) {
    eprintln!("seed {seed}, passthrough {passthrough}");
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut run = Run::new(&mut random, passthrough);
    for step in 1..=steps {
        run.step(&mut random);
        match step % 400 {
            0 => run.fork(),
            200 => run.remount(),
            _ => {}
        }
    }
    run.compare();
    run.unmount();
}

#[test]
fn random_operations_leave_the_same_tree_as_on_a_plain_directory() {
    require_fuse!();
    for seed in 1..=12 {
        run(seed, true, 1000);
    }
}

#[test]
fn random_operations_leave_the_same_tree_without_passthrough() {
    require_fuse!();
    for seed in 101..=106 {
        run(seed, false, 1000);
    }
}
