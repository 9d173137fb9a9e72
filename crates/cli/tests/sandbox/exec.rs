//! One command in a fresh shell.

use std::time::{Duration, Instant};

use ringfence_link::client::{ClientError, Event};
use ringfence_link::warden::{Code, Command, Control, Exec, Request};

use crate::support::{
    Maker, Sandbox, code_of, collect, eventually, is_alive, processes_with, require_sandbox,
};

fn argv(words: &[&str]) -> Exec {
    Exec::new(Command::Argv(words.iter().map(|word| word.as_bytes().to_vec()).collect()))
}

fn variable(name: &str, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value.to_vec())
}

/// A sleep that can be told from all others on this machine.
fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("41{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn any_alive(text: &str) -> bool {
    processes_with(text).iter().any(|pid| is_alive(*pid))
}

#[test]
fn streams_are_apart_and_the_exit_code_is_the_commands() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let run = sandbox.sh("echo out; echo err >&2; exit 42");
    assert_eq!((run.out().as_str(), run.err().as_str(), run.code()), ("out\n", "err\n", 42));
    assert_eq!((run.outcome.stdout_bytes, run.outcome.stderr_bytes), (4, 4));
    assert_eq!(sandbox.sh("true").code(), 0);
    assert_eq!(sandbox.sh("false").code(), 1);
    assert_eq!(sandbox.sh("").code(), 0);
}

#[test]
fn files_of_the_workspace_are_there() {
    require_sandbox!();
    let sandbox = Maker::new().file("test.txt", "hello world").start();
    assert_eq!(sandbox.ok("pwd"), "/workspace\n");
    assert_eq!(sandbox.ok("cat test.txt"), "hello world");
    assert_eq!(sandbox.ok("ls -1"), "test.txt\n");
}

#[test]
fn nothing_is_kept_between_two() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    sandbox.ok("cd /tmp; export A=1; f() { :; }; umask 077");
    let left = sandbox.ok("pwd; echo \"[$A]\"; umask; command -v f || echo none");
    assert_eq!(left, "/workspace\n[]\n0022\nnone\n");
}

#[test]
fn bytes_are_exact() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let run = sandbox.sh(r"printf 'a\0\377\r\n\nb'; printf '\376no end' >&2");
    assert_eq!(run.stdout, b"a\0\xff\r\n\nb");
    assert_eq!(run.stderr, b"\xfeno end");
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_001).collect();
    let run = sandbox.exec_with_input(Exec::shell("tee /dev/stderr"), &bytes).unwrap();
    assert!(run.stdout == bytes && run.stderr == bytes);
    assert_eq!(run.outcome.stdout_bytes, bytes.len() as u64);
}

#[test]
fn a_partial_line_arrives_while_the_command_runs() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let exec = Exec::shell("printf 'no newline'; until [ -e /tmp/go ]; do sleep 0.01; done");
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    let first = loop {
        if let Event::Output(bytes) = call.next().unwrap() {
            break bytes;
        }
    };
    assert_eq!(first, b"no newline");
    sandbox.ok("touch /tmp/go");
    assert_eq!(collect(&call).unwrap().code(), 0);
}

#[test]
fn what_cannot_be_run_says_so_with_the_codes_of_a_shell() {
    require_sandbox!();
    let sandbox = Maker::new().file("data", "not a program").start();
    for exec in [argv(&["no-such-program"]), Exec::shell("no-such-program")] {
        let run = sandbox.exec(exec).unwrap();
        assert_eq!(run.code(), 127);
        assert!(
            run.err().contains("no-such-program") && run.err().contains("not found"),
            "{run:?}"
        );
    }
    for exec in [argv(&["./data"]), Exec::shell("./data"), argv(&["/tmp"])] {
        let run = sandbox.exec(exec).unwrap();
        assert_eq!(run.code(), 126, "{run:?}");
        assert!(run.err().contains("data") || run.err().contains("/tmp"), "{run:?}");
    }
}

#[test]
fn a_bad_directory_is_a_result_with_exit_1_that_names_it() {
    require_sandbox!();
    let sandbox = Maker::new().file("file", "").start();
    for bad in ["/no/where", "missing", "/workspace/file"] {
        let run = sandbox.exec(Exec { cwd: Some(bad.into()), ..Exec::shell("true") }).unwrap();
        assert_eq!((run.code(), run.out().as_str()), (1, ""));
        assert!(run.err().contains(bad), "{run:?}");
    }
    let run = sandbox.exec(Exec { cwd: Some(b"/tmp".to_vec()), ..Exec::shell("pwd") }).unwrap();
    assert_eq!(run.out(), "/tmp\n");
    let nul = Exec { cwd: Some(b"/a\0b".to_vec()), ..Exec::shell("true") };
    assert_eq!(code_of(sandbox.exec(nul)), Code::InvalidArgument);
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    for signal in [1, 2, 6, 9, 11, 13, 15] {
        let run = sandbox.sh(&format!("kill -{signal} $$; sleep 100"));
        assert_eq!((run.code(), run.outcome.signal), (128 + signal, Some(signal)));
    }
}

#[test]
fn input_arrives_exactly_and_then_ends() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let input = b"one\ntwo\0\xff no end";
    let run = sandbox.exec_with_input(Exec::shell("cat; echo; echo after"), input).unwrap();
    assert_eq!(run.stdout, [&input[..], b"\nafter\n"].concat());
    let empty = sandbox.exec_with_input(Exec::shell("wc -c"), b"").unwrap();
    assert_eq!(empty.out(), "0\n");
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let run =
        sandbox.exec_with_input(Exec::shell("exec <&-; echo done"), &[b'x'; 4 << 20]).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("done\n", 0));
}

#[test]
fn without_input_there_is_its_end() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok("cat; read x || echo ended"), "ended\n");
    assert_eq!(sandbox.ok("readlink /proc/self/fd/0"), "/dev/null\n");
}

#[test]
fn values_of_variables_are_data_and_their_names_are_checked() {
    require_sandbox!();
    let sandbox = Maker::new().change(|c| c.env = vec![("OWN".into(), "sandbox".into())]).start();
    let value = b"$(touch /tmp/x); `id` 'q' \"d\" \\ * \n end \xff";
    let exec =
        Exec { env: vec![variable("MY_VAR", value)], ..Exec::shell("printf %s \"$MY_VAR\"") };
    assert_eq!(sandbox.exec(exec).unwrap().stdout, value);
    assert_eq!(sandbox.sh("[ -e /tmp/x ] || echo \"[$MY_VAR]\"").out(), "[]\n");
    let over = Exec { env: vec![variable("OWN", b"call")], ..Exec::shell("echo $OWN") };
    assert_eq!(sandbox.exec(over).unwrap().out(), "call\n");
    assert_eq!(sandbox.ok("echo $OWN"), "sandbox\n");
    for name in ["A-B", "1A", "A B", "", "A=B", "é"] {
        let bad = Exec { env: vec![variable(name, b"x")], ..Exec::shell("true") };
        assert_eq!(code_of(sandbox.exec(bad)), Code::InvalidArgument, "{name:?}");
    }
    let nul = Exec { env: vec![variable("A", b"x\0y")], ..Exec::shell("true") };
    assert_eq!(code_of(sandbox.exec(nul)), Code::InvalidArgument);
}

#[test]
fn nothing_of_the_hosts_environment_is_inside() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let names = sandbox.ok("env | cut -d= -f1 | sort | tr '\\n' ' '");
    assert_eq!(names, "HOME LANG PATH PWD TERM TMPDIR USER ");
}

#[test]
fn a_nul_in_the_command_is_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    assert_eq!(code_of(sandbox.exec(Exec::shell("echo a\0b"))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&["echo", "a\0b"]))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&[]))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&[""]))), Code::InvalidArgument);
}

#[test]
fn arguments_without_a_shell_arrive_as_they_are() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let words = ["a b", "$(id)", "`id`", "it's", "\"q\"", "tab\there", "new\nline", "\\", "*", ""];
    let run = sandbox.exec(argv(&[&["printf", "<%s>"], &words[..]].concat())).unwrap();
    assert_eq!(run.out(), words.map(|word| format!("<{word}>")).concat());
}

#[test]
fn a_command_text_of_a_mebibyte_runs() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = format!("x='{}'\necho ${{#x}}; exit 3", "y".repeat(1 << 20));
    let run = sandbox.exec(Exec::shell(text)).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("1048576\n", 3), "{}", run.err());
}

#[test]
fn a_timeout_ends_the_whole_tree_and_keeps_what_was_printed() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let text = format!(
        "trap '' TERM; echo partial; echo problem >&2;
         setsid sleep {time} & (setsid sh -c 'sleep {time} & wait' &) ; sleep {time} & sleep {time}"
    );
    let exec = Exec { timeout_ms: Some(1500), ..Exec::shell(text) };
    let run = sandbox.exec(exec).unwrap();
    assert_eq!((run.out().as_str(), run.err().as_str()), ("partial\n", "problem\n"));
    assert_eq!((run.code(), run.outcome.timed_out), (124, true));
    assert!(!any_alive(&time));
    assert_eq!(sandbox.ok("echo goes on"), "goes on\n");
    let fast = Exec { timeout_ms: Some(20_000), ..Exec::shell("echo fast") };
    let run = sandbox.exec(fast).unwrap();
    assert_eq!((run.code(), run.outcome.timed_out), (0, false));
}

#[test]
fn a_timeout_asks_before_it_kills() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "trap 'echo asked; exit 7' TERM; echo up; while :; do sleep 0.01; done";
    let run = sandbox.exec(Exec { timeout_ms: Some(1500), ..Exec::shell(text) }).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("up\nasked\n", 124));
}

#[test]
fn a_timeout_of_one_command_touches_no_other() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        let text = "echo begun; until [ -e /tmp/go ]; do sleep 0.01; done; echo whole";
        let other = scope.spawn(|| sandbox.sh(text));
        let exec = Exec { timeout_ms: Some(100), ..Exec::shell("sleep 100") };
        assert_eq!(sandbox.exec(exec).unwrap().code(), 124);
        sandbox.ok("touch /tmp/go");
        assert_eq!(other.join().unwrap().out(), "begun\nwhole\n");
    });
}

#[test]
fn hanging_up_cancels_the_whole_tree() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let text = format!("echo up; setsid sleep {time} & sleep {time}");
    let call = sandbox.client.call(Request::Exec(Exec::shell(text))).unwrap();
    while !matches!(call.next().unwrap(), Event::Output(_)) {}
    eventually("both run", || processes_with(&format!("sleep\0{time}")).len() == 2);
    drop(call);
    eventually("nothing is left", || !any_alive(&time));
    let journal = sandbox.stop_and_read_journal();
    assert!(journal.contains(r#""cancelled":true"#), "{journal}");
}

#[test]
fn a_cancel_ends_it_and_reports_what_there_is() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let call = sandbox.client.call(Request::Exec(Exec::shell("echo up; sleep 100"))).unwrap();
    while !matches!(call.next().unwrap(), Event::Output(_)) {}
    call.control(Control::Cancel).unwrap();
    let run = collect(&call).unwrap();
    assert_eq!((run.outcome.cancelled, run.code()), (true, 143));
}

#[test]
fn a_running_command_can_be_signalled_by_its_caller_and_by_its_name() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "trap 'echo usr1' USR1; trap 'exit 9' USR2; echo up; while :; do sleep 0.01; done";
    let call = sandbox.client.call(Request::Exec(Exec::shell(text))).unwrap();
    let mut name = String::new();
    loop {
        match call.next().unwrap() {
            Event::Reply(ringfence_link::warden::Reply::Started { command }, _) => name = command,
            Event::Output(_) => break,
            other => panic!("{other:?}"),
        }
    }
    call.control(Control::Signal(10)).unwrap();
    while !matches!(call.next().unwrap(), Event::Output(bytes) if bytes == b"usr1\n") {}
    sandbox.client.ask(Request::Signal { command: name.clone(), signal: 12 }).unwrap();
    let run = collect(&call).unwrap();
    assert_eq!((run.code(), &run.outcome.command), (9, &name));
    let over = sandbox.client.ask(Request::Signal { command: name, signal: 12 });
    assert_eq!(code_of(over), Code::NotRunning);
}

#[test]
fn what_is_left_in_the_background_is_drained_for_a_moment_and_killed() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let text = format!("(echo late) & setsid sleep {time} & sleep {time} >/dev/null 2>&1 & exit 5");
    let run = sandbox.sh(&text);
    assert_eq!((run.out().as_str(), run.code()), ("late\n", 5));
    assert!(!any_alive(&time));
}

#[test]
fn one_who_reads_slowly_gets_everything() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let call =
        sandbox.client.call(Request::Exec(Exec::shell("yes | head -c 20M; exit 2"))).unwrap();
    let (mut bytes, mut frames) = (0, 0);
    let last = call.finish(|event| {
        if let Event::Output(chunk) = event {
            bytes += chunk.len();
            frames += 1;
            if frames % 64 == 0 {
                std::thread::yield_now();
            }
        }
    });
    assert!(last.is_ok());
    assert_eq!(bytes, 20 << 20);
}

#[test]
fn one_who_does_not_read_cannot_keep_a_timeout_from_coming() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let text = format!("sleep {time} & yes");
    let exec = Exec { timeout_ms: Some(1500), ..Exec::shell(text) };
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    eventually("it runs", || any_alive(&time));
    eventually("it is ended", || !any_alive(&time));
    assert_eq!(collect(&call).unwrap().code(), 124);
}

#[test]
fn twenty_at_once_do_not_mix() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for n in 0..20 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let text = format!(
                    "for i in $(seq 1 300); do echo {n}-$i; echo e{n}-$i >&2; done; cat; exit {n}"
                );
                let input = format!("input of {n}");
                let run = sandbox.exec_with_input(Exec::shell(text), input.as_bytes()).unwrap();
                let lines = |mark: &str| -> String {
                    (1..=300).map(|i| format!("{mark}{n}-{i}\n")).collect()
                };
                assert_eq!(run.out(), lines("") + &input);
                assert_eq!(run.err(), lines("e"));
                assert_eq!(run.code(), n);
            });
        }
    });
}

#[test]
fn denied_accesses_are_listed_with_their_rule_at_the_command_that_made_them() {
    require_sandbox!();
    let maker = Maker::new().file("secrets/key", "x").file("src/main.rs", "fn").file("free", "y");
    let sandbox = maker.rule("none:/secrets/**@100").rule("read:/src/**@50").start();
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
    require_sandbox!();
    let sandbox = Maker::new().file("old", "1").file("gone", "2").file("same", "3").start();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
    let burn = "python3 -c \"import time; b = bytearray(50_000_000); e = time.process_time() + 0.2\nwhile time.process_time() < e: pass\"";
    let outcome = sandbox.sh(burn).outcome;
    assert!(outcome.cpu_micros >= 200_000, "{outcome:?}");
    assert!(outcome.duration_micros >= 200_000, "{outcome:?}");
    assert!(outcome.peak_memory >= 50_000_000, "{outcome:?}");
    assert!(!outcome.command.is_empty());
}

#[test]
fn a_sandbox_that_ends_in_the_middle_is_an_error_and_not_a_result() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let call = sandbox.client.call(Request::Exec(Exec::shell("echo up; sleep 100"))).unwrap();
    while !matches!(call.next().unwrap(), Event::Output(_)) {}
    let deadline = Instant::now() + Duration::from_secs(20);
    sandbox.stop();
    match collect(&call) {
        Err(ClientError::Lost) => {}
        Ok(run) => assert_ne!(run.code(), 0),
        other => panic!("{other:?}"),
    }
    assert!(Instant::now() < deadline);
}
