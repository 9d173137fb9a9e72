//! What goes in, in which form and order, and what is only counted.

use std::os::unix::fs::PermissionsExt;

use super::event::{Decision, EventsLost, Limit, LimitHit, Lost};
use super::*;

#[test]
fn entries_come_back_in_order_with_their_fields() {
    let kept = Kept::new();
    let events = [started("cmd_1"), access("/.env", false), ended("cmd_1")];
    events.iter().for_each(|event| kept.append(event.clone()));
    let entries = kept.entries();
    let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let back: Vec<_> = entries.into_iter().skip(1).map(|entry| entry.event).collect();
    assert_eq!(back, events);
}

#[test]
fn a_line_is_what_the_documentation_says() {
    let kept = Kept::new();
    kept.append(access("/.env", false));
    kept.journal.flush().unwrap();
    let value: serde_json::Value = serde_json::from_str(&lines(kept.path())[1]).unwrap();
    let time = value["time"].as_str().unwrap();
    assert_eq!((time.len(), time.ends_with('Z')), (27, true), "{time}");
    let rule = serde_json::json!({ "text": "none:**/.env*@100", "source": "user" });
    assert_eq!(value["kind"], "access");
    assert_eq!(value["decision"], "denied");
    assert_eq!(value["rule"], rule);
    assert_eq!(value["path"], "/.env");
    assert_eq!(value.get("count"), None);
}

#[test]
fn only_the_owner_may_read_it() {
    let dir = finished(ID);
    for name in [JOURNAL_FILE, HEAD_FILE] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn equal_accesses_become_one_entry_with_a_count() {
    let kept = Kept::new();
    for _ in 0..100 {
        kept.append(access("/.env", false));
        kept.append(access("/a", true));
    }
    kept.append(ended("cmd_1"));
    let entries = kept.entries();
    assert_eq!(entries.len(), 4);
    for (entry, path) in entries[1..3].iter().zip(["/.env", "/a"]) {
        let Event::Access(access) = &entry.event else { panic!("{entry:?}") };
        assert_eq!((access.count, access.path.bytes()), (100, path.as_bytes().to_vec()));
        assert!(access.last.as_ref().unwrap() >= &entry.time);
    }
}

#[test]
fn nothing_is_folded_over_a_command_or_a_flush() {
    let kept = Kept::new();
    kept.append(access("/a", true));
    kept.append(ended("cmd_1"));
    kept.append(access("/a", true));
    kept.journal.flush().unwrap();
    kept.append(access("/a", true));
    assert_eq!(kept.entries().len(), 5);
}

#[test]
fn different_accesses_all_have_their_entry_in_order() {
    let kept = Kept::new();
    let paths: Vec<_> = (0..1000).map(|number| format!("/{number}")).collect();
    paths.iter().for_each(|path| kept.append(access(path, true)));
    assert_eq!(paths_of(&kept.entries()), paths);
}

fn paths_of(entries: &[Entry]) -> Vec<String> {
    let path = |entry: &Entry| match &entry.event {
        Event::Access(access) => String::from_utf8(access.path.bytes()).ok(),
        _ => None,
    };
    entries.iter().filter_map(path).collect()
}

#[test]
fn at_its_size_granted_accesses_are_counted_and_the_rest_goes_in() {
    let kept = Kept::with(slow(64 << 10));
    for number in 0..1000 {
        kept.append(access(&format!("/granted/{number}"), true));
    }
    kept.append(access("/.env", false));
    kept.append(ended("cmd_1"));
    kept.journal.close().unwrap();
    let entries = entries(kept.path());
    let kind = |wanted: &dyn Fn(&Event) -> bool| {
        entries.iter().filter(|entry| wanted(&entry.event)).count() as u64
    };
    assert_eq!(kind(&|event| event.is_denial()), 1);
    assert_eq!(kind(&|event| matches!(event, Event::CommandEnded(_))), 1);
    let hit = Event::LimitHit(LimitHit { limit: Limit::JournalSize, command: None });
    assert_eq!(kind(&|event| *event == hit), 1);
    let granted = kind(
        &|event| matches!(event, Event::Access(access) if access.decision == Decision::Granted),
    );
    assert!(granted > 100 && granted < 500, "{granted}");
    assert_eq!(granted + lost(&entries), 1000);
}

fn lost(entries: &[Entry]) -> u64 {
    let count = |entry: &Entry| match &entry.event {
        Event::EventsLost(EventsLost { count, why: Lost::JournalSize }) => *count,
        _ => 0,
    };
    entries.iter().map(count).sum()
}

#[test]
fn a_flood_of_denials_stops_at_twice_the_size_and_is_counted() {
    let kept = Kept::with(slow(64 << 10));
    for number in 0..2000 {
        kept.append(access(&format!("/.env{number}"), false));
    }
    kept.journal.close().unwrap();
    let entries = entries(kept.path());
    let denied = entries.iter().filter(|entry| entry.event.is_denial()).count() as u64;
    assert_eq!(denied + lost(&entries), 2000);
    assert!(fs::metadata(file(kept.path())).unwrap().len() < 160 << 10);
    verify(kept.path(), ID).unwrap();
}

#[test]
fn an_entry_too_long_is_replaced_and_still_chained() {
    let kept = Kept::new();
    let reason = "x".repeat(2 << 20);
    kept.append(Event::SandboxEnded(SandboxEnded { reason, clean: true }));
    let entries = kept.entries();
    assert!(matches!(&entries[1].event, Event::Oversized(o) if o.size > 2 << 20));
    verify(kept.path(), ID).unwrap();
}

#[test]
fn many_threads_keep_order_and_chain() {
    let kept = Kept::with(Options { flush_after: Duration::from_millis(1), ..slow(1 << 30) });
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let kept = &kept;
            scope.spawn(move || {
                for number in 0..2000 {
                    kept.append(access(&format!("/{thread}/{number:04}"), true));
                    if number % 100 == 0 {
                        kept.append(ended("cmd_1"));
                    }
                }
            });
        }
    });
    kept.journal.close().unwrap();
    assert_eq!(verify(kept.path(), ID).unwrap().head.seq, 1 + 8 * 2020);
    let paths = paths_of(&entries(kept.path()));
    for thread in 0..8 {
        let own: Vec<_> = paths.iter().filter(|p| p.starts_with(&format!("/{thread}/"))).collect();
        assert_eq!(own.len(), 2000);
        assert!(own.is_sorted());
    }
}

#[test]
fn what_was_appended_is_soon_in_the_file_without_being_asked() {
    let kept = Kept::with(Options { flush_after: Duration::from_millis(1), ..slow(1 << 30) });
    let mut follow = follow(kept.path(), 1).unwrap();
    kept.append(access("/a", true));
    assert_eq!(follow.next().unwrap().unwrap().number, 2);
    kept.append(ended("cmd_1"));
    assert_eq!(follow.next().unwrap().unwrap().number, 3);
    kept.journal.close().unwrap();
    drop(kept.journal);
    assert!(follow.next().is_none());
}

#[test]
fn nothing_goes_in_after_the_end() {
    let kept = Kept::new();
    kept.journal.close().unwrap();
    kept.journal.close().unwrap();
    assert!(matches!(kept.journal.append(ended("cmd_1")), Err(JournalError::Closed)));
    kept.journal.flush().unwrap();
    drop(kept.journal);
    assert_eq!(verify(kept.dir.path(), ID).unwrap().ending, Ending::InOrder);
}

#[test]
fn a_second_writer_and_a_second_creation_are_refused() {
    let kept = Kept::new();
    let again = Journal::reopen(kept.path(), ID, slow(1 << 30)).unwrap_err();
    assert!(matches!(again, JournalError::InUse { .. }), "{again}");
    let again = Journal::create(kept.path(), ID, slow(1 << 30)).unwrap_err();
    assert!(matches!(again, JournalError::Exists { .. }), "{again}");
    assert_eq!(verify(kept.path(), ID).unwrap().ending, Ending::BeingWritten);
}

#[test]
fn a_kind_of_a_newer_version_can_be_passed_over() {
    let line = r#"{"seq":2,"time":"","kind":"teleported","to":[1,2],"hash":""}"#;
    let entry: Entry = serde_json::from_str(line).unwrap();
    assert_eq!(entry.event, Event::Unknown);
}
