//! What a command reads and prints.

use ringfence_link::client::Event;
use ringfence_link::warden::{Exec, Reply, Request};

use crate::support::{any_alive, collect, eventually, first_output, gate, sandbox, unique_sleep};

#[test]
fn streams_are_apart_and_the_exit_code_is_the_commands() {
    let sandbox = sandbox!();
    let run = sandbox.sh("echo out; echo err >&2; exit 42");
    assert_eq!((run.out().as_str(), run.err().as_str(), run.code()), ("out\n", "err\n", 42));
    assert_eq!((run.outcome.stdout_bytes, run.outcome.stderr_bytes), (4, 4));
    assert_eq!(sandbox.sh("true").code(), 0);
    assert_eq!(sandbox.sh("false").code(), 1);
    assert_eq!(sandbox.sh("").code(), 0);
}

#[test]
fn bytes_are_exact() {
    let sandbox = sandbox!();
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
    let sandbox = sandbox!();
    let exec = Exec::shell(format!("printf 'no newline'; {}", gate("go")));
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    assert_eq!(first_output(&call), b"no newline");
    sandbox.open_gate("go");
    assert_eq!(collect(&call).unwrap().code(), 0);
}

#[test]
fn input_arrives_exactly_and_then_ends() {
    let sandbox = sandbox!();
    let input = b"one\ntwo\0\xff no end";
    let run = sandbox.exec_with_input(Exec::shell("cat; echo; echo after"), input).unwrap();
    assert_eq!(run.stdout, [&input[..], b"\nafter\n"].concat());
    let empty = sandbox.exec_with_input(Exec::shell("wc -c"), b"").unwrap();
    assert_eq!(empty.out(), "0\n");
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    let sandbox = sandbox!();
    let run =
        sandbox.exec_with_input(Exec::shell("exec <&-; echo done"), &[b'x'; 4 << 20]).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("done\n", 0));
}

#[test]
fn without_input_there_is_its_end() {
    let sandbox = sandbox!();
    assert_eq!(sandbox.ok("cat; read x || echo ended"), "ended\n");
    assert_eq!(sandbox.ok("readlink /proc/self/fd/0"), "/dev/null\n");
}

#[test]
fn one_who_reads_slowly_gets_everything() {
    let sandbox = sandbox!();
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
fn one_who_pauses_gets_everything_also_after_the_command_has_ended() {
    let (sandbox, mark) = (sandbox!(), unique_sleep());
    // Less than the pipes hold: the command does not wait for its reader.
    let text = format!(": {mark}; seq 1 100000; seq 1 100000 >&2");
    let call = sandbox.client.call(Request::Exec(Exec::shell(text))).unwrap();
    assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Started { .. }, _)));
    eventually("the command has ended", || !any_alive(&mark));
    // Longer than anything is waited for at the end of a command.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let run = collect(&call).unwrap();
    let all: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert!(run.out() == all && run.err() == all, "{:?}", run.outcome);
}

#[test]
fn twenty_at_once_do_not_mix() {
    let sandbox = sandbox!();
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
