//! A directory as a manifest: what is in it, without what is ignored, and digests of its files.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ringfence_fs::layers::mask::{MaskDir, MaskOptions, ignore_files};
use ringfence_wire::v1::ManifestEntry;

use crate::failure::Failure;

/// What is to be pushed.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) entries: Vec<ManifestEntry>,
    /// Neither files, directories nor symbolic links: sockets and the like.
    pub(super) left_out: Vec<String>,
}

/// Everything below `root`. `.gitignore` and `.sandboxignore` count at every level, as git has it,
/// unless all is wanted.
pub(super) fn walk(root: &Path, all: bool) -> Result<Tree, Failure> {
    let mut tree = Tree { root: root.into(), entries: Vec::new(), left_out: Vec::new() };
    let files = if all { vec![] } else { ignore_files() };
    let mask = MaskOptions { files, ..Default::default() };
    let mut left = vec![Directory { mask: MaskDir::root(&mask, open(root)?), path: root.into() }];
    while let Some(directory) = left.pop() {
        for found in fs::read_dir(&directory.path).map_err(unreadable)? {
            left.extend(tree.take(&directory, &found.map_err(unreadable)?)?);
        }
    }
    tree.entries.sort_by(|a, b| a.path.cmp(&b.path));
    digest(&mut tree)?;
    Ok(tree)
}

struct Directory {
    path: PathBuf,
    mask: Option<Arc<MaskDir>>,
}

impl Directory {
    fn hides(&self, name: &OsStr, is_dir: bool) -> bool {
        self.mask.as_ref().is_some_and(|mask| mask.hides(name.as_bytes(), is_dir))
    }

    fn enter(&self, name: &OsStr) -> Result<Self, Failure> {
        let path = self.path.join(name);
        let enter = |mask: &Arc<MaskDir>| Ok(mask.enter(name.as_bytes(), open(&path)?));
        let mask = self.mask.as_ref().map(enter).transpose()?;
        Ok(Self { path, mask })
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", path.display())))
}

fn unreadable(e: std::io::Error) -> Failure {
    Failure::bad_input(format!("cannot read all of it: {e}"))
}

impl Tree {
    /// Answers with what is to be walked next, if this is a directory.
    fn take(&mut self, dir: &Directory, found: &DirEntry) -> Result<Option<Directory>, Failure> {
        let (name, place) = (found.file_name(), found.path());
        let below = place.strip_prefix(&self.root).unwrap_or(&place);
        let data = found.metadata();
        let data = data.map_err(|e| Failure::bad_input(format!("{}: {e}", below.display())))?;
        if dir.hides(&name, data.is_dir()) {
            return Ok(None);
        }
        let Some(path) = below.to_str().map(str::to_owned) else {
            return Err(Failure::bad_input(format!("{below:?}: the name is not UTF-8"))
                .hint("rename it, or leave it out with a line in .sandboxignore"));
        };
        match entry(path.clone(), &place, &data)? {
            Some(entry) => self.entries.push(entry),
            None => self.left_out.push(path),
        }
        data.is_dir().then(|| dir.enter(&name)).transpose()
    }
}

fn entry(path: String, place: &Path, data: &Metadata) -> Result<Option<ManifestEntry>, Failure> {
    let mode = data.mode() & 0o777;
    if data.is_dir() {
        return Ok(Some(ManifestEntry { path, mode, is_dir: true, ..Default::default() }));
    }
    if data.is_symlink() {
        let target = std::fs::read_link(place);
        let target = target.map_err(|e| Failure::bad_input(format!("{path}: {e}")))?;
        let Some(symlink_target) = target.to_str().map(str::to_owned) else {
            return Err(Failure::bad_input(format!("{path}: where it points to is not UTF-8")));
        };
        return Ok(Some(ManifestEntry { path, symlink_target, ..Default::default() }));
    }
    let size = data.len() as i64;
    Ok(data.is_file().then(|| ManifestEntry { path, mode, size, ..Default::default() }))
}

/// The digests of all files, several at once.
fn digest(tree: &mut Tree) -> Result<(), Failure> {
    let is_file = |entry: &&mut ManifestEntry| !entry.is_dir && entry.symlink_target.is_empty();
    let files: Vec<Mutex<&mut ManifestEntry>> =
        tree.entries.iter_mut().filter(is_file).map(Mutex::new).collect();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let (next, root) = (AtomicUsize::new(0), tree.root.as_path());
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut entry = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            (entry.blake3, entry.size) = digest_of(&root.join(&entry.path))
                .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", entry.path)))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|_| Err(Failure::broken("a thread ended badly")))
        };
        workers.into_iter().try_for_each(join)
    })
}

/// In hexadecimal digits, and how much was read for it.
fn digest_of(path: &Path) -> std::io::Result<(String, i64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((hasher.finalize().to_hex().to_string(), hasher.count() as i64))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.entries.iter().map(|entry| entry.path.as_str()).collect()
    }

    #[test]
    fn what_is_ignored_at_any_level_is_left_out_unless_all_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(".gitignore", "*.log\n");
        put("sub/.sandboxignore", "secret\n!b.log\n");
        put("a.log", "");
        put("sub/secret/deep", "");
        put("sub/b.log", "k");
        assert_eq!(
            paths(&walk(dir.path(), false).unwrap()),
            [".gitignore", "sub", "sub/.sandboxignore", "sub/b.log"]
        );
        assert_eq!(paths(&walk(dir.path(), true).unwrap()).len(), 7);
    }

    #[test]
    fn a_name_that_is_not_utf8_is_refused_unless_it_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(OsStr::from_bytes(b"a\xff")), "").unwrap();
        assert!(walk(dir.path(), false).is_err());
        fs::write(dir.path().join(".gitignore"), b"a\xff\n").unwrap();
        assert_eq!(paths(&walk(dir.path(), false).unwrap()), [".gitignore"]);
    }

    #[test]
    fn modes_links_and_empty_directories_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        std::fs::write(dir.path().join("run"), "x").unwrap();
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(dir.path().join("run"), mode).unwrap();
        symlink("../nowhere", dir.path().join("link")).unwrap();
        let tree = walk(dir.path(), false).unwrap();
        let [empty, link, run] = &tree.entries[..] else { panic!("{tree:?}") };
        assert!(empty.is_dir && link.symlink_target == "../nowhere");
        assert_eq!((run.mode, run.size), (0o750, 1));
        assert_eq!(run.blake3, blake3::hash(b"x").to_hex().to_string());
    }
}
