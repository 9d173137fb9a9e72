//! What records promise, through what the engine uses.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ringfence_engine::id::Kind;
use ringfence_engine::problem::Code;
use ringfence_engine::store::{
    Codebase, LOCAL, Page, SandboxFilter, SandboxRecord, Snapshot, SnapshotFilter, Status, Store,
};
use ringfence_policy::preset;
use tempfile::TempDir;

fn open() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.ensure_account("other").unwrap();
    (dir, store)
}

fn codebase(store: &Store, account: &str) -> Codebase {
    let codebase = Codebase {
        id: Kind::Codebase.random(),
        account: account.into(),
        owner_id: "ann".into(),
        name: "web".into(),
        local_path: Some("/srv/über".into()),
        mask: vec!["*.log".into(), "!keep.log".into()],
        default_mask: vec![".env".into()],
        ignore_files: vec![".gitignore".into()],
        version: 1,
        created_ms: 5,
        ..Codebase::default()
    };
    store.insert_codebase(&codebase).unwrap();
    codebase
}

fn sandbox(codebase: &Codebase, created_ms: i64) -> SandboxRecord {
    SandboxRecord {
        id: Kind::Sandbox.random(),
        account: codebase.account.clone(),
        owner_id: "ann".into(),
        codebase_id: codebase.id.clone(),
        created_ms,
        ..SandboxRecord::default()
    }
}

#[test]
fn a_record_comes_back_as_it_was() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    assert_eq!(store.codebase(LOCAL, &codebase.id).unwrap(), Some(codebase.clone()));
    let snapshot = Snapshot {
        id: Kind::Snapshot.random(),
        account: LOCAL.into(),
        sandbox_id: "sb_gone".into(),
        codebase_id: codebase.id.clone(),
        codebase_version: 3,
        name: "before".into(),
        layer_path: "sandboxes/sb_1/frozen".into(),
        created_ms: 9,
    };
    store.insert_snapshot(&snapshot).unwrap();
    assert_eq!(store.snapshot(LOCAL, &snapshot.id).unwrap(), Some(snapshot.clone()));
    let sandbox = SandboxRecord {
        codebase_version: Some(3),
        rules: preset("agent-safe").unwrap(),
        labels: BTreeMap::from([("a\"b".into(), "c'd".into())]),
        env: BTreeMap::from([("PATH".into(), "/bin".into())]),
        runtime: "bwrap".into(),
        image: "debian".into(),
        memory: Some(1 << 40),
        cpu_quota: Some(50_000),
        cpu_shares: None,
        pids: Some(0),
        network: "none".into(),
        read_only_paths: vec!["/opt".into()],
        status: Status::Error,
        reason: Some("it broke".into()),
        started_ms: Some(1),
        stopped_ms: Some(2),
        expires_ms: Some(3),
        leased: true,
        lease_until_ms: Some(4),
        snapshot_id: Some(snapshot.id),
        layer: "layer".into(),
        ..sandbox(&codebase, 7)
    };
    store.insert_sandbox(&sandbox, 1).unwrap();
    assert_eq!(store.sandbox(LOCAL, &sandbox.id).unwrap(), Some(sandbox.clone()));
    assert_eq!(store.all_sandboxes().unwrap(), [sandbox]);
}

#[test]
fn nothing_of_one_account_is_visible_to_another() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    let mine = sandbox(&codebase, 1);
    store.insert_sandbox(&mine, 9).unwrap();
    let page = Page::default();
    assert_eq!(store.codebase("other", &codebase.id).unwrap(), None);
    assert_eq!(store.sandbox("other", &mine.id).unwrap(), None);
    assert_eq!(store.sandboxes("other", &SandboxFilter::default(), &page).unwrap().items, []);
    assert_eq!(store.snapshots("other", &SnapshotFilter::default(), &page).unwrap().items, []);
    assert!(!store.delete_codebase("other", &codebase.id).unwrap());
    let stolen = SandboxRecord { account: "other".into(), ..sandbox(&codebase, 1) };
    assert_eq!(store.insert_sandbox(&stolen, 9).unwrap_err().code, Code::CodebaseNotFound);
}

#[test]
fn unknown_and_double_records_are_told() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    assert!(store.insert_codebase(&codebase).is_err());
    let changed = store
        .update_codebase(&codebase.id, |codebase| {
            (codebase.name, codebase.size) = ("new".into(), 5);
            codebase.id = "cb_other".into();
        })
        .unwrap()
        .unwrap();
    assert_eq!((changed.name.as_str(), changed.size, &changed.id), ("new", 5, &codebase.id));
    assert_eq!(store.codebase(LOCAL, &codebase.id).unwrap(), Some(changed));
    assert_eq!(store.update_codebase("cb_x", |_| ()).unwrap(), None);
    assert_eq!(store.update_sandbox("", |_| ()).unwrap(), None);
    assert!(!store.delete_codebase(LOCAL, "cb_x").unwrap());
    assert!(!store.delete_sandbox("sb_x").unwrap());
    assert!(store.delete_codebase(LOCAL, &codebase.id).unwrap());
    assert_eq!(store.codebase(LOCAL, &codebase.id).unwrap(), None);
}

#[test]
fn a_listing_can_be_filtered_by_everything_at_once() {
    let (_dir, store) = open();
    let (first, second) = (codebase(&store, LOCAL), codebase(&store, LOCAL));
    for number in 0..12 {
        let codebase = if number % 2 == 0 { &first } else { &second };
        let labels = [("n", number.to_string()), ("third", (number % 3).to_string())];
        let record = SandboxRecord {
            owner_id: format!("owner{}", number % 4),
            status: if number < 6 { Status::Running } else { Status::Stopped },
            labels: labels.into_iter().map(|(key, value)| (key.into(), value)).collect(),
            ..sandbox(codebase, number)
        };
        store.insert_sandbox(&record, 100).unwrap();
    }
    let count = |filter: SandboxFilter| {
        let listed = store.sandboxes(LOCAL, &filter, &Page::default()).unwrap();
        let times: Vec<i64> = listed.items.iter().map(|record| record.created_ms).collect();
        assert!(times.is_sorted());
        times.len()
    };
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    };
    let any = SandboxFilter::default;
    assert_eq!(count(any()), 12);
    assert_eq!(count(SandboxFilter { codebase_id: Some(first.id.clone()), ..any() }), 6);
    assert_eq!(count(SandboxFilter { owner_id: Some("owner1".into()), ..any() }), 3);
    assert_eq!(count(SandboxFilter { status: Some(Status::Running), ..any() }), 6);
    assert_eq!(count(SandboxFilter { labels: labels(&[("third", "1")]), ..any() }), 4);
    assert_eq!(count(SandboxFilter { labels: labels(&[("third", "1"), ("n", "7")]), ..any() }), 1);
    assert_eq!(count(SandboxFilter { labels: labels(&[("thir", "1")]), ..any() }), 0);
    let both = SandboxFilter {
        codebase_id: Some(first.id),
        status: Some(Status::Stopped),
        owner_id: Some("owner0".into()),
        labels: labels(&[("third", "2")]),
    };
    assert_eq!(count(both), 1);
    assert_eq!(store.running_sandboxes(LOCAL).unwrap().len(), 6);
}

#[test]
fn pages_go_through_everything_once_even_when_times_are_equal() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    for number in 0..10 {
        store.insert_sandbox(&sandbox(&codebase, number / 4), 100).unwrap();
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = Page { limit: 3, token };
        let listed = store.sandboxes(LOCAL, &SandboxFilter::default(), &page).unwrap();
        seen.extend(listed.items);
        // What is added before the place where the reader is does not disturb.
        store.insert_sandbox(&sandbox(&codebase, -1), 100).unwrap();
        match listed.next {
            Some(next) => token = next,
            None => break,
        }
    }
    assert_eq!(seen.len(), 10);
    seen.dedup_by(|a, b| a.id == b.id);
    assert_eq!(seen.len(), 10);
}

#[test]
fn changes_of_one_record_do_not_overwrite_each_other() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    let record = sandbox(&codebase, 1);
    store.insert_sandbox(&record, 9).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let count = |record: &mut SandboxRecord| {
                        *record.pids.get_or_insert(0) += 1;
                    };
                    store.update_sandbox(&record.id, count).unwrap();
                    store.sandboxes(LOCAL, &SandboxFilter::default(), &Page::default()).unwrap();
                }
            });
        }
    });
    assert_eq!(store.sandbox(LOCAL, &record.id).unwrap().unwrap().pids, Some(50));
}

#[test]
fn an_account_has_only_so_many_sandboxes() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    store.insert_sandbox(&sandbox(&codebase, 1), 2).unwrap();
    store.insert_sandbox(&sandbox(&codebase, 1), 2).unwrap();
    let problem = store.insert_sandbox(&sandbox(&codebase, 1), 2).unwrap_err();
    assert_eq!(problem.code, Code::ResourceLimitExceeded);
    assert_eq!(problem.details["limit"], "sandboxes");
}

#[test]
fn sandboxes_whose_time_has_come_are_found() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    let cases = [
        (Some(100), false, None, true),
        (Some(101), false, None, false),
        (None, true, Some(99), true),
        (None, true, Some(101), false),
        (None, false, Some(50), false),
        (None, false, None, false),
    ];
    for (expires_ms, leased, lease_until_ms, due) in cases {
        let record = SandboxRecord { expires_ms, leased, lease_until_ms, ..sandbox(&codebase, 1) };
        store.insert_sandbox(&record, 99).unwrap();
        let found = store.sandboxes_due(100).unwrap();
        assert_eq!(found.iter().any(|found| found.id == record.id), due, "{record:?}");
    }
}

#[test]
fn what_others_stand_on_is_not_deleted() {
    let (_dir, store) = open();
    let codebase = codebase(&store, LOCAL);
    let snapshot = Snapshot {
        id: Kind::Snapshot.random(),
        account: LOCAL.into(),
        codebase_id: codebase.id.clone(),
        ..Snapshot::default()
    };
    store.insert_snapshot(&snapshot).unwrap();
    let refused = store.delete_codebase(LOCAL, &codebase.id).unwrap_err();
    assert_eq!(refused.code, Code::CodebaseInUse);
    let record = SandboxRecord { snapshot_id: Some(snapshot.id.clone()), ..sandbox(&codebase, 1) };
    store.insert_sandbox(&record, 9).unwrap();
    let refused = store.delete_snapshot(LOCAL, &snapshot.id).unwrap_err();
    assert_eq!(refused.code, Code::SnapshotInUse);
    assert!(store.delete_sandbox(&record.id).unwrap());
    assert!(!store.delete_snapshot("other", &snapshot.id).unwrap());
    assert!(store.delete_snapshot(LOCAL, &snapshot.id).unwrap());
    let gone = SandboxRecord { snapshot_id: Some(snapshot.id), ..sandbox(&codebase, 1) };
    assert_eq!(store.insert_sandbox(&gone, 9).unwrap_err().code, Code::SnapshotNotFound);
    assert!(store.delete_codebase(LOCAL, &codebase.id).unwrap());
}

#[test]
fn whoever_looks_after_a_change_sees_it_however_often_it_was_looked_at_before() {
    let (_dir, store) = open();
    let record = sandbox(&codebase(&store, LOCAL), 1);
    let look = || store.sandbox(LOCAL, &record.id).unwrap();
    assert_eq!(look(), None);
    store.insert_sandbox(&record, 9).unwrap();
    let written = std::sync::atomic::AtomicI64::new(1);
    std::thread::scope(|scope| {
        let (look, written, store) = (&look, &written, &store);
        let readers = [(); 2].map(|()| {
            scope.spawn(move || {
                loop {
                    let before = written.load(std::sync::atomic::Ordering::SeqCst);
                    let seen = look().unwrap().created_ms;
                    assert!(seen >= before, "{seen} was seen after {before} was written");
                    if seen == 200 {
                        return;
                    }
                }
            })
        });
        for created in 2..=200 {
            store.update_sandbox(&record.id, |record| record.created_ms = created).unwrap();
            written.store(created, std::sync::atomic::Ordering::SeqCst);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(store.sandbox("other", &record.id).unwrap(), None);
    store.delete_sandbox(&record.id).unwrap();
    assert_eq!(look(), None);
}
