//! What codebases promise, through what callers use.

mod commits;
mod files;
mod fleeting;
mod half_done;
mod records;
mod staging;
mod symlinks;
mod together;
mod versions;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::problem::Code;
use crate::store::{LOCAL, SandboxRecord};

/// A server's state, and what is stored in it.
struct Fixture {
    codebases: Codebases,
    store: Store,
    dir: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let codebases = Codebases::new(store.clone(), limits).unwrap();
        Self { codebases, store, dir }
    }

    /// The same state after the server was killed.
    fn restarted(self) -> (Self, Vec<String>) {
        let Self { codebases, store, dir } = self;
        drop((codebases, store));
        let store = Store::open(dir.path()).unwrap();
        let codebases = Codebases::new(store.clone(), Limits::default()).unwrap();
        let done = codebases.reconcile().unwrap();
        (Self { codebases, store, dir }, done)
    }

    fn create(&self) -> String {
        let wanted =
            NewCodebase { owner_id: "owner".into(), name: "name".into(), ..NewCodebase::default() };
        self.codebases.create(LOCAL, wanted).unwrap().id
    }

    fn create_local(&self, path: &Path) -> String {
        let wanted = NewCodebase {
            owner_id: "owner".into(),
            name: "name".into(),
            local_path: Some(path.to_owned()),
            ..NewCodebase::default()
        };
        self.codebases.create(LOCAL, wanted).unwrap().id
    }

    fn get(&self, id: &str) -> Codebase {
        self.codebases.get(LOCAL, id).unwrap()
    }

    fn write(&self, id: &str, path: &str, bytes: &[u8]) -> Result<UploadDone> {
        self.upload(id, UploadTarget::File { path: path.into(), mode: None }, bytes)
    }

    fn upload(&self, id: &str, target: UploadTarget, bytes: &[u8]) -> Result<UploadDone> {
        let mut upload = self.codebases.begin_upload(LOCAL, id, target)?;
        // More than one call, so that nothing relies on the whole being there at once.
        for part in bytes.chunks(3000) {
            upload.write(part)?;
        }
        upload.finish()
    }

    fn read(&self, id: &str, path: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.codebases.open_file(LOCAL, id, path)?.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    fn list(&self, id: &str, path: &str, recursive: bool) -> Result<Vec<String>> {
        let found = self.codebases.list_files(LOCAL, id, path, recursive)?;
        Ok(found.iter().map(|entry| entry.path.display().to_string()).collect())
    }

    /// Of the newest version.
    fn tree(&self, id: &str) -> PathBuf {
        self.codebases.path_of(LOCAL, id).unwrap()
    }

    fn place(&self, id: &str) -> PathBuf {
        self.dir.path().join("codebases").join(id)
    }

    fn versions(&self, id: &str) -> Vec<i64> {
        let mut present = self.codebases.inner.place(id).present().unwrap();
        present.sort();
        present
    }

    /// A sandbox on record that stands on a version.
    fn stand_on(&self, id: &str, version: i64) -> String {
        let sandbox = SandboxRecord {
            id: Kind::Sandbox.random(),
            account: LOCAL.into(),
            codebase_id: id.into(),
            codebase_version: Some(version),
            ..SandboxRecord::default()
        };
        self.store.insert_sandbox(&sandbox, usize::MAX).unwrap();
        sandbox.id
    }

    /// What is on record is what is on disk.
    #[track_caller]
    fn assert_agreement(&self, id: &str) {
        let entries = self.codebases.list_files(LOCAL, id, "", true).unwrap();
        let on_disk: BTreeMap<Vec<u8>, u64> = entries
            .iter()
            .map(|entry| (entry.path.as_os_str().as_encoded_bytes().to_vec(), entry.size))
            .collect();
        let rows = self.store.files(id).unwrap();
        let on_record = rows.iter().map(|file| (file.path.clone(), file.stamp.size)).collect();
        assert_eq!(on_disk, on_record);
        let codebase = self.get(id);
        assert_eq!(codebase.file_count, on_disk.len() as u64);
        assert_eq!(codebase.size, on_disk.values().sum::<u64>());
        for row in rows.iter().filter(|row| row.digest.is_some()) {
            let path = String::from_utf8(row.path.clone()).unwrap();
            assert_eq!(row.digest, Some(blake3::hash(&self.read(id, &path).unwrap())), "{path}");
        }
        assert!(self.store.intents().unwrap().is_empty());
        let left = std::fs::read_dir(self.place(id).join("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary files are left");
    }
}

#[track_caller]
fn assert_code<T: std::fmt::Debug>(result: Result<T>, code: Code) -> Problem {
    let problem = result.unwrap_err();
    assert_eq!(problem.code, code, "{problem}");
    assert!(!problem.message.contains("/tmp"), "{problem} names a path of the host");
    problem
}

/// Everything in a directory: paths, modes and contents.
fn contents_of(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            found.extend(contents_of(&path));
            found.insert(path, (mode, Vec::new()));
        } else if metadata.is_symlink() {
            let target = path.read_link().unwrap();
            found.insert(path, (mode, target.into_os_string().into_encoded_bytes()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, (mode, bytes));
        }
    }
    found
}
