//! Many at once.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::store::{CodebaseFilter, Page};

/// Tells the others to end, also when a test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn writers_and_readers_do_not_disturb_each_other() {
    let fixture = Fixture::new();
    let id = fixture.create();
    std::thread::scope(|scope| {
        for writer in 0..5 {
            let (fixture, id) = (&fixture, &id);
            scope.spawn(move || {
                for file in 0..10 {
                    let path = format!("dir{file}/file{writer}");
                    fixture.write(id, &path, path.as_bytes()).unwrap();
                    fixture.write(id, "shared", path.as_bytes()).unwrap();
                }
            });
            scope.spawn(move || {
                for _ in 0..10 {
                    fixture.get(id);
                    let page = Page::default();
                    fixture.codebases.list(LOCAL, &CodebaseFilter::default(), &page).unwrap();
                    for path in fixture.list(id, "", true).unwrap() {
                        let bytes = fixture.read(id, &path).unwrap();
                        assert!(path == "shared" || bytes == path.as_bytes(), "{path}");
                    }
                }
            });
        }
    });
    assert_eq!(fixture.get(&id).file_count, 51);
    fixture.assert_agreement(&id);
}

#[test]
fn a_pinned_version_never_changes_while_uploads_go_on() {
    let fixture = Fixture::new();
    let id = fixture.create();
    fixture.write(&id, "d/f", b"0").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (fixture, id, over) = (&fixture, &id, &over);
            scope.spawn(move || {
                for turn in 0.. {
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    let text = format!("{writer} {turn}");
                    fixture.write(id, "d/f", text.as_bytes()).unwrap();
                    fixture.write(id, &format!("d/{writer}/{}", turn % 7), b"x").unwrap();
                    let _ = fixture.codebases.remove_file(LOCAL, id, format!("d/{writer}/3"));
                }
            });
        }
        let ends = Ends(&over);
        let mut pinned = Vec::new();
        for _ in 0..25 {
            let pin = fixture.codebases.pin(LOCAL, &id, None).unwrap();
            let seen = contents_of(&pin.path);
            pinned.push((pin, seen));
            fixture.codebases.sweep(&[]).unwrap();
            pinned.iter().for_each(|(pin, seen)| assert_eq!(&contents_of(&pin.path), seen));
        }
        drop(ends);
        pinned.iter().for_each(|(pin, seen)| assert_eq!(&contents_of(&pin.path), seen));
    });
    fixture.codebases.sweep(&[]).unwrap();
    assert_eq!(fixture.versions(&id), [fixture.get(&id).version]);
    fixture.assert_agreement(&id);
}

#[test]
fn whoever_reads_finds_everything_while_whole_trees_are_replaced() {
    let fixture = Fixture::new();
    let id = fixture.create();
    let trees: Vec<Vec<ManifestEntry>> = (0..2u8)
        .map(|tree| {
            let text = vec![tree; 100];
            let target = UploadTarget::Stage { digest: None };
            fixture.upload(&id, target, &text).unwrap();
            let digest = blake3::hash(&text).to_string();
            let content = Content::File { mode: None, size: 100, digest };
            (0..20)
                .map(|n| ManifestEntry { path: format!("d{n}/f"), content: content.clone() })
                .collect()
        })
        .collect();
    // Both contents are kept by another codebase, since a commit uses up what was staged.
    let keeper = fixture.create();
    (0..2u8).for_each(|tree| {
        fixture.write(&keeper, &format!("{tree}"), &[tree; 100]).unwrap();
    });
    fixture.codebases.commit(LOCAL, &id, &trees[0]).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ends = Ends(&over);
            for turn in 0..30 {
                fixture.codebases.commit(LOCAL, &id, &trees[(turn + 1) % 2]).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    assert_eq!(fixture.list(&id, "", true).unwrap().len(), 20);
                    assert_eq!(fixture.read(&id, "d7/f").unwrap().len(), 100);
                }
            });
        }
    });
    fixture.assert_agreement(&id);
}
