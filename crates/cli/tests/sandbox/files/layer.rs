//! What a running sandbox has changed, and snapshots of it.

use ringfence_fs::layers::format::{LayerDir, LayerState};
use ringfence_link::client::Event;
use ringfence_link::files::{Applied, Apply, ChangeKind, EntryKind, View};
use ringfence_link::warden::{
    Code, Command, OpenSession, Reply, Request, SessionExec, StartProcess,
};

use super::refused;
use crate::support::{Maker, Sandbox, code_of, eventually, require_sandbox};

fn base() -> Maker {
    Maker::new().file("kept", "one\ntwo\n").file("gone", "x\n").file("dir/inner", "x\n")
}

fn diff(sandbox: &Sandbox) -> String {
    let mut patch = Vec::new();
    let call = sandbox.client.call(Request::Diff).unwrap();
    call.finish(|event| match event {
        Event::Output(bytes) => patch.extend(bytes),
        other => panic!("{other:?}"),
    })
    .unwrap();
    String::from_utf8(patch).unwrap()
}

#[test]
fn changes_and_diff_are_those_of_now() {
    require_sandbox!();
    let sandbox = base().start();
    assert_eq!(sandbox.changes(Request::Changes).unwrap().0, []);
    sandbox.ok("echo three >> kept; rm gone; mv dir moved; chmod 700 moved/inner");
    sandbox.put(View::Owner, "new", b"by the owner\n").unwrap();
    let (changes, last) = sandbox.changes(Request::Changes).unwrap();
    assert_eq!(last, Reply::Ok);
    let short = |kind: &ChangeKind| match kind {
        ChangeKind::Renamed { from } => format!("from {}", String::from_utf8_lossy(from)),
        ChangeKind::Mode { from, to } => format!("{from:o} {to:o}"),
        other => format!("{other:?}"),
    };
    let shorts: Vec<_> = changes
        .iter()
        .map(|change| format!("{} {}", String::from_utf8_lossy(&change.path), short(&change.kind)))
        .collect();
    let expected = [
        "/gone Deleted",
        "/kept Modified",
        "/moved from /dir",
        "/moved/inner 644 700",
        "/new Added",
    ];
    assert_eq!(shorts, expected);
    assert_eq!(changes[2].entry, EntryKind::Directory);
    let patch = diff(&sandbox);
    assert!(patch.contains("+three\n") && patch.contains("+by the owner\n"), "{patch}");
    // A program that goes on writing is no hindrance.
    let open = sandbox.client.call(Request::Exec(ringfence_link::warden::Exec::shell(
        "while [ ! -e /tmp/stop ]; do mkdir -p w/x; echo y > w/x/y; rm -r w; done",
    )));
    for _ in 0..20 {
        assert!(sandbox.changes(Request::Changes).unwrap().0.len() >= 5);
        assert!(diff(&sandbox).contains("+three\n"));
    }
    sandbox.ok("touch /tmp/stop");
    open.unwrap().finish(|_| {}).unwrap();
}

fn applied(reply: Reply) -> Applied {
    match reply {
        Reply::Applied(applied) => applied,
        other => panic!("{other:?}"),
    }
}

#[test]
fn changes_are_applied_elsewhere_while_it_runs_and_to_the_base_when_it_does_not() {
    require_sandbox!();
    let sandbox = base().rule("read:/dir/**@10").start();
    sandbox.ok("echo three >> kept; rm gone; echo new > new");
    sandbox.put(View::Owner, "dir/inner", b"the owner's\n").unwrap();
    let to = tempfile::tempdir().unwrap();
    for (name, content) in [("kept", "one\ntwo\n"), ("gone", "x\n")] {
        std::fs::write(to.path().join(name), content).unwrap();
    }
    let apply = |dry_run: bool, to: Option<&std::path::Path>| {
        let to = to.map(|to| to.as_os_str().as_encoded_bytes().to_vec());
        sandbox.changes(Request::Apply(Apply { force: false, dry_run, to }))
    };
    let (changes, last) = apply(true, None).unwrap();
    let would = applied(last);
    assert_eq!((changes.len(), would.written, would.conflicts.len()), (3, false, 0));
    assert_eq!(would.refused.len(), 1, "the agent may not write there");
    assert_eq!(would.refused[0].1, b"/dir/inner");
    let (changes, last) = apply(false, Some(to.path())).unwrap();
    assert!(applied(last).written && changes.len() == 3);
    assert_eq!(std::fs::read(to.path().join("kept")).unwrap(), b"one\ntwo\nthree\n");
    assert!(!to.path().join("gone").exists() && to.path().join("new").exists());
    for to in [None, Some(sandbox.config.base.as_path())] {
        let failure = refused(apply(false, to));
        assert_eq!(failure.code, Code::Unsupported);
        assert!(failure.message.contains("stop it first"), "{failure}");
    }
    assert_eq!(std::fs::read(sandbox.config.base.join("kept")).unwrap(), b"one\ntwo\n");
    assert_eq!(sandbox.ok("cat kept; rm new"), "one\ntwo\nthree\n", "and it goes on");
}

/// Numbers lines in two files for as long as it runs. It has them open, so that the kernel writes to
/// them without anybody's doing.
const WRITER: &str =
    "exec 3>>one 4>>two; n=0; while :; do n=$((n+1)); echo $n >&3; echo $n >&4; done";

#[test]
fn a_snapshot_is_of_one_moment_and_everything_goes_on() {
    require_sandbox!();
    let sandbox = base().start();
    let start = StartProcess {
        command: Command::Shell(WRITER.into()),
        session: None,
        env: vec![],
        cwd: None,
        id: Some("writer".into()),
    };
    sandbox.client.ask(Request::StartProcess(start)).unwrap();
    sandbox.open(OpenSession { name: Some("s".into()), ..Default::default() }).unwrap();
    sandbox.in_session("s", SessionExec::new("x=kept; cd dir")).unwrap();
    let count = || sandbox.ok("cat two 2>/dev/null | wc -l").trim().parse::<u64>().unwrap();
    let mut layers = vec![sandbox.config.layer.clone()];
    for n in 0..3 {
        let before = count();
        eventually("it writes", || count() > before + 5);
        let next = sandbox.config.dir.with_file_name(format!("layer{n}"));
        let path = next.as_os_str().as_encoded_bytes().to_vec();
        let reply = sandbox.client.ask(Request::Freeze { path }).unwrap();
        let frozen = layers.last().unwrap().as_os_str().as_encoded_bytes().to_vec();
        assert_eq!(reply, Reply::Frozen { path: frozen });
        layers.push(next);
    }
    let session = sandbox.in_session("s", SessionExec::new("echo $x; pwd")).unwrap();
    assert_eq!(session.out(), "kept\n/workspace/dir\n");
    let after = count();
    eventually("it still writes", || count() > after);
    for layer in &layers[..3] {
        assert_eq!(LayerDir::inspect(layer).unwrap().meta().state, LayerState::Frozen);
        let lines = |name: &str| {
            let text = std::fs::read_to_string(layer.join("tree").join(name)).unwrap();
            assert!(text.ends_with('\n'), "no line is cut");
            text.lines().map(|line| line.parse().unwrap()).collect::<Vec<u64>>()
        };
        let (one, two) = (lines("one"), lines("two"));
        assert_eq!(one, (1..=one.len() as u64).collect::<Vec<_>>());
        assert!(one.starts_with(&two) && one.len() - two.len() <= 1, "of one moment");
    }
    let taken = layers[0].as_os_str().as_encoded_bytes().to_vec();
    assert_eq!(code_of(sandbox.client.ask(Request::Freeze { path: taken })), Code::InvalidArgument);
    let relative = Request::Freeze { path: b"relative".to_vec() };
    assert_eq!(code_of(sandbox.client.ask(relative)), Code::InvalidArgument);
    sandbox.put(View::Owner, "after", b"x").unwrap();
    assert!(layers[3].join("tree/after").exists());
    assert_eq!(sandbox.ok("cat after"), "x");
}
