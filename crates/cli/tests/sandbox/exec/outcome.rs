//! What is told about a command that is over.

use ringfence_link::warden::Exec;

use crate::support::{Maker, sandbox};

#[test]
fn denied_accesses_are_listed_with_their_rule_at_the_command_that_made_them() {
    let maker = Maker::new().file("secrets/key", "x").file("src/main.rs", "fn").file("free", "y");
    let sandbox = sandbox!(maker.rule("none:/secrets/**@100").rule("read:/src/**@50"));
    std::thread::scope(|scope| {
        let reader =
            scope.spawn(|| sandbox.sh("for i in 1 2 3; do cat secrets/key; done; cat free"));
        let writer = scope.spawn(|| sandbox.sh("echo more >> src/main.rs; cat src/main.rs"));
        let innocent = scope.spawn(|| sandbox.sh("cat free; cat src/main.rs"));
        let (reader, writer) = (reader.join().unwrap(), writer.join().unwrap());
        assert_eq!((reader.out().as_str(), reader.code()), ("y", 0));
        let denied = &reader.outcome.denied;
        assert!(denied.iter().all(|d| d.path.starts_with("/secrets")), "{denied:?}");
        assert!(denied.iter().all(|d| d.rule.as_deref() == Some("/secrets/**")), "{denied:?}");
        assert!(denied.iter().map(|d| d.count).sum::<u64>() >= 1, "{denied:?}");
        let denied = &writer.outcome.denied;
        let [one] = &denied[..] else { panic!("{denied:?}") };
        assert_eq!(
            (one.path.as_str(), one.needed.as_str(), one.level.as_str()),
            ("/src/main.rs", "write", "read")
        );
        assert_eq!(one.rule.as_deref(), Some("/src/**"));
        assert_eq!(innocent.join().unwrap().outcome.denied, []);
    });
}

#[test]
fn changed_files_are_listed_when_asked_for() {
    let sandbox = sandbox!(Maker::new().file("old", "1").file("gone", "2").file("same", "3"));
    sandbox.ok("echo before > earlier");
    let text = "echo x > new; echo y >> old; rm gone; cat same; mkdir dir; echo z > temporary; rm temporary";
    let run = sandbox.exec(Exec { changes: true, ..Exec::shell(text) }).unwrap();
    let mut changes: Vec<(String, String)> =
        run.outcome.changes.unwrap().into_iter().map(|change| (change.kind, change.path)).collect();
    changes.sort();
    let expected =
        [("added", "/dir"), ("added", "/new"), ("deleted", "/gone"), ("modified", "/old")];
    assert_eq!(changes, expected.map(|(kind, path)| (kind.into(), path.into())));
    assert_eq!(sandbox.sh("echo x > other").outcome.changes, None, "not asked for");
}

#[test]
fn the_bill_is_in_the_outcome() {
    let sandbox = sandbox!();
    let burn = "python3 -c \"import time; b = bytearray(50_000_000); e = time.process_time() + 0.2\nwhile time.process_time() < e: pass\"";
    let outcome = sandbox.sh(burn).outcome;
    assert!(outcome.cpu_micros >= 200_000, "{outcome:?}");
    assert!(outcome.duration_micros >= 200_000, "{outcome:?}");
    assert!(outcome.peak_memory >= 50_000_000, "{outcome:?}");
    assert!(!outcome.command.is_empty());
}
