//! Codebases that go with their sandboxes.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::*;
use crate::store::{FileRow, Snapshot};

const HOUR: Duration = Duration::from_secs(3600);

impl Fixture {
    fn create_fleeting(&self, local_path: Option<&Path>) -> String {
        let wanted = NewCodebase {
            owner_id: "owner".into(),
            name: "name".into(),
            local_path: local_path.map(Into::into),
            fleeting: true,
            ..NewCodebase::default()
        };
        self.codebases.create(LOCAL, wanted).unwrap().id
    }

    /// The sandbox ends, as far as its codebase is concerned.
    fn end(&self, sandbox: &str, codebase: &str) {
        assert!(self.store.delete_sandbox(sandbox).unwrap());
        self.codebases.release(codebase, Some(1)).unwrap();
    }

    #[track_caller]
    fn assert_gone(&self, id: &str) {
        assert_code(self.codebases.get(LOCAL, id), Code::CodebaseNotFound);
        assert!(!self.place(id).exists());
        assert!(self.store.files(id).unwrap().is_empty());
        let trash = self.dir.path().join("codebases/trash");
        assert_eq!(std::fs::read_dir(trash).unwrap().count(), 0);
        assert!(!self.codebases.inner.lives.lock().contains_key(id));
    }

    /// Fails unless the codebase counts as touched in `act`.
    #[track_caller]
    fn assert_touched<T>(&self, id: &str, act: impl FnOnce() -> T) -> T {
        let life = self.codebases.inner.life(id);
        let moment = Instant::now();
        let value = act();
        let age = life.touched.elapsed();
        assert!(age <= moment.elapsed(), "it was last touched before");
        value
    }
}

#[test]
fn it_goes_with_the_last_of_its_sandboxes_and_no_other_does() {
    let fixture = Fixture::new();
    let (id, lasting) = (fixture.create_fleeting(None), fixture.create());
    fixture.write(&id, "d/f", b"x").unwrap();
    fixture.write(&lasting, "f", b"x").unwrap();
    let sandboxes = [fixture.stand_on(&id, 1), fixture.stand_on(&id, 1)];
    let other = fixture.stand_on(&lasting, 1);
    fixture.end(&sandboxes[0], &id);
    assert_eq!(fixture.read(&id, "d/f").unwrap(), b"x");
    fixture.end(&sandboxes[1], &id);
    fixture.assert_gone(&id);
    fixture.end(&other, &lasting);
    assert_eq!(fixture.read(&lasting, "f").unwrap(), b"x");
}

#[test]
fn a_snapshot_keeps_it_until_it_is_deleted() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    let sandbox = fixture.stand_on(&id, 1);
    let snapshot = Snapshot {
        id: Kind::Snapshot.random(),
        account: LOCAL.into(),
        codebase_id: id.clone(),
        codebase_version: 1,
        ..Snapshot::default()
    };
    fixture.store.insert_snapshot(&snapshot).unwrap();
    fixture.end(&sandbox, &id);
    assert!(fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap().is_empty());
    assert!(fixture.get(&id).fleeting);
    assert!(fixture.store.delete_snapshot(LOCAL, &snapshot.id).unwrap());
    fixture.codebases.release(&id, Some(1)).unwrap();
    fixture.assert_gone(&id);
}

#[test]
fn one_that_is_kept_is_like_any_other() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    assert!(fixture.get(&id).fleeting);
    let sandbox = fixture.stand_on(&id, 1);
    fixture.store.keep_codebase(&id).unwrap();
    fixture.end(&sandbox, &id);
    assert!(!fixture.get(&id).fleeting);
    assert!(fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap().is_empty());
    assert!(fixture.place(&id).exists());
}

#[test]
fn of_a_directory_of_the_host_the_record_goes_and_nothing_else() {
    let fixture = Fixture::new();
    let host = tempfile::tempdir().unwrap();
    std::fs::write(host.path().join("precious"), "precious").unwrap();
    let before = contents_of(host.path());
    let used = fixture.create_fleeting(Some(host.path()));
    let sandbox = fixture.stand_on(&used, 1);
    fixture.end(&sandbox, &used);
    fixture.assert_gone(&used);
    let unused = fixture.create_fleeting(Some(host.path()));
    assert_eq!(
        fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap(),
        std::slice::from_ref(&unused)
    );
    fixture.assert_gone(&unused);
    assert_eq!(contents_of(host.path()), before);
}

#[test]
fn a_server_that_is_killed_between_record_and_files_leaves_neither() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    fixture.write(&id, "f", b"x").unwrap();
    let sandbox = fixture.stand_on(&id, 1);
    fixture.store.delete_sandbox(&sandbox).unwrap();
    assert!(fixture.place(&id).exists());
    let (fixture, done) = fixture.restarted();
    assert_eq!(done, [format!("{id} was on no record and is removed")]);
    fixture.assert_gone(&id);
}

#[test]
fn one_that_no_sandbox_was_made_of_goes_after_a_while_without_a_call() {
    let fixture = Fixture::new();
    let (id, lasting) = (fixture.create_fleeting(None), fixture.create());
    let used = fixture.create_fleeting(None);
    fixture.stand_on(&used, 1);
    fixture.write(&id, "f", b"x").unwrap();
    assert!(fixture.codebases.sweep_abandoned(HOUR).unwrap().is_empty());
    let (fixture, _) = fixture.restarted();
    assert!(fixture.codebases.sweep_abandoned(HOUR).unwrap().is_empty());
    assert_eq!(
        fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap(),
        std::slice::from_ref(&id)
    );
    fixture.assert_gone(&id);
    fixture.get(&lasting);
    fixture.get(&used);
}

#[test]
fn every_call_that_sends_something_begins_the_time_anew() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    fixture.assert_touched(&id, || fixture.codebases.negotiate(LOCAL, &id, &[]).unwrap());
    let target = UploadTarget::File { path: "f".into(), mode: None };
    let mut upload =
        fixture.assert_touched(&id, || fixture.codebases.begin_upload(LOCAL, &id, target).unwrap());
    fixture.assert_touched(&id, || upload.write(b"x").unwrap());
    fixture.assert_touched(&id, || upload.finish().unwrap());
    fixture.assert_touched(&id, || fixture.stage(&id, b"staged"));
    fixture.assert_touched(&id, || fixture.codebases.commit(LOCAL, &id, &[]).unwrap());
    let life = fixture.codebases.inner.life(&id);
    let moment = Instant::now();
    fixture.list(&id, "", true).unwrap();
    let looked = moment.elapsed();
    assert!(life.touched.elapsed() > looked, "who only looks does not keep it");
}

#[test]
fn the_time_begins_when_a_commit_is_over_not_when_it_begins() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    let life = fixture.codebases.inner.life(&id);
    let tree = |number: usize| -> Vec<ManifestEntry> {
        let directory = |each| format!("{number}/{each}");
        let content = Content::Directory { mode: None };
        (0..1000)
            .map(|each| ManifestEntry { path: directory(each), content: content.clone() })
            .collect()
    };
    // Others may be in the way of this thread, but not every time.
    let touched_at_its_end = (0..20).any(|number| {
        let moment = Instant::now();
        fixture.codebases.commit(LOCAL, &id, &tree(number)).unwrap();
        life.touched.elapsed() < moment.elapsed() / 2
    });
    assert!(touched_at_its_end);
}

#[test]
fn who_is_at_work_on_it_has_not_given_it_up() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    let life = fixture.codebases.inner.life(&id);
    let turn = life.change.lock();
    assert!(fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap().is_empty());
    drop(turn);
    assert_eq!(fixture.codebases.sweep_abandoned(Duration::ZERO).unwrap(), [id]);
}

#[test]
fn who_sends_to_one_that_is_gone_is_told_so_at_every_step() {
    let fixture = Fixture::new();
    let id = fixture.create_fleeting(None);
    let target = UploadTarget::File { path: "f".into(), mode: None };
    let mut late = fixture.codebases.begin_upload(LOCAL, &id, target).unwrap();
    let sandbox = fixture.stand_on(&id, 1);
    fixture.end(&sandbox, &id);
    late.write(b"x").unwrap();
    assert_code(late.finish(), Code::CodebaseNotFound);
    // The record may also go after the call has looked: it has the turn, but the sandbox does not ask.
    let stamp = crate::store::Stamp { inode: 1, size: 1, modified_ns: 1 };
    let row = FileRow { path: b"f".to_vec(), digest: None, stamp, mode: 0o644 };
    let store = &fixture.store;
    assert_code(store.intend(&id, b"f"), Code::CodebaseNotFound);
    assert_code(store.settle(&id, b"f", Some(&row)), Code::CodebaseNotFound);
    assert_code(store.replace_tree(&id, 2, &[row], 0, None), Code::CodebaseNotFound);
}

#[test]
fn a_sandbox_that_is_made_at_that_moment_has_it_or_does_not_find_it() {
    let fixture = Fixture::new();
    let (mut kept, mut missed) = (0, 0);
    for _ in 0..200 {
        let id = fixture.create_fleeting(None);
        let (first, both) = (fixture.stand_on(&id, 1), Barrier::new(2));
        let next = SandboxRecord {
            id: Kind::Sandbox.random(),
            account: LOCAL.into(),
            codebase_id: id.clone(),
            ..SandboxRecord::default()
        };
        let inserted = std::thread::scope(|scope| {
            let inserted = scope.spawn(|| {
                both.wait();
                fixture.store.insert_sandbox(&next, usize::MAX)
            });
            both.wait();
            fixture.end(&first, &id);
            inserted.join().unwrap()
        });
        match inserted {
            Ok(()) => {
                fixture.codebases.pin(LOCAL, &id, None).unwrap();
                kept += 1;
            }
            Err(problem) => {
                assert_eq!(problem.code, Code::CodebaseNotFound, "{problem}");
                fixture.assert_gone(&id);
                missed += 1;
            }
        }
    }
    eprintln!("{kept} were kept, {missed} were gone");
}
