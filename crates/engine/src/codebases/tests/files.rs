//! Writing, reading and listing files.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

#[test]
fn a_file_is_there_under_all_its_spellings_after_the_upload_has_ended() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let done = fixture.write(&id, "/workspace/dir/sub/hello.txt", b"hello").unwrap();
    assert_eq!(done.size, 5);
    assert_eq!(done.md5, "5d41402abc4b2a76b9719d911017c592");
    assert_eq!(done.blake3, blake3::hash(b"hello").to_string());
    for same in ["dir/sub/hello.txt", "/dir/sub/hello.txt", "/workspace//dir/./sub/hello.txt"] {
        assert_eq!(fixture.read(&id, same).unwrap(), b"hello", "{same}");
    }
    fixture.write(&id, "dir/sub/hello.txt", b"").unwrap();
    assert_eq!(fixture.read(&id, "dir/sub/hello.txt").unwrap(), b"");
    fixture.assert_agreement(&id);
}

#[test]
fn size_and_count_follow_every_change() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let counted = || (fixture.get(&id).size, fixture.get(&id).file_count);
    assert_eq!(counted(), (0, 0));
    fixture.write(&id, "a", b"12345").unwrap();
    assert_eq!(counted(), (5, 1));
    fixture.write(&id, "a", b"123").unwrap();
    fixture.write(&id, "d/b", b"1").unwrap();
    assert_eq!(counted(), (4, 2));
    fixture.codebases.remove_file(LOCAL, &id, "a").unwrap();
    assert_eq!(counted(), (1, 1));
    assert!(fixture.get(&id).updated_ms >= fixture.get(&id).created_ms);
    fixture.assert_agreement(&id);
}

#[test]
fn illegal_paths_are_refused_by_everything() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "dir/x", b"x").unwrap();
    let all = &fixture.codebases;
    let long = "n".repeat(256);
    for bad in ["../escape.txt", "dir/../../escape.txt", "dir/../x", "..", "a\0b", &long] {
        assert_code(fixture.write(&id, bad, b"x"), Code::InvalidArgument);
        assert_code(fixture.read(&id, bad), Code::InvalidArgument);
        assert_code(fixture.list(&id, bad, false), Code::InvalidArgument);
        assert_code(all.stat(LOCAL, &id, bad), Code::InvalidArgument);
        assert_code(all.remove_file(LOCAL, &id, bad), Code::InvalidArgument);
    }
    for empty in ["", "/", "/workspace", "."] {
        assert_code(fixture.write(&id, empty, b"x"), Code::InvalidArgument);
        assert_code(fixture.read(&id, empty), Code::InvalidArgument);
        assert_code(all.remove_file(LOCAL, &id, empty), Code::InvalidArgument);
    }
    for legal in ["..foo", "a/..b", "...", &"n".repeat(255), "new\nline", "ä/ö"] {
        fixture.write(&id, legal, b"x").unwrap();
        assert_eq!(fixture.read(&id, legal).unwrap(), b"x", "{legal}");
    }
    let deep = "d/".repeat(2047) + "f";
    fixture.write(&id, &deep, b"deep").unwrap();
    assert_eq!(fixture.read(&id, &deep).unwrap(), b"deep");
    fixture.assert_agreement(&id);
    let pinned = all.pin(LOCAL, &id, None).unwrap();
    fixture.write(&id, "other", b"").unwrap();
    assert_eq!(fixture.read(&id, &deep).unwrap(), b"deep");
    drop(pinned);
}

#[test]
fn what_is_not_there_is_not_found_and_files_are_not_directories() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "dir/file", b"x").unwrap();
    let all = &fixture.codebases;
    assert_code(fixture.read(&id, "missing"), Code::FileNotFound);
    assert_code(fixture.read(&id, "dir/file/below"), Code::FileNotFound);
    assert_code(fixture.read(&id, "dir"), Code::InvalidArgument);
    assert_code(fixture.list(&id, "missing", false), Code::FileNotFound);
    assert_code(fixture.list(&id, "missing", true), Code::FileNotFound);
    assert_code(fixture.list(&id, "dir/file", false), Code::InvalidArgument);
    assert_code(fixture.list(&id, "dir/file/below", true), Code::FileNotFound);
    assert_code(all.remove_file(LOCAL, &id, "missing"), Code::FileNotFound);
    assert_code(all.remove_file(LOCAL, &id, "dir"), Code::InvalidArgument);
    assert_code(fixture.write(&id, "dir", b"x"), Code::InvalidArgument);
    let problem = assert_code(fixture.write(&id, "dir/file/a/b", b"x"), Code::InvalidArgument);
    assert_eq!(problem.details["path"], "/dir/file");
    assert_eq!(all.stat(LOCAL, &id, "").unwrap().kind, FileKind::Directory);
    all.remove_file(LOCAL, &id, "/workspace/dir/file").unwrap();
    assert_code(fixture.read(&id, "dir/file"), Code::FileNotFound);
    assert_eq!(fixture.list(&id, "dir", false).unwrap(), Vec::<String>::new());
    fixture.assert_agreement(&id);
}

#[test]
fn a_listing_is_sorted_and_relative_to_what_was_asked_for() {
    let fixture = Fixture::new();
    let id = fixture.create();
    for path in ["file1.txt", "file2.txt", "dir1/nested1.txt", "dir1/subdir/deep.txt"] {
        fixture.write(&id, path, path.as_bytes()).unwrap();
    }
    for root in ["", "/", "/workspace"] {
        assert_eq!(fixture.list(&id, root, false).unwrap(), ["dir1", "file1.txt", "file2.txt"]);
    }
    assert_eq!(
        fixture.list(&id, "", true).unwrap(),
        ["dir1/nested1.txt", "dir1/subdir/deep.txt", "file1.txt", "file2.txt"]
    );
    assert_eq!(fixture.list(&id, "/workspace/dir1/", false).unwrap(), ["nested1.txt", "subdir"]);
    assert_eq!(fixture.list(&id, "dir1", true).unwrap(), ["nested1.txt", "subdir/deep.txt"]);
    let found = fixture.codebases.list_files(LOCAL, &id, "dir1", false).unwrap();
    let (file, directory) = (&found[0], &found[1]);
    assert_eq!(file.full_path, Path::new("/dir1/nested1.txt"));
    assert_eq!((file.kind, file.is_dir, file.size), (FileKind::File, false, 16));
    assert_eq!((file.mode, file.name.to_str()), (0o644, Some("nested1.txt")));
    assert!((file.modified_ms - crate::store::now_ms()).abs() < 60_000);
    assert_eq!((directory.kind, directory.is_dir), (FileKind::Directory, true));
    assert_eq!((directory.mode, directory.size), (0o755, 0));
}

#[test]
fn what_a_listing_calls_a_file_can_be_read_back_even_in_a_directory_named_workspace() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "workspace/x", b"inner").unwrap();
    fixture.write(&id, "x", b"outer").unwrap();
    for entry in fixture.codebases.list_files(LOCAL, &id, "", true).unwrap() {
        let full = entry.full_path.to_str().unwrap();
        let again = fixture.codebases.stat(LOCAL, &id, full).unwrap();
        assert_eq!(again.path, entry.path);
    }
}

#[test]
fn programs_get_their_execute_bits_and_given_modes_are_kept() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let cases: [(&[u8], Option<u32>, u32); 8] = [
        (b"#!/bin/sh\n", None, 0o755),
        (b"\x7fELF....", None, 0o755),
        (b"text", None, 0o644),
        (b"#", None, 0o644),
        (b"", None, 0o644),
        (b"#!/bin/sh\n", Some(0o644), 0o644),
        (b"text", Some(0o7555), 0o755),
        (b"text", Some(0), 0o600),
    ];
    for (bytes, mode, expected) in cases {
        let target = UploadTarget::File { path: "f".into(), mode };
        fixture.upload(&id, target, bytes).unwrap();
        let entry = fixture.codebases.stat(LOCAL, &id, "f").unwrap();
        assert_eq!(entry.mode, expected, "{bytes:?} {mode:?}");
    }
    // The first bytes may come one by one.
    let target = UploadTarget::File { path: "slow".into(), mode: None };
    let mut upload = fixture.codebases.begin_upload(LOCAL, &id, target).unwrap();
    b"#!/bin/sh".chunks(1).for_each(|byte| upload.write(byte).unwrap());
    upload.finish().unwrap();
    assert_eq!(fixture.codebases.stat(LOCAL, &id, "slow").unwrap().mode, 0o755);
}

#[test]
fn a_file_is_as_before_until_the_upload_ends_and_an_abandoned_one_leaves_nothing() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"old").unwrap();
    let mut reader = fixture.codebases.open_file(LOCAL, &id, "f").unwrap();
    let target = UploadTarget::File { path: "f".into(), mode: None };
    let mut upload = fixture.codebases.begin_upload(LOCAL, &id, target.clone()).unwrap();
    upload.write(b"new, and longer").unwrap();
    assert_eq!(fixture.read(&id, "f").unwrap(), b"old");
    drop(upload);
    fixture.assert_agreement(&id);
    fixture.upload(&id, target, b"new").unwrap();
    assert_eq!(fixture.read(&id, "f").unwrap(), b"new");
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.as_slice(), reader.size()), (&b"old"[..], 3));
}

#[test]
fn limits_hold_and_say_which() {
    let limits =
        Limits { max_file_size: 10, max_codebase_size: 15, max_files: 3, ..Limits::default() };
    let fixture = Fixture::with(limits);
    let id = fixture.create();
    let over = |result: Result<UploadDone>, limit: &str| {
        let problem = assert_code(result, Code::ResourceLimitExceeded);
        assert_eq!(problem.details["limit"], limit);
    };
    over(fixture.write(&id, "big", &[0; 11]), "max_file_size");
    fixture.write(&id, "a", &[0; 10]).unwrap();
    over(fixture.write(&id, "b", &[0; 6]), "max_codebase_size");
    fixture.write(&id, "a", &[1; 9]).unwrap();
    fixture.write(&id, "b", &[0; 5]).unwrap();
    fixture.write(&id, "c", b"").unwrap();
    over(fixture.write(&id, "d", b""), "max_files");
    fixture.write(&id, "c", b"1").unwrap();
    let stage = || UploadTarget::Stage { digest: None };
    fixture.upload(&id, stage(), &[1; 10]).unwrap();
    fixture.upload(&id, stage(), &[1; 10]).unwrap();
    over(fixture.upload(&id, stage(), &[2; 6]), "max_codebase_size");
    fixture.upload(&id, stage(), &[3; 1]).unwrap();
    fixture.upload(&id, stage(), &[4; 1]).unwrap();
    over(fixture.upload(&id, stage(), &[5; 1]), "max_files");
    fixture.assert_agreement(&id);
}

#[test]
fn stored_files_are_nobody_elses() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"x").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&fixture.dir.path().join("codebases")), 0o700);
    let file = fixture.tree(&id).join("f").metadata().unwrap();
    assert_eq!((file.mode() & 0o777, file.nlink()), (0o644, 1));
}

#[test]
fn an_account_stores_so_much_in_all_its_codebases() {
    let fixture = Fixture::with(Limits { max_account_size: 10, ..Limits::default() });
    let (one, two) = (fixture.create(), fixture.create());
    let over = |result: Result<UploadDone>| {
        let problem = assert_code(result, Code::ResourceLimitExceeded);
        assert_eq!(problem.details["limit"], "max_account_size");
        assert_eq!(problem.details["most"], "10");
    };
    over(fixture.write(&one, "a", &[0; 11]));
    fixture.write(&one, "a", &[0; 6]).unwrap();
    over(fixture.write(&two, "a", &[0; 5]));
    over(fixture.upload(&two, UploadTarget::Stage { digest: None }, &[0; 5]));
    fixture.write(&one, "a", &[0; 3]).unwrap();
    fixture.write(&two, "a", &[0; 7]).unwrap();
    over(fixture.write(&two, "b", &[0; 1]));
    fixture.upload(&two, UploadTarget::Stage { digest: None }, &[1; 7]).unwrap();
    over(fixture.upload(&two, UploadTarget::Stage { digest: None }, &[2; 1]));
    fixture.codebases.delete(LOCAL, &one).unwrap();
    fixture.write(&two, "b", &[0; 3]).unwrap();
}

#[test]
fn uploads_at_once_do_not_pass_the_limit_of_an_account_together() {
    let fixture = Fixture::with(Limits { max_account_size: 10, ..Limits::default() });
    let ids: Vec<String> = (0..8).map(|_| fixture.create()).collect();
    let stored = std::thread::scope(|scope| {
        let fixture = &fixture;
        let write = |id: &String| {
            let id = id.clone();
            scope.spawn(move || fixture.write(&id, "a", &[0; 4]).is_ok())
        };
        let threads: Vec<_> = ids.iter().map(write).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|ok| *ok).count()
    });
    assert_eq!(stored, 2);
}

#[test]
fn directories_count_like_files() {
    let fixture = Fixture::with(Limits { max_files: 4, ..Limits::default() });
    let id = fixture.create();
    let over = |result: Result<UploadDone>| {
        let problem = assert_code(result, Code::ResourceLimitExceeded);
        assert_eq!(problem.details["limit"], "max_files");
    };
    over(fixture.write(&id, "a/b/c/d/e", b""));
    fixture.write(&id, "a/b/c", b"").unwrap();
    fixture.write(&id, "a/d", b"").unwrap();
    over(fixture.write(&id, "e", b""));
    fixture.write(&id, "a/d", b"again").unwrap();
}
