//! `ringfence run` as a person types it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{eventually, processes_with, require_sandbox, unique_sleep};

/// A project, a state directory, and the binary.
struct Bench {
    scratch: TempDir,
}

impl Bench {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let bench = Self { scratch };
        std::fs::create_dir(bench.project()).unwrap();
        bench.file("src/app.py", "print('hello')\n").file(".env", "SECRET=1\n")
    }

    fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn file(self, path: &str, content: &str) -> Self {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command.args(words).current_dir(self.project());
        command.env("RINGFENCE_STATE", self.state()).env("HOST_SECRET", "leak-me");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Done {
        let words = [&["run"], options, &[".", "--"], command].concat();
        Done::of(self.command(&words).output().unwrap())
    }

    /// What the last kept layer is.
    fn layer(&self) -> PathBuf {
        let dirs = std::fs::read_dir(self.state().join("sandboxes")).unwrap().flatten();
        let layers: Vec<_> =
            dirs.map(|dir| dir.path().join("layer")).filter(|l| l.exists()).collect();
        assert_eq!(layers.len(), 1, "{layers:?}");
        layers[0].clone()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.project().join(path)).unwrap()
    }
}

#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Done {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[test]
fn streams_and_exit_code_are_the_commands_and_nothing_is_added() {
    require_sandbox!();
    let done = Bench::new().run(&[], &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((done.out.as_str(), done.err.as_str(), done.code), ("out\n", "err\n", 7));
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    require_sandbox!();
    assert_eq!(Bench::new().run(&[], &["sh", "-c", "kill -TERM $$"]).code, 143);
}

#[test]
fn arguments_arrive_as_they_are() {
    require_sandbox!();
    let odd = "a b\n'\"$(x) \\ *\t";
    let done = Bench::new().run(&[], &["printf", "%s|", odd, ""]);
    assert_eq!(done.out, format!("{odd}||"));
}

#[test]
fn input_arrives_and_ends() {
    require_sandbox!();
    let bench = Bench::new();
    let mut child = bench
        .command(&["run", ".", "--", "sh", "-c", "cat; echo end"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\0two").unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.stdout, b"one\0twoend\n");
}

#[test]
fn output_is_seen_while_the_command_runs() {
    require_sandbox!();
    let bench = Bench::new();
    let text = "printf prompt; read answer; echo \"got $answer\"";
    let mut child =
        bench.command(&["run", ".", "--", "sh", "-c", text]).stdin(Stdio::piped()).spawn().unwrap();
    has_said(&mut child, "prompt");
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"got yes\n");
}

#[test]
fn signals_reach_the_command() {
    require_sandbox!();
    let bench = Bench::new();
    let text = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let mut child = bench.command(&["run", ".", "--", "sh", "-c", text]).spawn().unwrap();
    has_said(&mut child, "ready\n");
    kill("-INT", child.id());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.stdout.as_slice(), done.status.code()), (&b"interrupted\n"[..], Some(3)));
}

#[test]
fn whoever_insists_ends_a_command_that_does_not_listen() {
    require_sandbox!();
    let bench = Bench::new();
    let text = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = bench.command(&["run", ".", "--", "sh", "-c", text]).spawn().unwrap();
    has_said(&mut child, "ready\n");
    // Until it ends: of signals that come faster than they are taken, one is left.
    let mut ended = None;
    eventually("it ends", || {
        ended = child.try_wait().unwrap();
        if ended.is_none() {
            kill("-INT", child.id());
        }
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(137));
}

#[test]
fn nobody_reading_ends_the_command_as_a_pipe_would() {
    require_sandbox!();
    let bench = Bench::new();
    let mut child = bench.command(&["run", ".", "--", "yes"]).spawn().unwrap();
    has_said(&mut child, &"y\n".repeat(500));
    drop(child.stdout.take());
    assert_ne!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_default_preset_hides_secrets_and_says_how_to_allow_them() {
    require_sandbox!();
    let bench = Bench::new();
    let done = bench.run(&[], &["cat", ".env"]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("lookup /.env (rule none:**/.env*)"), "{done:?}");
    let (_, rule) = done.err.split_once("to allow it: --rule ").unwrap();
    let done = bench.run(&["--preset", "agent-safe", "--rule", rule.trim()], &["cat", ".env"]);
    assert_eq!((done.code, done.out.as_str()), (0, "SECRET=1\n"), "{done:?}");
}

#[test]
fn the_allowing_rule_for_a_directory_shows_what_is_in_it() {
    require_sandbox!();
    let bench = Bench::new().file("config/secrets/db", "password");
    let done = bench.run(&[], &["cat", "config/secrets/db"]);
    let (_, rule) = done.err.split_once("to allow it: --rule ").unwrap();
    let rule = rule.trim().trim_matches('\'');
    let done =
        bench.run(&["--preset", "agent-safe", "--rule", rule], &["cat", "config/secrets/db"]);
    assert_eq!(done.out, "password", "{rule}: {done:?}");
}

#[test]
fn changes_are_kept_with_the_commands_to_look_apply_and_discard() {
    require_sandbox!();
    let bench = Bench::new();
    let done =
        bench.run(&["--preset", "development"], &["sh", "-c", "echo new > f; rm src/app.py"]);
    assert_eq!(done.code, 0);
    for line in ["A f", "D src/app.py", "changes kept"] {
        assert!(done.err.contains(line), "{line}: {}", done.err);
    }
    assert!(bench.project().join("src/app.py").exists());
    let mut told = done.err.lines().filter_map(|line| line.split_once("ringfence layer "));
    let (look, apply) = (told.next().unwrap().1, told.next().unwrap().1);
    let run = |line: &str| {
        let words: Vec<_> = ["layer"].into_iter().chain(line.split(' ')).collect();
        Done::of(bench.command(&words).output().unwrap())
    };
    assert!(run(look).out.contains("+new"));
    assert_eq!(run(apply).code, 0);
    assert_eq!(bench.read("f"), "new\n");
    assert!(!bench.project().join("src/app.py").exists());
}

#[test]
fn apply_writes_back_discard_throws_away_and_neither_leaves_a_layer() {
    require_sandbox!();
    let bench = Bench::new();
    let write = ["sh", "-c", "echo new > f"];
    assert_eq!(bench.run(&["--preset", "development", "--discard"], &write).code, 0);
    assert!(!bench.project().join("f").exists());
    assert_eq!(bench.run(&["--preset", "development", "--apply"], &write).code, 0);
    assert_eq!(bench.read("f"), "new\n");
    let mut dirs = std::fs::read_dir(bench.state().join("sandboxes")).unwrap().flatten();
    assert!(dirs.all(|dir| !dir.path().join("layer").exists()));
}

#[test]
fn apply_writes_nothing_if_the_directory_has_changed_meanwhile() {
    require_sandbox!();
    let bench = Bench::new();
    let text = "echo theirs > src/app.py; echo ready; read go";
    let words = ["run", "--preset", "development", "--apply", ".", "--", "sh", "-c", text];
    let mut child = bench.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    has_said(&mut child, "ready\n");
    std::fs::write(bench.project().join("src/app.py"), "mine\n").unwrap();
    drop(child.stdin.take());
    let done = Done::of(child.wait_with_output().unwrap());
    assert!(done.err.contains("conflict: src/app.py"), "{done:?}");
    assert_eq!(bench.read("src/app.py"), "mine\n");
    assert!(bench.layer().exists());
}

#[test]
fn nothing_is_said_if_there_is_nothing_to_say() {
    require_sandbox!();
    let done = Bench::new().run(&[], &["python3", "src/app.py"]);
    assert_eq!((done.out.as_str(), done.err.as_str(), done.code), ("hello\n", "", 0));
}

#[test]
fn limits_end_the_command_and_are_named() {
    require_sandbox!();
    let bench = Bench::new();
    let done = bench.run(&["--timeout", "300ms"], &["sleep", "60"]);
    assert_eq!(done.code, 124);
    assert!(done.err.contains("--timeout"), "{done:?}");
    let done = bench.run(&["--memory", "64M"], &["python3", "-c", "bytearray(1 << 30)"]);
    assert_eq!(done.code, 137);
    assert!(done.err.contains("--memory"), "{done:?}");
    let forks = "for i in $(seq 40); do sleep 60 & done";
    let done = bench.run(&["--pids", "12"], &["sh", "-c", forks]);
    assert!(done.err.contains("--pids"), "{done:?}");
}

#[test]
fn the_record_holds_the_whole_run() {
    require_sandbox!();
    let bench = Bench::new();
    let record = bench.scratch.path().join("record.json");
    let text = "cat .env; mkdir output; echo x > output/f; exit 3";
    let options = ["--discard", "--memory", "256M", "--json", record.to_str().unwrap()];
    assert_eq!(bench.run(&options, &["sh", "-c", text]).code, 3);
    let record: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    assert_eq!(record["exit_code"], 3);
    assert_eq!(record["denied"][0]["path"], "/.env");
    assert_eq!(record["changes"][1]["path"], "/output/f");
    assert_eq!(record["changes_are"], "discarded");
    assert_eq!(record["in_force"]["memory_bytes"], 256 << 20);
    assert_eq!(record["in_force"]["seccomp"], true);
    assert!(Path::new(record["journal"].as_str().unwrap()).exists());
}

#[test]
fn the_run_is_on_record_and_the_record_verifies() {
    require_sandbox!();
    let bench = Bench::new();
    bench.run(&[], &["cat", ".env"]);
    let audit =
        |words: &[&str]| Done::of(bench.command(&[&["audit"], words].concat()).output().unwrap());
    let shown = audit(&["last", "--denied"]);
    assert!(shown.out.contains("/.env") && shown.out.contains("cmd_1"), "{shown:?}");
    assert_eq!(audit(&["verify", "last"]).code, 0);
}

#[test]
fn the_environment_is_clean_but_for_what_is_given() {
    require_sandbox!();
    let done = Bench::new().run(&["--env", "GIVEN=a=$(b) c"], &["env"]);
    let mut names: Vec<_> =
        done.out.lines().filter_map(|l| l.split_once('=')).map(|p| p.0).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "PATH", "TERM", "TMPDIR", "USER"]);
    assert!(done.out.contains("GIVEN=a=$(b) c\n"));
}

#[test]
fn a_further_path_is_readable_and_a_working_directory_is_entered() {
    require_sandbox!();
    let bench = Bench::new();
    let tools = bench.scratch.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("f"), "tool").unwrap();
    let path = tools.to_str().unwrap();
    let text = format!("cat {path}/f; echo x > {path}/g; pwd");
    let done = bench.run(&["--ro-path", path, "--workdir", "src"], &["sh", "-c", &text]);
    assert_eq!(done.out, "tool/workspace/src\n", "{done:?}");
    assert!(!tools.join("g").exists());
}

#[test]
fn the_network_is_none_unless_asked_for() {
    require_sandbox!();
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)";
    let connect = ["python3", "-c", code, &port];
    assert_eq!(bench.run(&[], &connect).code, 1);
    assert_eq!(bench.run(&["--net", "host"], &connect).code, 0);
}

#[test]
fn bad_input_is_one_sentence_code_125_and_leaves_nothing() {
    require_sandbox!();
    let bench = Bench::new();
    let cases: [(&[&str], &str); 10] = [
        (&["run", "./missing", "--", "true"], "missing"),
        (&["run", ".env", "--", "true"], "not a directory"),
        (&["run", ".", "--"], "COMMAND"),
        (&["run", "--preset", "nosuch", ".", "--", "true"], "nosuch"),
        (&["run", "--rule", "maybe:/x", ".", "--", "true"], "maybe"),
        (&["run", "--memory", "lots", ".", "--", "true"], "lots"),
        (&["run", "--timeout", "soon", ".", "--", "true"], "soon"),
        (&["run", "--env", "A-B=1", ".", "--", "true"], "A-B"),
        (&["run", "--ro-path", "/nosuch/dir", ".", "--", "true"], "/nosuch/dir"),
        (&["run", "--apply", "--discard", ".", "--", "true"], "--discard"),
    ];
    for (words, named) in cases {
        let done = Done::of(bench.command(words).output().unwrap());
        assert_eq!(done.code, 125, "{words:?}: {done:?}");
        assert!(done.err.contains(named), "{words:?}: {done:?}");
    }
    let state = bench.state().join("sandboxes");
    assert!(!state.exists() || std::fs::read_dir(&state).unwrap().next().is_none());
}

#[test]
fn a_missing_bubblewrap_is_named_with_what_to_do() {
    require_sandbox!();
    let bench = Bench::new();
    let mut command = bench.command(&["run", ".", "--", "true"]);
    let done = Done::of(command.env("RINGFENCE_BWRAP", "/nosuch/bwrap").output().unwrap());
    assert_eq!(done.code, 125, "{done:?}");
    assert!(done.err.contains("bubblewrap") && done.err.contains("hint: "), "{done:?}");
    assert!(std::fs::read_dir(bench.state().join("sandboxes")).unwrap().next().is_none());
}

#[test]
fn a_missing_fuse_device_is_named_with_what_to_do() {
    require_sandbox!();
    let bench = Bench::new();
    let without = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && \
         mknod -m 666 /dev/urandom c 1 9 && exec \"$0\" run . -- true";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", without, env!("CARGO_BIN_EXE_ringfence")]);
    command.current_dir(bench.project()).env("RINGFENCE_STATE", bench.state());
    let done = Done::of(command.output().unwrap());
    assert_eq!(done.code, 125, "{done:?}");
    assert!(done.err.contains("there is no /dev/fuse") && done.err.contains("hint: "), "{done:?}");
    assert!(std::fs::read_dir(bench.state().join("sandboxes")).unwrap().next().is_none());
}

#[test]
fn a_command_that_does_not_exist_is_127_and_a_missing_working_directory_1() {
    require_sandbox!();
    let bench = Bench::new();
    let done = bench.run(&[], &["nosuch-program"]);
    assert_eq!(done.code, 127);
    assert!(done.err.contains("nosuch-program: command not found"), "{done:?}");
    let done = bench.run(&["--workdir", "/nosuch"], &["true"]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("/nosuch"), "{done:?}");
}

#[test]
fn what_a_command_leaves_running_is_gone_when_run_returns() {
    require_sandbox!();
    let time = unique_sleep();
    let text = format!("setsid sleep {time} & (setsid sh -c 'sleep {time} & exit' &); exit 0");
    assert_eq!(Bench::new().run(&[], &["sh", "-c", &text]).code, 0);
    eventually("the sleepers are gone", || processes_with(&format!("sleep\0{time}")).is_empty());
}

/// Waits until it has printed exactly this.
fn has_said(child: &mut Child, text: &str) {
    let mut said = vec![0; text.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), text);
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").arg(signal).arg(pid.to_string()).status().unwrap().success());
}
