//! A server of a test's own, and the program that asks it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Skips a test where the kernel or the host lacks something; fails where that must not happen.
macro_rules! require_sandbox {
    () => {
        if let Some(missing) = crate::support::missing() {
            assert!(
                std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(),
                "required and missing: {missing}"
            );
            eprintln!("skipped: {missing}");
            return;
        }
    };
}
pub(crate) use require_sandbox;

/// What a sandbox needs and this host does not have.
pub(crate) fn missing() -> Option<String> {
    if let Some(advice) = ringfence_sys::probe::fuse_device().advice() {
        return Some(format!("FUSE ({advice})"));
    }
    let found = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "bubblewrap".into())
}

/// The program, with nothing of the tester's own settings.
pub(crate) fn ringfence(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    for name in ["RINGFENCE_ENDPOINT", "RINGFENCE_TOKEN", "RINGFENCE_STATE", "RINGFENCE_TLS_CA"] {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// A server on a state directory and a socket of its own.
pub(crate) struct Server {
    pub(crate) dir: tempfile::TempDir,
    child: Child,
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, socket) = (dir.path().join("state"), dir.path().join("api.sock"));
        let mut command = ringfence(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--unix").arg(socket).arg("--state").arg(state);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{line:?}");
        Self { dir, child }
    }

    fn endpoint(&self) -> String {
        format!("unix://{}", self.dir.path().join("api.sock").display())
    }

    /// A question to this server.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = ringfence(args);
        command.env("RINGFENCE_ENDPOINT", self.endpoint());
        command
    }

    pub(crate) fn ask(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What is printed by a command that must succeed, without the last newline.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.says(&[args, &["--json"]].concat())).unwrap()
    }

    /// The same with something on standard input.
    pub(crate) fn ask_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join().unwrap();
        output
    }

    /// A small tree with what must survive: a program, a link, an empty directory; and what must not.
    pub(crate) fn tree(&self) -> PathBuf {
        let root = self.dir.path().join("tree");
        put(&root.join("a.txt"), "hello\n");
        put(&root.join("sub/run.sh"), "#!/bin/sh\necho ran\n");
        put(&root.join(".gitignore"), "*.log\n");
        put(&root.join("noise.log"), "noise");
        std::fs::create_dir(root.join("empty")).unwrap();
        std::os::unix::fs::symlink("a.txt", root.join("link")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.join("sub/run.sh"), mode).unwrap();
        root
    }

    /// The id of a codebase with that tree.
    pub(crate) fn codebase(&self) -> String {
        self.says(&["codebase", "push", self.tree().to_str().unwrap()])
    }

    /// The id of a sandbox on it that runs.
    pub(crate) fn sandbox(&self) -> String {
        let codebase = self.codebase();
        self.says(&["sandbox", "create", "--codebase", &codebase, "--rule", "write:/**", "--start"])
    }
}

impl Drop for Server {
    /// Sandboxes outlive their server, so they go first.
    fn drop(&mut self) {
        let listed = self.ask(&["sandbox", "ls", "--json"]).stdout;
        let listed: Value = serde_json::from_slice(&listed).unwrap_or_default();
        for sandbox in listed.as_array().into_iter().flatten() {
            self.ask(&["sandbox", "rm", sandbox["id"].as_str().unwrap_or_default()]);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// It ended with this code, and its standard error has all of this in it.
pub(crate) fn failed(output: &Output, code: i32, what: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for what in what {
        assert!(errors.contains(what), "{what:?} is not in {errors}");
    }
}
