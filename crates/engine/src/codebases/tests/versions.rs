//! Versions: what somebody stands on does not change, and what nobody stands on goes.

use super::*;

#[test]
fn uploads_go_into_the_same_version_until_it_is_pinned() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "a", b"1").unwrap();
    fixture.write(&id, "d/b", b"1").unwrap();
    assert_eq!(fixture.get(&id).version, 1);
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    assert_eq!((pinned.version, pinned.is_stored()), (1, true));
    let before = contents_of(&pinned.path);
    fixture.write(&id, "a", b"2").unwrap();
    fixture.write(&id, "d/c", b"2").unwrap();
    fixture.codebases.remove_file(LOCAL, &id, "d/b").unwrap();
    assert_eq!(fixture.get(&id).version, 2);
    assert_eq!(contents_of(&pinned.path), before);
    assert_eq!(fixture.read(&id, "a").unwrap(), b"2");
    let later = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    assert_eq!(later.version, 2);
    fixture.assert_agreement(&id);
}

#[test]
fn a_new_version_shares_its_files_with_the_old_one() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::new();
    let id = fixture.create();
    let target = UploadTarget::File { path: "d/keep".into(), mode: Some(0o750) };
    fixture.upload(&id, target, b"kept").unwrap();
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    fixture.write(&id, "other", b"x").unwrap();
    let (old, new) = (pinned.path.join("d/keep"), fixture.tree(&id).join("d/keep"));
    assert_eq!(old.metadata().unwrap().ino(), new.metadata().unwrap().ino());
    assert_eq!(new.metadata().unwrap().mode() & 0o777, 0o750);
    // The change of a file's mode is a change of the file.
    let target = UploadTarget::File { path: "d/keep".into(), mode: Some(0o600) };
    fixture.upload(&id, target, b"kept").unwrap();
    assert_eq!(old.metadata().unwrap().mode() & 0o777, 0o750);
}

#[test]
fn a_version_on_record_is_kept_and_one_that_nobody_needs_is_removed() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    let sandbox = fixture.stand_on(&id, pinned.version);
    drop(pinned);
    fixture.write(&id, "f", b"2").unwrap();
    fixture.codebases.unpin(&id, 1).unwrap();
    assert_eq!(fixture.codebases.sweep(&[]).unwrap(), []);
    assert_eq!(fixture.versions(&id), [1, 2]);
    let again = fixture.codebases.pin(LOCAL, &id, Some(1)).unwrap();
    assert_eq!(std::fs::read(again.path.join("f")).unwrap(), b"1");
    fixture.store.delete_sandbox(&sandbox).unwrap();
    fixture.codebases.unpin(&id, 1).unwrap();
    assert_eq!(fixture.versions(&id), [1, 2], "it is held");
    drop(again);
    assert_eq!(fixture.codebases.sweep(&[(id.clone(), 1)]).unwrap(), []);
    assert_eq!(fixture.codebases.sweep(&[]).unwrap(), [(id.clone(), 1)]);
    assert_eq!(fixture.versions(&id), [2]);
    assert_code(fixture.codebases.pin(LOCAL, &id, Some(1)), Code::Internal);
    fixture.codebases.unpin(&id, 2).unwrap();
    assert_eq!(fixture.read(&id, "f").unwrap(), b"2");
}

#[test]
fn a_version_nobody_stands_on_any_more_becomes_the_next_one_without_a_copy() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "d/f", b"1").unwrap();
    drop(fixture.codebases.pin(LOCAL, &id, None).unwrap());
    let directory = |id: &str| fixture.tree(id).join("d").metadata().unwrap().ino();
    let before = directory(&id);
    fixture.write(&id, "g", b"2").unwrap();
    assert_eq!(fixture.get(&id).version, 2, "what was given to somebody keeps its number");
    assert_eq!((fixture.versions(&id), directory(&id)), (vec![2], before));
    fixture.assert_agreement(&id);
}

#[test]
fn a_refused_change_makes_no_version() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    let _pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    assert_code(fixture.codebases.remove_file(LOCAL, &id, "missing"), Code::FileNotFound);
    assert_eq!((fixture.get(&id).version, fixture.versions(&id)), (1, vec![1]));
}

#[test]
fn what_is_pinned_stays_pinned_for_the_next_server() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "f", b"1").unwrap();
    let pinned = fixture.codebases.pin(LOCAL, &id, None).unwrap();
    fixture.stand_on(&id, pinned.version);
    let path = pinned.path.clone();
    let (fixture, done) = fixture.restarted();
    assert_eq!(done, Vec::<String>::new());
    fixture.write(&id, "f", b"2").unwrap();
    assert_eq!(std::fs::read(path.join("f")).unwrap(), b"1");
    assert_eq!(fixture.get(&id).version, 2);
    drop(pinned);
}
