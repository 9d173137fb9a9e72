//! What a killed server leaves, and what the next one makes of it.

use super::*;

fn said(done: &[String], what: &str) -> usize {
    done.iter().filter(|sentence| sentence.contains(what)).count()
}

#[test]
fn a_directory_without_a_record_is_removed() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let stranger = Kind::Codebase.random();
    let place = fixture.codebases.inner.place(&stranger);
    place.make().unwrap();
    std::fs::write(fixture.place(&stranger).join("versions/x"), "x").unwrap();
    std::fs::create_dir_all(fixture.dir.path().join("codebases/trash/half/removed")).unwrap();
    let (fixture, done) = fixture.restarted();
    assert_eq!(done, [format!("{stranger} was on no record and is removed")]);
    assert!(!fixture.place(&stranger).exists());
    assert_eq!(fixture.versions(&id), [1]);
    let trash = fixture.dir.path().join("codebases/trash");
    assert_eq!(std::fs::read_dir(trash).unwrap().count(), 0);
}

#[test]
fn a_record_without_a_directory_is_removed_unless_somebody_stands_on_it() {
    let fixture = Fixture::new();
    let (free, used) = (fixture.create(), fixture.create());
    let sandbox = fixture.stand_on(&used, 1);
    for id in [&free, &used] {
        std::fs::remove_dir_all(fixture.place(id)).unwrap();
    }
    let (fixture, done) = fixture.restarted();
    assert_eq!((done.len(), said(&done, &sandbox)), (2, 1), "{done:?}");
    assert_code(fixture.codebases.get(LOCAL, &free), Code::CodebaseNotFound);
    fixture.get(&used);
    assert_code(fixture.read(&used, "x"), Code::Internal);
    assert_code(fixture.write(&used, "x", b""), Code::Internal);
}

#[test]
fn temporary_files_and_versions_that_never_became_the_newest_are_removed() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    let place = fixture.place(&id);
    std::fs::write(place.join("tmp/upload"), "half").unwrap();
    std::fs::create_dir_all(place.join("tmp/tree/d")).unwrap();
    std::fs::create_dir_all(place.join("versions/2/d")).unwrap();
    std::fs::create_dir_all(place.join("versions/nonsense")).unwrap();
    fixture.stage(&id, b"fresh");
    fixture.stage(&id, b"stale");
    let stale = place.join("stage").join(blake3::hash(b"stale").to_string());
    let file = std::fs::File::options().write(true).open(stale).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let (fixture, done) = fixture.restarted();
    assert_eq!(said(&done, "was not finished"), 2, "{done:?}");
    assert_eq!(said(&done, "2 temporary files"), 1, "{done:?}");
    assert_eq!(said(&done, "1 contents staged"), 1, "{done:?}");
    assert_eq!(fixture.versions(&id), [1]);
    assert_eq!(std::fs::read_dir(place.join("stage")).unwrap().count(), 1);
    fixture.assert_agreement(&id);
}

#[test]
fn a_version_that_was_renamed_without_its_record_is_found() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    let versions = fixture.place(&id).join("versions");
    std::fs::rename(versions.join("1"), versions.join("2")).unwrap();
    let (fixture, done) = fixture.restarted();
    assert_eq!(done, [format!("the newest version of {id} is 2")]);
    assert_eq!(fixture.read(&id, "f").unwrap(), b"1");
    fixture.write(&id, "f", b"2").unwrap();
    fixture.assert_agreement(&id);
}

#[test]
fn old_versions_nobody_stands_on_are_removed() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    fixture.write(&id, "f", b"1").unwrap();
    assert_eq!(fixture.versions(&id), [1, 2]);
    std::mem::forget(pinned);
    let Fixture { codebases, store, dir } = fixture;
    // The hold keeps nothing but the life of this codebase, so the records can be opened again.
    drop((codebases, store));
    let store = Store::open(dir.path()).unwrap();
    let codebases = Codebases::new(store.clone(), Limits::default()).unwrap();
    let done = codebases.reconcile().unwrap();
    let fixture = Fixture { codebases, store, dir };
    assert_eq!(said(&done, "nobody stood on version 1"), 1, "{done:?}");
    assert_eq!(fixture.versions(&id), [2]);
}

#[test]
fn a_change_that_was_interrupted_is_put_on_record_as_it_is() {
    let fixture = Fixture::new();
    let id = fixture.create();
    for path in ["replaced", "removed", "same", "becomes_link"] {
        fixture.write(&id, path, b"before").unwrap();
    }
    for path in ["replaced", "removed", "same", "added", "never", "becomes_link"] {
        fixture.store.intend(&id, path.as_bytes()).unwrap();
    }
    let tree = fixture.tree(&id);
    for path in ["replaced", "added"] {
        std::fs::write(fixture.place(&id).join("tmp/x"), "after it").unwrap();
        std::fs::rename(fixture.place(&id).join("tmp/x"), tree.join(path)).unwrap();
    }
    std::fs::remove_file(tree.join("removed")).unwrap();
    std::fs::remove_file(tree.join("becomes_link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", tree.join("becomes_link")).unwrap();
    let (fixture, done) = fixture.restarted();
    assert_eq!(said(&done, "was interrupted"), 6, "{done:?}");
    assert_eq!(fixture.list(&id, "", true).unwrap(), ["added", "becomes_link", "replaced", "same"]);
    fixture.assert_agreement(&id);
    let (_, done) = fixture.restarted();
    assert_eq!(done, Vec::<String>::new());
}

impl Fixture {
    /// From now on the records refuse such changes, as if the server had ended just before them.
    fn refuse(&self, change: &str) {
        let sql = format!(
            "CREATE TRIGGER refused BEFORE {change} BEGIN SELECT RAISE(ABORT, 'refused'); END"
        );
        self.records().execute_batch(&sql).unwrap();
    }

    fn allow_again(&self) {
        self.records().execute_batch("DROP TRIGGER refused").unwrap();
    }

    fn records(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("records.db")).unwrap()
    }
}

#[test]
fn a_file_that_was_put_in_place_and_not_on_record_is_found_again() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "old", b"old").unwrap();
    fixture.refuse("INSERT ON files");
    assert_code(fixture.write(&id, "d/new", b"new"), Code::Internal);
    assert_code(fixture.write(&id, "old", b"other"), Code::Internal);
    fixture.allow_again();
    let (fixture, done) = fixture.restarted();
    assert_eq!(said(&done, "was interrupted"), 2, "{done:?}");
    assert_eq!(fixture.read(&id, "d/new").unwrap(), b"new");
    assert_eq!(fixture.read(&id, "old").unwrap(), b"other");
    fixture.assert_agreement(&id);
}

#[test]
fn a_file_that_was_removed_and_still_is_on_record_is_forgotten() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"x").unwrap();
    fixture.refuse("DELETE ON files");
    assert_code(fixture.codebases.remove_file(LOCAL, &id, "f"), Code::Internal);
    fixture.allow_again();
    let (fixture, done) = fixture.restarted();
    assert_eq!(said(&done, "was interrupted"), 1, "{done:?}");
    assert_eq!(fixture.get(&id).file_count, 0);
    fixture.assert_agreement(&id);
}

#[test]
fn a_version_that_cannot_be_put_on_record_changes_nothing() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    drop(fixture.codebases.pin(LOCAL, &id, None).unwrap());
    fixture.refuse("UPDATE OF version ON codebases");
    assert_code(fixture.write(&id, "f", b"2"), Code::Internal);
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    assert_code(fixture.write(&id, "f", b"2"), Code::Internal);
    assert_code(fixture.codebases.commit(LOCAL, &id, &[]), Code::Internal);
    assert_eq!(fixture.read(&id, "f").unwrap(), b"1");
    fixture.allow_again();
    fixture.write(&id, "f", b"2").unwrap();
    assert_eq!((fixture.get(&id).version, pinned.version), (2, 1));
    assert_eq!(std::fs::read(pinned.path.join("f")).unwrap(), b"1");
    fixture.assert_agreement(&id);
}

#[test]
fn a_codebase_that_cannot_be_put_on_record_leaves_no_directory() {
    let fixture = Fixture::new();
    fixture.refuse("INSERT ON codebases");
    let wanted = NewCodebase { owner_id: "o".into(), name: "n".into(), ..NewCodebase::default() };
    assert_code(fixture.codebases.create(LOCAL, wanted), Code::Internal);
    let entries = std::fs::read_dir(fixture.dir.path().join("codebases")).unwrap();
    assert_eq!(entries.count(), 1, "only the trash");
}
