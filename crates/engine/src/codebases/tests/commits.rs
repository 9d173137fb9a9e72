//! Whole trees, of which only the missing contents are sent.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;

use super::*;

fn file(path: &str, bytes: &[u8], mode: u32) -> ManifestEntry {
    let digest = blake3::hash(bytes).to_string();
    let content = Content::File { mode: Some(mode), size: bytes.len() as u64, digest };
    ManifestEntry { path: path.into(), content }
}

fn directory(path: &str) -> ManifestEntry {
    ManifestEntry { path: path.into(), content: Content::Directory { mode: None } }
}

fn symlink(path: &str, target: &str) -> ManifestEntry {
    let content = Content::Symlink { target: OsString::from(target) };
    ManifestEntry { path: path.into(), content }
}

impl Fixture {
    pub(super) fn stage(&self, id: &str, bytes: &[u8]) {
        let digest = Some(blake3::hash(bytes).to_string());
        self.upload(id, UploadTarget::Stage { digest }, bytes).unwrap();
    }

    fn missing(&self, id: &str, entries: &[ManifestEntry]) -> Vec<String> {
        self.codebases.negotiate(LOCAL, id, entries).unwrap()
    }

    fn commit(&self, id: &str, entries: &[ManifestEntry]) -> Codebase {
        self.codebases.commit(LOCAL, id, entries).unwrap()
    }

    fn inode(&self, id: &str, path: &str) -> u64 {
        self.tree(id).join(path).metadata().unwrap().ino()
    }
}

#[test]
fn only_what_is_missing_is_sent_and_the_tree_is_there_at_once() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "old", b"known").unwrap();
    let entries = [
        file("src/a", b"known", 0o644),
        file("src/b", b"new", 0o755),
        file("src/c", b"new", 0o644),
        directory("empty/dir"),
        symlink("link", "../outside"),
    ];
    assert_eq!(fixture.missing(&id, &entries), [blake3::hash(b"new").to_string()]);
    let problem =
        assert_code(fixture.codebases.commit(LOCAL, &id, &entries), Code::InvalidArgument);
    assert_eq!(problem.details["missing"], blake3::hash(b"new").to_string());
    assert_eq!(fixture.list(&id, "", true).unwrap(), ["old"], "nothing has happened");
    fixture.stage(&id, b"new");
    assert_eq!(fixture.missing(&id, &entries), Vec::<String>::new());
    let codebase = fixture.commit(&id, &entries);
    assert_eq!((codebase.version, codebase.size, codebase.file_count), (2, 11, 4));
    assert_eq!(fixture.list(&id, "", true).unwrap(), ["link", "src/a", "src/b", "src/c"]);
    assert_eq!(fixture.list(&id, "", false).unwrap(), ["empty", "link", "src"]);
    assert_eq!(fixture.read(&id, "src/b").unwrap(), b"new");
    let mode = |path| fixture.codebases.stat(LOCAL, &id, path).unwrap().mode;
    assert_eq!((mode("src/b"), mode("src/c"), mode("empty/dir")), (0o755, 0o644, 0o755));
    let link = fixture.codebases.stat(LOCAL, &id, "link").unwrap();
    assert_eq!(link.target.unwrap(), "../outside");
    assert_eq!(fixture.versions(&id), [2]);
    assert_eq!(std::fs::read_dir(fixture.place(&id).join("stage")).unwrap().count(), 0);
    fixture.assert_agreement(&id);
}

#[test]
fn an_unchanged_tree_is_neither_sent_nor_read_nor_made_again() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let mut entries = vec![file("a", b"one", 0o644), file("d/b", b"two", 0o644)];
    fixture.stage(&id, b"one");
    fixture.stage(&id, b"two");
    let first = fixture.commit(&id, &entries);
    let rows = fixture.store.files(&id).unwrap();
    // Whoever read the content again would notice this.
    let stored = fixture.tree(&id).join("a");
    let modified = stored.metadata().unwrap().modified().unwrap();
    std::fs::write(&stored, b"eno").unwrap();
    std::fs::File::options().write(true).open(&stored).unwrap().set_modified(modified).unwrap();
    assert_eq!(fixture.missing(&id, &entries), Vec::<String>::new());
    let second = fixture.commit(&id, &entries);
    assert_eq!(second, first);
    // With one file more, the others are the very same files.
    entries.push(file("c", b"three", 0o644));
    fixture.stage(&id, b"three");
    assert_eq!(fixture.commit(&id, &entries).version, first.version + 1);
    let again = fixture.store.files(&id).unwrap();
    assert_eq!([&again[0], &again[2]], [&rows[0], &rows[1]]);
}

#[test]
fn a_change_after_a_commit_makes_the_same_commit_count_again() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let entries = [file("a", b"one", 0o644)];
    fixture.stage(&id, b"one");
    fixture.commit(&id, &entries);
    fixture.write(&id, "extra", b"x").unwrap();
    fixture.commit(&id, &entries);
    assert_eq!(fixture.list(&id, "", true).unwrap(), ["a"]);
    assert_eq!(fixture.commit(&id, &[]).file_count, 0);
    fixture.assert_agreement(&id);
}

#[test]
fn no_two_paths_of_a_version_share_a_file_and_modes_are_not_shared_either() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "a", b"same").unwrap();
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    fixture.stage(&id, b"staged");
    fixture.commit(
        &id,
        &[
            file("a", b"same", 0o644),
            file("0", b"same", 0o644),
            file("b", b"same", 0o644),
            file("program", b"same", 0o755),
            file("s1", b"staged", 0o644),
            file("s2", b"staged", 0o755),
        ],
    );
    let paths = ["a", "0", "b", "program", "s1", "s2"];
    let inodes: std::collections::HashSet<u64> =
        paths.iter().map(|path| fixture.inode(&id, path)).collect();
    assert_eq!(inodes.len(), paths.len());
    let old = pinned.path.join("a").metadata().unwrap();
    assert_eq!((old.ino(), old.mode() & 0o777), (fixture.inode(&id, "a"), 0o644));
    // The other mode alone: the pinned file keeps its own.
    fixture.commit(&id, &[file("a", b"same", 0o755)]);
    assert_ne!(old.ino(), fixture.inode(&id, "a"));
    assert_eq!(pinned.path.join("a").metadata().unwrap().mode() & 0o777, 0o644);
    assert_eq!(fixture.codebases.stat(LOCAL, &id, "a").unwrap().mode, 0o755);
    fixture.assert_agreement(&id);
}

#[test]
fn a_new_codebase_takes_what_another_of_the_account_has() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.create(), fixture.create());
    fixture.write(&first, "d/a", b"content").unwrap();
    let entries = [file("x", b"content", 0o644), file("y", b"content", 0o644)];
    assert_eq!(fixture.missing(&second, &entries), Vec::<String>::new());
    fixture.commit(&second, &entries);
    assert_eq!(fixture.inode(&second, "x"), fixture.inode(&first, "d/a"));
    fixture.write(&first, "d/a", b"changed").unwrap();
    fixture.codebases.delete(LOCAL, &first).unwrap();
    assert_eq!(fixture.read(&second, "x").unwrap(), b"content");
    assert_eq!(fixture.read(&second, "y").unwrap(), b"content");
    fixture.assert_agreement(&second);
}

#[test]
fn a_stored_file_that_is_not_what_it_was_is_asked_for_again() {
    let fixture = Fixture::new();
    let (id, other) = (fixture.create(), fixture.create());
    for (codebase, text) in [(&id, "mine"), (&other, "theirs")] {
        fixture.write(codebase, "f", text.as_bytes()).unwrap();
        std::fs::write(fixture.tree(codebase).join("f"), "damaged").unwrap();
    }
    let entries = [file("f", b"mine", 0o644), file("g", b"theirs", 0o644)];
    assert_eq!(fixture.missing(&id, &entries), Vec::<String>::new());
    let problem =
        assert_code(fixture.codebases.commit(LOCAL, &id, &entries), Code::InvalidArgument);
    assert_eq!(problem.details["missing_count"], "2");
    assert_eq!(fixture.missing(&id, &entries).len(), 2);
    fixture.stage(&id, b"mine");
    fixture.stage(&id, b"theirs");
    fixture.commit(&id, &entries);
    assert_eq!(fixture.read(&id, "f").unwrap(), b"mine");
    assert_eq!(fixture.read(&id, "g").unwrap(), b"theirs");
}

#[test]
fn trees_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.stage(&id, b"x");
    let good = file("a", b"x", 0o644);
    let wrong_size = ManifestEntry {
        path: "a".into(),
        content: Content::File { mode: None, size: 7, digest: blake3::hash(b"x").to_string() },
    };
    let no_digest = ManifestEntry {
        path: "a".into(),
        content: Content::File { mode: None, size: 1, digest: "../../x".into() },
    };
    for bad in [
        vec![good.clone(), file("/workspace/a", b"x", 0o644)],
        vec![good.clone(), file("a/b", b"x", 0o644)],
        vec![symlink("l", "/etc"), file("l/d/passwd", b"x", 0o644)],
        vec![file("../a", b"x", 0o644)],
        vec![file("", b"x", 0o644)],
        vec![directory("/")],
        vec![symlink("l", "")],
        vec![symlink("l", "a\0b")],
        vec![wrong_size],
        vec![no_digest],
    ] {
        assert_code(fixture.codebases.commit(LOCAL, &id, &bad), Code::InvalidArgument);
    }
    let other = UploadTarget::Stage { digest: Some(blake3::hash(b"y").to_string()) };
    assert_code(fixture.upload(&id, other, b"x"), Code::InvalidArgument);
    assert_eq!(fixture.get(&id).version, 1);
    fixture.assert_agreement(&id);
    fixture.commit(&id, &[good]);
}

#[test]
fn a_tree_over_the_limits_is_refused_before_anything_is_sent() {
    let limits =
        Limits { max_file_size: 10, max_codebase_size: 15, max_files: 3, ..Limits::default() };
    let fixture = Fixture::with(limits);
    let id = fixture.create();
    let cases = [
        ("max_file_size", vec![file("a", &[0; 11], 0o644)]),
        ("max_codebase_size", vec![file("a", &[0; 9], 0o644), file("b", &[1; 9], 0o644)]),
        ("max_files", (0..4).map(|n| directory(&n.to_string())).collect()),
        ("max_files", vec![file("a/b/c/d", b"", 0o644)]),
    ];
    for (limit, entries) in cases {
        let asked = fixture.codebases.negotiate(LOCAL, &id, &entries);
        let problem = assert_code(asked, Code::ResourceLimitExceeded);
        assert_eq!(problem.details["limit"], limit);
    }
}

#[test]
fn many_missing_contents_are_counted_and_ten_are_named() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let entries: Vec<_> = (0..25u8).map(|n| file(&n.to_string(), &[n], 0o644)).collect();
    let problem =
        assert_code(fixture.codebases.commit(LOCAL, &id, &entries), Code::InvalidArgument);
    assert_eq!(problem.details["missing_count"], "25");
    assert_eq!(problem.details["missing"].split(", ").count(), 10);
}
