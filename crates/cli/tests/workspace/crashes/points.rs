//! One operation at a time, the server killed before each of its system calls in turn.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Mounted, Server, Workspace, binary, require, require_fuse};

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

/// Kills the server before its first, second, ... change during the operation, and checks each
/// time that the workspace is as it was or as it should become.
fn survives(case: &Case) {
    let (before, after) = (state_after(case, false), state_after(case, true));
    assert_ne!(before, after, "{}: nothing to interrupt", case.operation);
    let mut interrupted = 0;
    for point in 1.. {
        let ws = prepared(case);
        let finished = run_until(&ws, case.operation, point);
        let ws = ws.crash();
        let found = state(&ws.root());
        let expected = if finished { vec![&after] } else { vec![&before, &after] };
        assert!(
            expected.contains(&&found),
            "{:?} killed before change {point} (finished: {finished})\nfound {found:#?}\nbefore {before:#?}\nafter {after:#?}",
            case.operation
        );
        assert!(fs::read_dir(ws.layer.join("work")).unwrap().next().is_none());
        if finished {
            break;
        }
        interrupted += 1;
        assert!(point < 60, "{} never ends", case.operation);
    }
    assert!(interrupted > 0, "{} was never interrupted", case.operation);
}

fn prepared(case: &Case) -> Mounted {
    let mut ws = base(Workspace::new()).preset("full-access").rule("none:**/*.key").mount();
    ws.ok(&format!("set -e; {}", case.before));
    ws.unmount();
    ws
}

fn state_after(case: &Case, operation: bool) -> BTreeSet<String> {
    let ws = prepared(case).remount(None);
    if operation {
        ws.ok(&format!("set -e; {}", case.operation));
    }
    state(&ws.root())
}

/// Mounts with a tracer that kills the server at its `point`th change, and runs the operation.
/// Says whether it finished without that happening.
fn run_until(ws: &Mounted, operation: &str, point: u32) -> bool {
    let plain = binary();
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e"]);
    command.arg(format!("trace={CHANGES}")).arg("-e");
    command.arg(format!("inject={CHANGES}:signal=KILL:when={point}"));
    command.arg(plain.get_program()).arg("mount").arg("--base").arg(ws.base());
    command.arg("--layer").arg(&ws.layer);
    command.args(["--preset", "full-access", "--rule", "none:**/*.key"]).arg(ws.root());
    let Ok(server) = Server::start(command) else { return false };
    let finished = ws.sh(&format!("set -e; {operation}")).status.success();
    server.kill();
    finished
}

/// Kinds, modes, names and contents; never anything hidden.
fn state(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
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
    let traced = Command::new("strace").args(["-D", "-f", "-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|output| output.status.success())
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
    exchanging_two_base_files_happens_or_not: "", "python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b\"f\", -100, b\"dir/a\", 2) == 0'";
    exchanging_a_base_directory_with_a_file_happens_or_not: "", "python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b\"f\", -100, b\"dir\", 2) == 0'";
}
