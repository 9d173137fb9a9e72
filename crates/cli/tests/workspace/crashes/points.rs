//! One operation at a time, the server killed before each of its system calls in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::support::{Mounted, Workspace, is_root, require, require_fuse};

/// Every system call by which a layer changes.
const CHANGES: &str = "renameat2,renameat,rename,linkat,unlinkat,mkdirat,ftruncate,fsetxattr,\
    lsetxattr,fremovexattr,fchmod,fchmodat,?fchmodat2,utimensat,copy_file_range,pwrite64,\
    symlinkat,mknodat";

/// An operation on a base made by [`base`], after some changes that had returned long before.
struct Case {
    before: &'static str,
    operation: &'static str,
}

fn base(ws: Workspace) -> Workspace {
    ws.file("f", "base f\n")
        .file("g", "base g\n")
        .file("dir/a", "base a\n")
        .file("dir/sub/b", "base b\n")
        .file("other/c", "base c\n")
        .file("deep/er/file", "base file\n")
        .file("deep/hidden.key", "HIDDEN\n")
        .dir("empty")
}

/// Kills the server before each of the changes that the operation consists of, and checks each
/// time that the workspace is as it was or as it should become.
fn survives(case: &Case) {
    let ws = prepared(case);
    let before = state(&ws.root());
    let points = changes_during(&ws, case.operation);
    let after = state(&ws.root());
    drop(ws);
    assert!(before != after && !points.is_empty(), "{}: nothing to interrupt", case.operation);
    for point in points {
        let ws = prepared(case);
        let mut tracer = attach(ws.server().pid(), &["-o", "/dev/null", "-e", &point]);
        let finished = ws.sh(&format!("set -e; {}", case.operation)).status.success();
        let ws = ws.crash();
        tracer.wait().unwrap();
        let found = state(&ws.root());
        assert!(
            found == after || found == before && !finished,
            "{:?} killed by {point} (finished: {finished})\n\
             found {found:#?}\nbefore {before:#?}\nafter {after:#?}",
            case.operation
        );
        assert!(fs::read_dir(ws.layer.join("work")).unwrap().next().is_none());
    }
}

fn prepared(case: &Case) -> Mounted {
    let ws = base(Workspace::new()).preset("full-access").rule("none:**/*.key").mount();
    ws.ok(&format!("set -e; {}", case.before));
    ws
}

/// Does the operation and returns what kills a server before each change it makes for that. The
/// tracer counts the calls of each kind separately.
fn changes_during(ws: &Mounted, operation: &str) -> Vec<String> {
    let log = ws.scratch().join("changes");
    let mut tracer = attach(ws.server().pid(), &["-o", log.to_str().unwrap()]);
    ws.ok(&format!("set -e; {operation}"));
    let pid = Pid::from_child(&tracer);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    tracer.wait().unwrap();
    let log = fs::read_to_string(log).unwrap();
    let calls = log.lines().filter_map(|line| {
        let (call, _) = line.split_once('(')?;
        call.split_whitespace().last()
    });
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut points = vec![];
    for call in calls {
        let count = counts.entry(call).or_default();
        *count += 1;
        points.push(format!("inject={call}:signal=KILL:when={count}"));
    }
    points
}

/// Traces the changes that the process and all its threads make from now on.
fn attach(pid: u32, options: &[&str]) -> Child {
    let mut tracer = Command::new("strace")
        .args(["-f", "-p", &pid.to_string(), "-e", &format!("trace={CHANGES}")])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(tracer.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("attached"), "{said}");
    tracer
}

/// Kinds, modes, names and contents; never anything hidden.
fn state(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata();
            let meta = meta.unwrap_or_else(|e| panic!("listed: {}: {e}", path.display()));
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions());
            let content = match meta.file_type() {
                kind if kind.is_dir() => {
                    dirs.push(path);
                    String::new()
                }
                kind if kind.is_symlink() => format!("-> {:?}", fs::read_link(&path).unwrap()),
                _ => fs::read_to_string(&path).unwrap(),
            };
            assert!(!content.contains("HIDDEN") && !name.ends_with(".key"), "{name}");
            found.insert(format!("{name} {mode:o} {content}"));
        }
    }
    found
}

fn can_trace() -> bool {
    let installed = Command::new("strace").arg("-V").output().is_ok();
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    installed && (is_root() || matches!(scope.trim(), "" | "0"))
}

macro_rules! survives {
    ($($promise:ident: $before:literal, $operation:literal;)*) => {
        $(#[test]
        fn $promise() {
            require_fuse!();
            require!(can_trace(), "strace, and the right to trace");
            survives(&Case { before: $before, operation: $operation });
        })*
    };
}

survives! {
    creating_a_file_in_a_base_directory_happens_or_not: "", "touch dir/sub/new";
    writing_to_a_base_file_happens_or_not: "", "echo more >> f";
    truncating_a_base_file_happens_or_not: "", "truncate -s 4 dir/sub/b";
    changing_the_mode_of_a_base_file_happens_or_not: "", "chmod 600 dir/a";
    deleting_a_base_file_happens_or_not: "", "rm f";
    deleting_a_changed_base_file_happens_or_not: "echo more >> f", "rm f";
    deleting_a_new_file_happens_or_not: "echo new > n", "rm n";
    making_a_file_where_one_was_deleted_happens_or_not: "rm f", "touch f";
    making_a_directory_where_a_file_was_deleted_happens_or_not: "rm f", "mkdir f";
    making_a_directory_where_one_was_deleted_happens_or_not: "rm -r dir", "mkdir dir";
    linking_where_a_file_was_deleted_happens_or_not: "rm f", "ln g f";
    making_a_symlink_where_a_file_was_deleted_happens_or_not: "rm f", "ln -s g f";
    removing_an_empty_base_directory_happens_or_not: "", "rmdir empty";
    removing_an_emptied_base_directory_happens_or_not: "rm other/c", "rmdir other";
    removing_a_new_directory_happens_or_not: "mkdir n", "rmdir n";
    removing_an_emptied_directory_that_was_moved_into_a_new_one_happens_or_not:
        "mkdir n; mv other n/x; rm n/x/c", "rmdir n/x";
    renaming_a_base_file_happens_or_not: "", "mv f n";
    renaming_a_base_file_into_another_directory_happens_or_not: "", "mv f dir/sub/n";
    renaming_a_changed_base_file_happens_or_not: "echo more >> f", "mv f n";
    renaming_a_new_file_over_a_base_file_happens_or_not: "echo new > n", "mv n f";
    renaming_a_new_file_over_a_changed_base_file_happens_or_not:
        "echo new > n; echo more >> f", "mv n f";
    renaming_a_new_file_where_one_was_deleted_happens_or_not: "echo new > n; rm f", "mv n f";
    renaming_a_base_file_over_a_base_file_happens_or_not: "", "mv f g";
    renaming_a_base_file_over_a_new_file_happens_or_not: "echo new > n", "mv f n";
    renaming_a_changed_base_file_over_another_happens_or_not:
        "echo more >> f; echo more >> g", "mv f g";
    renaming_a_base_directory_happens_or_not: "", "mv dir moved";
    renaming_a_base_directory_into_another_happens_or_not: "", "mv dir other/moved";
    renaming_a_changed_base_directory_happens_or_not: "echo n > dir/n; rm dir/a", "mv dir moved";
    renaming_a_moved_directory_again_happens_or_not: "mv dir moved", "mv moved again";
    renaming_a_directory_back_happens_or_not: "mv dir moved", "mv moved dir";
    renaming_a_directory_where_another_was_deleted_happens_or_not: "rm -r other", "mv dir other";
    renaming_a_new_directory_where_one_was_deleted_happens_or_not:
        "mkdir n; echo n > n/n; rm -r other", "mv n other";
    renaming_a_base_directory_over_an_empty_one_happens_or_not: "", "mv -T dir empty";
    renaming_a_new_directory_over_an_empty_one_happens_or_not:
        "mkdir n; echo n > n/n", "mv -T n empty";
    renaming_a_base_directory_over_an_emptied_one_happens_or_not: "rm other/c", "mv -T dir other";
    renaming_a_base_file_into_a_new_directory_happens_or_not: "mkdir n", "mv f n/x";
    renaming_a_changed_base_file_into_a_new_directory_happens_or_not:
        "mkdir n; echo more >> f", "mv f n/x";
    renaming_a_base_directory_into_a_new_one_happens_or_not: "mkdir n", "mv dir n/x";
    renaming_a_directory_out_of_a_new_one_to_a_deleted_name_happens_or_not:
        "mkdir -p n/d; echo d > n/d/d; rm -r other", "mv n/d other";
    exchanging_two_base_files_happens_or_not: "", "python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b\"f\", -100, b\"dir/a\", 2) == 0'";
    exchanging_a_base_directory_with_a_file_happens_or_not: "", "python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b\"f\", -100, b\"dir\", 2) == 0'";
}
