//! What every call does.

use ringfence_link::client::{ClientError, Event};
use ringfence_link::files::{EntryKind, FileCall, FileRequest, View};
use ringfence_link::warden::{Code, Reply, Request, StartProcess};

use super::{refused, write};
use crate::support::{Maker, Sandbox, code_of, eventually, require_sandbox};

const OWNER: View = View::Owner;

#[test]
fn what_a_caller_writes_a_program_reads_and_the_reverse() {
    require_sandbox!();
    let sandbox = Maker::new().file("kept", "from the base").start();
    assert_eq!(sandbox.ok("ls; cat new 2>/dev/null || echo absent"), "kept\nabsent\n");
    let entry = sandbox.put(OWNER, "/workspace/new", b"by a caller").unwrap();
    assert_eq!((&entry.path[..], entry.size, entry.mode), (&b"/new"[..], 11, 0o644));
    assert_eq!(sandbox.ok("ls; cat new"), "kept\nnew\nby a caller");
    sandbox.ok("cat kept; echo more >> new; printf x > kept; stat -c %U new kept | sort -u");
    assert_eq!(sandbox.get(OWNER, "new").unwrap(), b"by a callermore\n");
    assert_eq!(sandbox.get(OWNER, "/kept").unwrap(), b"x");
    let options = FileCall::Write { path: b"a/b/run".to_vec(), mode: Some(0o755), parents: true };
    sandbox.put_as(OWNER, options, b"#!/bin/sh\necho ran\n").unwrap();
    assert_eq!(sandbox.ok("a/b/run && rm a/b/run && ls a"), "ran\nb\n");
    assert_eq!(code_of(sandbox.get(OWNER, "a/b/run")), Code::FileNotFound);
    assert_eq!(std::fs::read(sandbox.config.base.join("kept")).unwrap(), b"from the base");
}

#[test]
fn bytes_of_big_files_are_exact_and_parts_can_be_read() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(5_000_001).collect();
    sandbox.put(OWNER, "big", &bytes).unwrap();
    assert_eq!(sandbox.ok("wc -c < big"), "5000001\n");
    assert!(sandbox.get(OWNER, "big").unwrap() == bytes);
    let (entry, part) = sandbox.get_part(OWNER, "big", 4_999_990, Some(5)).unwrap();
    assert_eq!((entry.size, &part[..]), (5_000_001, &bytes[4_999_990..4_999_995]));
    assert_eq!(sandbox.get_part(OWNER, "big", 4_999_990, None).unwrap().1.len(), 11);
    assert_eq!(sandbox.get_part(OWNER, "big", 6_000_000, Some(9)).unwrap().1, b"");
    sandbox.put(OWNER, "big", b"").unwrap();
    assert_eq!(sandbox.ok("wc -c < big"), "0\n");
}

#[test]
fn listings_are_sorted_and_whole() {
    require_sandbox!();
    let sandbox = Maker::new().file("z", "1").file("dir/b", "2").start();
    sandbox.ok(
        "ln -s z dir/link; mkfifo dir/fifo; mkdir many; seq 1300 | sed s,^,many/f, | xargs touch",
    );
    assert_eq!(sandbox.names(OWNER, "/", false), ["/dir", "/many", "/z"]);
    let all = sandbox.names(OWNER, "/workspace", true);
    assert_eq!(&all[..4], ["/dir/b", "/dir/fifo", "/dir/link", "/many/f1"]);
    assert_eq!(all.len(), 1304);
    let entries = sandbox.list(OWNER, "dir", false).unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::File, EntryKind::Fifo, EntryKind::Symlink]);
    assert_eq!(entries[2].target.as_deref(), Some(&b"z"[..]));
    assert_eq!(code_of(sandbox.list(OWNER, "none", true)), Code::FileNotFound);
    assert_eq!(code_of(sandbox.list(OWNER, "z", false)), Code::NotADirectory);
}

#[test]
fn names_are_made_moved_and_removed() {
    require_sandbox!();
    let sandbox = Maker::new().file("dir/inner", "x").start();
    sandbox.ok("ls -R; cat moved 2>/dev/null || true");
    assert_eq!(sandbox.make_dir(OWNER, "a/b", true).unwrap().kind, EntryKind::Directory);
    sandbox.make_link(OWNER, "a/link", "moved/inner").unwrap();
    sandbox.rename(OWNER, "dir", "a/moved").unwrap();
    assert_eq!(sandbox.ok("readlink a/link; cat a/link; rm a/link"), "moved/inner\nx");
    assert_eq!(sandbox.ok("find . | sort"), ".\n./a\n./a/b\n./a/moved\n./a/moved/inner\n");
    assert_eq!(code_of(sandbox.make_dir(OWNER, "a", false)), Code::FileExists);
    assert_eq!(code_of(sandbox.remove(OWNER, "a", false)), Code::DirectoryNotEmpty);
    assert_eq!(code_of(sandbox.put(OWNER, "a", b"")), Code::IsADirectory);
    assert_eq!(code_of(sandbox.rename(OWNER, "a", "a/b/c")), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.stat(OWNER, "a/moved/inner/x")), Code::NotADirectory);
    sandbox.remove(OWNER, "a", true).unwrap();
    assert_eq!(sandbox.ok("ls"), "");
    let illegal = refused(sandbox.stat(OWNER, "a/../../etc"));
    assert_eq!(
        (illegal.code, illegal.detail("path")),
        (Code::InvalidArgument, Some("a/../../etc"))
    );
}

#[test]
fn an_upload_that_is_given_up_leaves_nothing_and_one_that_is_refused_is_told() {
    require_sandbox!();
    let sandbox = Maker::new().file("kept", "kept").start();
    let request = |call| Request::File(FileRequest { view: OWNER, call });
    let call = sandbox.client.call(request(write("kept"))).unwrap();
    assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Send, _)));
    call.input(&[1; 300_000]).unwrap();
    let work = sandbox.config.layer.join("work");
    let waiting = || std::fs::read_dir(&work).unwrap().count();
    eventually("the bytes are there", || waiting() == 1);
    drop(call);
    eventually("they are gone", || waiting() == 0);
    assert_eq!(sandbox.ok("cat kept; ls"), "keptkept\n");
    // The reason arrives although the caller has more to send than fits on the way.
    let bytes = vec![0; 4_000_000];
    assert_eq!(code_of(sandbox.put(OWNER, "none/x", &bytes)), Code::FileNotFound);
    let content = std::io::Read::chain(&[1u8; 1000][..], Broken);
    let call = sandbox.client.call(request(write("other"))).unwrap();
    assert!(matches!(call.send_file(content), Err(ClientError::Content(_))));
    drop(call);
    eventually("nothing is left of it", || waiting() == 0);
    assert_eq!(sandbox.ok("ls"), "kept\n");
}

/// A file that cannot be read to its end.
struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("broken"))
    }
}

#[test]
fn a_caller_that_does_not_read_keeps_nobody_else_waiting() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    sandbox.put(OWNER, "big", &vec![7; 8_000_000]).unwrap();
    let call = FileCall::Read { path: b"big".to_vec(), offset: 0, length: None };
    let request = Request::File(FileRequest { view: OWNER, call });
    let idle: Vec<_> = (0..5).map(|_| sandbox.client.call(request.clone()).unwrap()).collect();
    let call = FileCall::List { path: b"/".to_vec(), recursive: true, files_only: false };
    let listing = sandbox.client.call(Request::File(FileRequest { view: OWNER, call })).unwrap();
    sandbox.ok("mkdir d; echo x > d/x; rm big; mv d e");
    sandbox.put(OWNER, "e/y", b"y").unwrap();
    assert_eq!(sandbox.ok("ls e"), "x\ny\n");
    drop((idle, listing));
}

#[test]
fn file_calls_are_on_record() {
    require_sandbox!();
    let sandbox = Maker::new().file(".env", "KEY").rule("none:**/.env*@100").start();
    sandbox.put(OWNER, "new", b"x").unwrap();
    sandbox.rename(OWNER, "new", "newer").unwrap();
    sandbox.make_link(OWNER, "link", "../anywhere").unwrap();
    code_of(sandbox.make_link(View::Agent, ".env.link", "new"));
    sandbox.get(OWNER, ".env").unwrap();
    code_of(sandbox.get(View::Agent, ".env"));
    code_of(sandbox.put(View::Agent, ".env", b"x"));
    code_of(sandbox.stat(View::Agent, "absent"));
    let journal = sandbox.stop_and_read_journal();
    let calls: Vec<serde_json::Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|entry: &serde_json::Value| entry["kind"] == "file_call")
        .collect();
    let short = |call: &serde_json::Value| {
        ["operation", "path", "to", "view", "decision", "error"]
            .map(|field| call[field].as_str().unwrap_or("-").to_owned())
            .join(" ")
    };
    let shorts: Vec<_> = calls.iter().map(short).collect();
    let expected = [
        "write /new - owner granted -",
        "rename /new /newer owner granted -",
        "symlink /link ../anywhere owner granted -",
        "symlink /.env.link new agent denied denied",
        "read /.env - owner granted -",
        "read /.env - agent denied not_found",
        "write /.env - agent denied denied",
        "stat /absent - agent granted not_found",
    ];
    assert_eq!(shorts, expected);
    assert_eq!(calls[5]["rule"]["text"], "none:**/.env*@100");
    assert!(!journal.contains(r#""kind":"access""#), "nobody inside has asked for anything");
}

#[test]
fn a_process_that_watches_its_files_goes_on() {
    require_sandbox!();
    let sandbox = Maker::new().file("dir/config", "one").start();
    let text = "cd dir; last=; while [ \"$last\" != stop ]; do \
                now=$(cat config); [ \"$now\" = \"$last\" ] || echo $now; last=$now; done";
    let start = StartProcess {
        command: ringfence_link::warden::Command::Shell(text.into()),
        session: None,
        env: vec![],
        cwd: None,
        id: Some("watcher".into()),
    };
    sandbox.client.ask(Request::StartProcess(start)).unwrap();
    for content in ["two", "three", "stop"] {
        sandbox.put(OWNER, "dir/config", content.as_bytes()).unwrap();
        let until = match content {
            "stop" => ringfence_link::warden::Until::Exit,
            line => ringfence_link::warden::Until::Text(line.into()),
        };
        let (id, timeout_ms) = ("watcher".into(), Some(60_000));
        sandbox.client.ask(Request::WaitProcess { id, until, timeout_ms }).unwrap();
    }
}
