//! Planted symlinks lead nowhere.

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

/// A codebase with symlinks to a directory outside, and that directory.
fn planted(fixture: &Fixture) -> (String, TempDir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(outside.path().join("sub")).unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    std::fs::write(outside.path().join("sub/secret"), "secret").unwrap();
    let id = fixture.create();
    fixture.write(&id, "dir/real", b"real").unwrap();
    let tree = fixture.tree(&id);
    symlink(outside.path(), tree.join("out")).unwrap();
    symlink(outside.path().join("secret"), tree.join("file")).unwrap();
    symlink(outside.path().join("new"), tree.join("dangling")).unwrap();
    symlink(outside.path(), tree.join("dir/out")).unwrap();
    symlink("/", tree.join("root")).unwrap();
    symlink("real", tree.join("dir/inner")).unwrap();
    symlink("../../../..", tree.join("up")).unwrap();
    symlink("/proc/self/cwd", tree.join("magic")).unwrap();
    (id, outside)
}

#[test]
fn symlinks_are_not_followed_by_reading() {
    let fixture = Fixture::new();
    let (id, _outside) = planted(&fixture);
    for path in ["file", "out/secret", "dir/out/sub/secret", "root/etc/passwd", "magic/x", "out"] {
        assert_code(fixture.read(&id, path), Code::FileNotFound);
    }
    assert_code(fixture.read(&id, "dir/inner"), Code::FileNotFound);
    assert_code(fixture.codebases.stat(LOCAL, &id, "out/secret"), Code::FileNotFound);
    let found = fixture.codebases.stat(LOCAL, &id, "dir/inner").unwrap();
    assert_eq!((found.kind, found.target.unwrap().to_str()), (FileKind::Symlink, Some("real")));
}

#[test]
fn symlinks_are_listed_and_not_entered() {
    let fixture = Fixture::new();
    let (id, _outside) = planted(&fixture);
    let all = fixture.list(&id, "", true).unwrap();
    let expected =
        ["dangling", "dir/inner", "dir/out", "dir/real", "file", "magic", "out", "root", "up"];
    assert_eq!(all, expected);
    for path in ["out", "out/sub", "root", "dir/out", "up", "magic"] {
        assert_code(fixture.list(&id, path, false), Code::FileNotFound);
        assert_code(fixture.list(&id, path, true), Code::FileNotFound);
    }
}

#[test]
fn an_upload_replaces_a_symlink_and_never_goes_through_one() {
    let fixture = Fixture::new();
    let (id, outside) = planted(&fixture);
    let before = contents_of(outside.path());
    for path in ["out/new", "dir/out/sub/new", "root/tmp/new", "up/new", "magic/new", "file/new"] {
        let problem = assert_code(fixture.write(&id, path, b"x"), Code::InvalidArgument);
        assert!(problem.message.contains("is not a directory"), "{problem}");
    }
    for path in ["file", "dangling", "out", "dir/inner"] {
        fixture.write(&id, path, b"mine").unwrap();
        assert_eq!(fixture.read(&id, path).unwrap(), b"mine");
    }
    assert_eq!(fixture.read(&id, "dir/real").unwrap(), b"real");
    fixture.codebases.remove_file(LOCAL, &id, "root").unwrap();
    assert_code(fixture.codebases.remove_file(LOCAL, &id, "dir/out/secret"), Code::FileNotFound);
    assert_eq!(contents_of(outside.path()), before);
}

#[test]
fn a_new_version_keeps_symlinks_as_they_are_and_deletion_does_not_follow_them() {
    let fixture = Fixture::new();
    let (id, outside) = planted(&fixture);
    let before = contents_of(outside.path());
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    fixture.write(&id, "new", b"x").unwrap();
    assert_ne!(fixture.tree(&id), pinned.path);
    assert_eq!(fixture.tree(&id).join("dir/out").read_link().unwrap(), outside.path());
    drop(pinned);
    fixture.codebases.delete(LOCAL, &id).unwrap();
    assert_eq!(contents_of(outside.path()), before);
}

#[test]
fn pipes_in_a_directory_used_in_place_make_nobody_wait() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, outside.path().join("pipe"), kind, mode, 0).unwrap();
    let id = fixture.create_local(outside.path());
    assert_code(fixture.read(&id, "pipe"), Code::InvalidArgument);
    let found = fixture.codebases.list_files(LOCAL, &id, "", true).unwrap();
    assert_eq!(found[0].kind, FileKind::Other);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_path_leaves_the_tree(
        paths in prop::collection::vec(
            "(/|/workspace/|)((out|dir|up|root|magic|file|dangling|\\.\\.|\\.|a|tmp|etc)/{1,2}){0,4}(secret|new|a|inner|passwd|\\.\\.|)",
            16,
        )
    ) {
        let fixture = Fixture::new();
        let (id, outside) = planted(&fixture);
        let before = contents_of(outside.path());
        for path in &paths {
            if let Ok(bytes) = fixture.read(&id, path) {
                prop_assert!(bytes != b"secret", "{} was read", path);
            }
            if fixture.write(&id, path, b"mine").is_ok() {
                prop_assert_eq!(fixture.read(&id, path).unwrap(), b"mine");
                let _ = fixture.codebases.remove_file(LOCAL, &id, path);
            }
            if let Ok(names) = fixture.list(&id, path, true) {
                prop_assert!(!names.iter().any(|name| name.ends_with("secret")), "{}", path);
            }
        }
        prop_assert_eq!(contents_of(outside.path()), before);
    }
}
