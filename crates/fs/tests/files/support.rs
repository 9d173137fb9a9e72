//! A workspace for a test, mounted or not, and its files.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use ringfence_fs::events::EventSink;
use ringfence_fs::files::{Entry, FileError, Files, View, WriteOptions};
use ringfence_fs::guard::Owner;
use ringfence_fs::layers::mask::MaskOptions;
use ringfence_fs::mount::{MountOptions, Mounted, mount};
use ringfence_fs::offline::{Offline, OfflineOptions, open_offline};
use ringfence_policy::{Policy, Rule, WorkspacePath};
use tempfile::TempDir;

/// Skips with a reason where no filesystem can be mounted, and fails where it must be possible.
pub(crate) fn can_mount() -> bool {
    let can = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    assert!(can || std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(), "/dev/fuse is required");
    can
}

pub(crate) struct Place {
    dir: TempDir,
    rules: Vec<String>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for sub in ["base", "mnt"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        Self { dir, rules: vec!["write:**/*".into()] }
    }

    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.at("base").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn rule(mut self, rule: impl Into<String>) -> Self {
        self.rules.push(rule.into());
        self
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn policy(&self) -> Arc<Policy> {
        let rules = self.rules.iter().map(|rule| Rule::parse_cli(rule).unwrap());
        Arc::new(Policy::compile(rules.collect()).unwrap())
    }

    pub(crate) fn mount(&self, passthrough: bool) -> Mounted {
        let options = MountOptions {
            base: self.at("base"),
            base_in_place: true,
            layer: self.at("layer"),
            mountpoint: self.at("mnt"),
            mask: MaskOptions::default(),
            owner: Owner {
                uid: rustix::process::getuid().as_raw(),
                gid: rustix::process::getgid().as_raw(),
            },
            passthrough,
        };
        mount(&options, self.policy(), EventSink::default(), || {}).unwrap()
    }

    pub(crate) fn offline(&self) -> Offline {
        let (base, layer) = (self.at("base"), self.at("layer"));
        let options = OfflineOptions { base, layer, mask: MaskOptions::default() };
        open_offline(&options, self.policy()).unwrap()
    }

    /// What programs are told to use.
    pub(crate) fn mnt(&self, path: &str) -> PathBuf {
        self.at("mnt").join(path)
    }
}

/// Runs a test in a workspace whose files the kernel serves itself, and in one where it asks.
pub(crate) fn in_both_modes(make: impl Fn() -> Place, test: impl Fn(&Place, &Mounted)) {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let place = make();
        let mounted = place.mount(passthrough);
        test(&place, &mounted);
        mounted.unmount().unwrap();
    }
}

pub(crate) fn p(path: &str) -> WorkspacePath {
    WorkspacePath::from_caller(path).unwrap()
}

pub(crate) fn owner(mounted: &Mounted) -> Files {
    mounted.files(View::Owner)
}

/// Short forms that fail the test.
pub(crate) trait Quick {
    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> Entry;
    fn try_put(&self, path: &str, content: impl AsRef<[u8]>) -> Result<Entry, FileError>;
    fn get(&self, path: &str) -> String;
    fn try_get(&self, path: &str) -> Result<String, FileError>;
    fn names(&self, path: &str) -> Vec<String>;
    fn tree(&self) -> Vec<String>;
}

impl Quick for Files {
    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> Entry {
        self.try_put(path, content).unwrap()
    }

    fn try_put(&self, path: &str, content: impl AsRef<[u8]>) -> Result<Entry, FileError> {
        let mut writing = self.write(&p(path), WriteOptions::default())?;
        writing.write_all(content.as_ref()).unwrap();
        writing.finish()
    }

    fn get(&self, path: &str) -> String {
        self.try_get(path).unwrap()
    }

    fn try_get(&self, path: &str) -> Result<String, FileError> {
        let reading = self.read(&p(path))?;
        let mut content = vec![0; reading.entry().size as usize + 1];
        let read = reading.read_at(0, &mut content).unwrap();
        content.truncate(read);
        Ok(String::from_utf8(content).unwrap())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = self.list(&p(path)).unwrap();
        let name = |entry: &Entry| entry.path.file_name().unwrap().to_vec();
        entries.iter().map(|entry| String::from_utf8(name(entry)).unwrap()).collect()
    }

    /// Everything, one line each, with contents.
    fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(&p("/"), &mut |entry| {
            let content = match entry.kind.as_str() {
                "file" => self.get(&entry.path.to_string()),
                _ => String::from_utf8(entry.target.unwrap_or_default()).unwrap(),
            };
            let (kind, mode) = (entry.kind.as_str(), entry.mode);
            lines.push(format!("{} {kind} {mode:o} {content}", entry.path));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        lines
    }
}

/// 0 for success, or the error number.
pub(crate) fn code<T>(result: Result<T, FileError>) -> i32 {
    result.map_or_else(|e| e.errno.raw_os_error(), |_| 0)
}

pub(crate) fn io_code<T>(result: std::io::Result<T>) -> i32 {
    result.map_or_else(|e| e.raw_os_error().unwrap(), |_| 0)
}

pub(crate) fn listed(dir: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn content(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
