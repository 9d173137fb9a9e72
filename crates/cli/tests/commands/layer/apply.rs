//! What `layer apply` writes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::{after, apply, changes, layer_command, layer_fails, layer_ok, run_in, tree};
use crate::support::{Mounted, Workspace, names_in, os, require_fuse, require_root};

fn shown(ws: &mut Mounted) -> Vec<String> {
    let taken = std::mem::replace(ws, Workspace::new().mount());
    *ws = taken.remount(None);
    let shown = tree(&ws.root());
    ws.unmount();
    shown
}

const FILES: &[(&str, &str)] = &[
    ("modified.txt", "1\n"),
    ("deleted.txt", "1\n"),
    ("dir/in", "1\n"),
    ("gone/a/b", "1\n"),
    ("old/x", "1\n"),
    ("old/y/z", "1\n"),
    ("move/me", "a file that moves\n"),
    ("type", "1\n"),
    ("other/f", "1\n"),
];

const SCRIPT: &str = "echo 22 > modified.txt; chmod 755 modified.txt; rm -r deleted.txt gone
echo new > dir/new; mkdir -p fresh/er; echo 1 > fresh/er/file; mkfifo fresh/pipe
mv old new; echo changed > new/x; echo 1 > new/more; mv move/me moved; rmdir move
rm type; mkdir type; echo 1 > type/in; rm -r other; ln -s dir other; chmod 700 dir
ln fresh/er/file fresh/twin";

#[test]
fn the_base_becomes_what_the_workspace_shows() {
    require_fuse!();
    let mut ws = after(FILES, SCRIPT);
    let expected = shown(&mut ws);
    apply(&ws.layer);
    assert_eq!(tree(&ws.base()), expected);
    let twin = |name: &str| fs::metadata(ws.base().join(name)).unwrap().ino();
    assert_eq!(twin("fresh/twin"), twin("fresh/er/file"), "hard links are kept");
}

#[test]
fn after_an_apply_the_layer_has_nothing_left_and_shows_the_same() {
    require_fuse!();
    let mut ws = after(FILES, SCRIPT);
    let expected = shown(&mut ws);
    let text = apply(&ws.layer);
    assert!(text.contains("the layer stays"), "{text}");
    assert!(changes(&ws.layer).is_empty(), "{:?}", changes(&ws.layer));
    assert_eq!(shown(&mut ws), expected);
    assert_eq!(apply(&ws.layer), "nothing to apply\n");
    assert_eq!(tree(&ws.base()), expected);
}

#[test]
fn work_can_go_on_in_a_layer_after_an_apply() {
    require_fuse!();
    let mut ws = after(FILES, SCRIPT);
    apply(&ws.layer);
    fs::write(ws.base().join("fresh/from-host"), "1").unwrap();
    fs::write(ws.base().join("deleted.txt"), "made again by the host").unwrap();
    ws = ws.remount(None);
    assert_eq!(ws.ok("cat deleted.txt fresh/from-host"), "made again by the host1");
    ws.ok("echo 333 > modified.txt; mv new newer; echo 2 > newer/y/z; rm fresh/er/file; rm moved");
    ws.unmount();
    let expected =
        ["D fresh/er/file", "M modified.txt", "D moved", "R new/ -> newer/", "M newer/y/z"];
    assert_eq!(changes(&ws.layer), expected);
    apply(&ws.layer);
    assert_eq!(tree(&ws.base()), shown(&mut ws));
    assert_eq!(fs::read_to_string(ws.base().join("modified.txt")).unwrap(), "333\n");
}

#[test]
fn directories_that_changed_places_are_applied() {
    require_fuse!();
    let files = [("a/x", "1"), ("b/y", "2"), ("p/q/r", "3"), ("e/k", "5")];
    let script = "mv a t; mv b a; mv t b; mv p/q t; mv p t/p; mv t p; mkdir n; mv e n/e; \
                  mkdir -p empty; mv n/e empty/e";
    let mut ws = after(&files, script);
    let expected = shown(&mut ws);
    apply(&ws.layer);
    assert_eq!(tree(&ws.base()), expected);
    assert_eq!(shown(&mut ws), expected);
    assert!(changes(&ws.layer).is_empty(), "{:?}", changes(&ws.layer));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    require_fuse!();
    let ws = after(FILES, SCRIPT);
    let (base, layer) = (tree(&ws.base()), tree(&ws.layer));
    let text = layer_ok("apply", &["--dry-run".as_ref(), ws.layer.as_os_str()]);
    assert!(text.contains("M modified.txt") && text.contains("would be applied"), "{text}");
    assert_eq!(tree(&ws.base()), base);
    assert_eq!(tree(&ws.layer), layer);
}

#[test]
fn another_directory_can_be_the_target() {
    require_fuse!();
    let mut ws = after(FILES, SCRIPT);
    let copy = ws.scratch().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(ws.base()).arg(&copy).status();
    assert!(copied.unwrap().success());
    let base = tree(&ws.base());
    layer_ok("apply", &["--to".as_ref(), copy.as_os_str(), ws.layer.as_os_str()]);
    assert_eq!(tree(&copy), shown(&mut ws));
    assert_eq!(tree(&ws.base()), base);
}

#[test]
fn a_symlink_is_applied_as_a_symlink() {
    require_fuse!();
    let ws = after(&[("x/keep", "1")], "ln -s /etc out; ln -s x in; ln -s /nowhere/at/all broken");
    apply(&ws.layer);
    let target = |name: &str| fs::read_link(ws.base().join(name)).unwrap();
    assert_eq!(target("out"), Path::new("/etc"));
    assert_eq!(target("in"), Path::new("x"));
    assert_eq!(target("broken"), Path::new("/nowhere/at/all"));
}

#[test]
fn a_symlink_of_the_layer_is_never_written_through() {
    require_fuse!();
    let outside = tempfile::tempdir().unwrap();
    let ws = after(&[("d/x", "1")], &format!("rm -r d; ln -s {} d", outside.path().display()));
    // The layer's own files can be tampered with: a directory is put where the symlink was.
    fs::remove_file(ws.layer.join("tree/d")).unwrap();
    fs::create_dir(ws.layer.join("tree/d")).unwrap();
    fs::write(ws.layer.join("tree/d/planted"), "1").unwrap();
    fs::remove_dir_all(ws.base().join("d")).unwrap();
    symlink(outside.path(), ws.base().join("d")).unwrap();
    layer_command("apply", &["--force".as_ref(), ws.layer.as_os_str()]);
    assert!(names_in(outside.path()).is_empty());
}

#[test]
fn a_symlink_where_the_target_should_have_a_directory_is_not_followed_even_by_force() {
    require_fuse!();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "1").unwrap();
    let ws = after(&[("d/x", "1"), ("d/y", "1")], "echo 22 > d/x; echo new > d/new; rm d/y");
    let copy = ws.scratch().join("copy");
    fs::create_dir(&copy).unwrap();
    symlink(outside.path(), copy.join("d")).unwrap();
    let to = ["--to".as_ref(), copy.as_os_str(), ws.layer.as_os_str(), "--force".as_ref()];
    for args in [&to[..3], &to[..]] {
        let text = layer_fails("apply", args, 1);
        assert!(text.contains("/d is not a directory in the target"), "{text}");
    }
    fs::rename(ws.base().join("d"), ws.scratch().join("aside")).unwrap();
    symlink(outside.path(), ws.base().join("d")).unwrap();
    let text = layer_fails("apply", &[ws.layer.as_os_str()], 1);
    assert!(text.contains("conflict: d: changed in the target too"), "{text}");
    layer_command("apply", &["--force".as_ref(), ws.layer.as_os_str()]);
    assert_eq!(names_in(outside.path()), ["x"]);
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "1");
}

#[test]
fn a_replaced_file_keeps_its_owner_and_a_new_one_gets_that_of_its_directory() {
    require_fuse!();
    require_root!();
    let own = |base: &Path| {
        std::os::unix::fs::chown(base.join("d"), Some(1234), Some(2345)).unwrap();
        std::os::unix::fs::chown(base.join("d/x"), Some(3456), Some(4567)).unwrap();
        std::os::unix::fs::chown(base.join("d/m"), Some(3456), Some(4567)).unwrap();
    };
    let files = Workspace::new().file("d/x", "1").file("d/m", "to be moved").with_base(own);
    let ws = run_in(files, "echo 22 > d/x; echo 1 > d/new; mkdir d/e; ln -s x d/l; mv d/m m");
    apply(&ws.layer);
    let owner = |name: &str| {
        let meta = fs::symlink_metadata(ws.base().join(name)).unwrap();
        (meta.uid(), meta.gid())
    };
    assert_eq!(owner("d/x"), (3456, 4567));
    assert_eq!(owner("m"), (3456, 4567));
    for new in ["d/new", "d/e", "d/l"] {
        assert_eq!(owner(new), (1234, 2345), "{new}");
    }
}

#[test]
fn no_setuid_bit_reaches_the_target() {
    require_fuse!();
    let ws = after(&[("tool", "1")], "echo 2 > tool; echo 1 > new");
    for name in ["tool", "new"] {
        let mode = fs::Permissions::from_mode(0o6755);
        fs::set_permissions(ws.layer.join("tree").join(name), mode).unwrap();
    }
    apply(&ws.layer);
    for name in ["tool", "new"] {
        let mode = fs::metadata(ws.base().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
}

#[test]
fn changes_the_policy_does_not_allow_are_not_applied() {
    require_fuse!();
    let files = [(".env", "KEY=1\n"), ("src/a", "1\n"), ("secrets/k", "1\n"), ("d/x", "1\n")];
    let script = "echo KEY=2 > .env; echo 2 > src/a; rm secrets/k; mkdir output; echo 1 > output/y; \
                  echo 1 > output/k.key; mkdir new; echo 1 > new/f; mv d/x output/x";
    let ws = after(&files, script);
    let args = ["--preset", "agent-safe"].map(OsStr::new);
    let text = layer_ok("apply", &[args[0], args[1], ws.layer.as_os_str()]);
    for refused in
        [".env", "src/a", "secrets/k", "output/k.key", "new/", "new/f", "d/x -> output/x"]
    {
        assert!(text.lines().any(|l| l.starts_with("refused:") && l.contains(refused)), "{text}");
    }
    assert_eq!(names_in(&ws.base()), [".env", "d", "output", "secrets", "src"]);
    assert_eq!(names_in(&ws.base().join("output")), ["y"]);
    let read = |name: &str| fs::read_to_string(ws.base().join(name)).unwrap();
    assert_eq!(
        (read(".env"), read("src/a"), read("secrets/k"), read("d/x")),
        ("KEY=1\n".into(), "1\n".into(), "1\n".into(), "1\n".into())
    );
}

#[test]
fn without_other_orders_the_rules_the_layer_was_written_under_hold() {
    require_fuse!();
    let mut ws = Workspace::new().file("a", "1").preset("agent-safe").mount();
    ws.ok("mkdir output; echo 1 > output/y");
    ws.unmount();
    fs::write(ws.layer.join("tree/smuggled"), "1").unwrap();
    let text = apply(&ws.layer);
    assert!(text.contains("refused: A smuggled"), "{text}");
    assert_eq!(names_in(&ws.base()), ["a", "output"]);
}

#[test]
fn a_directory_is_not_deleted_or_moved_with_something_in_it_the_agent_may_not_write() {
    require_fuse!();
    let ws = after(&[("d/x", "1"), ("m/y", "1")], "rm -r d; mv m n");
    for dir in ["d", "m"] {
        fs::write(ws.base().join(dir).join("late.key"), "secret").unwrap();
    }
    let args = ["--force", "--preset", "development"].map(OsStr::new);
    let text = layer_ok("apply", &[args[0], args[1], args[2], ws.layer.as_os_str()]);
    assert!(text.contains("/d/late.key is not writable"), "{text}");
    assert_eq!(names_in(&ws.base().join("d")), ["late.key", "x"]);
    assert_eq!(names_in(&ws.base().join("m")), ["late.key", "y"]);
}

#[test]
fn hostile_names_are_applied_as_they_are() {
    require_fuse!();
    let names: [&[u8]; 5] = [b"line\nfeed", b"\x1b[2J", b"\xff\xfe", b"-rf", b".wh.x"];
    let mut ws = Workspace::new().preset("full-access").mount();
    for name in names {
        fs::write(ws.path(os(name)), "1").unwrap();
    }
    ws.unmount();
    apply(&ws.layer);
    for name in names {
        assert_eq!(fs::read_to_string(ws.base().join(os(name))).unwrap(), "1");
    }
    assert_eq!(fs::read_dir(ws.base()).unwrap().count(), names.len());
}

#[test]
fn nothing_temporary_is_left_behind() {
    require_fuse!();
    let ws = after(FILES, SCRIPT);
    apply(&ws.layer);
    assert!(!tree(&ws.base()).iter().any(|line| line.contains(".ringfence")));
}

#[test]
fn a_layer_is_not_applied_into_itself() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    let inside = ws.layer.join("tree");
    layer_fails("apply", &["--to".as_ref(), inside.as_os_str(), ws.layer.as_os_str()], 2);
    let missing = ws.scratch().join("missing");
    layer_fails("apply", &["--to".as_ref(), missing.as_os_str(), ws.layer.as_os_str()], 2);
    assert!(!missing.exists());
}
