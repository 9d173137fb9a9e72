//! Waiting for a process to get somewhere.

use ringfence_link::client::ClientError;
use ringfence_link::warden::{Code, ProcessStatus, Reply, Request, Until};

use super::{http, line_of};
use crate::support::{Sandbox, code_of, eventually, gate, sandbox};

fn text(text: &str) -> Until {
    Until::Text(text.into())
}

fn pattern(pattern: &str) -> Until {
    Until::Pattern(pattern.into())
}

/// What never comes: nobody prints it, and nobody listens there.
fn never() -> [Until; 4] {
    let port = |http| Until::Port { port: 9, http };
    [text("never"), pattern("ne+ver"), port(None), port(http("/", 200, 399))]
}

/// What comes of a wait that has begun when the gate is opened.
fn wait_at_gate(sandbox: &Sandbox, id: &str, until: &Until) -> Result<Reply, ClientError> {
    let calls = || sandbox.threads("call");
    eventually("earlier calls end", || calls() == 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sandbox.wait(id, until.clone()));
        eventually("it waits", || calls() == 1);
        sandbox.open_gate("go");
        waiting.join().unwrap()
    })
}

#[test]
fn a_text_or_pattern_is_found_in_either_stream_before_or_after_it_is_printed() {
    let sandbox = sandbox!();
    // A line that has begun is looked at after a while: it comes in parts of which none but the
    // last can be found.
    let text = format!(
        "echo 'on stdout: 1'; echo 'on stderr: 2' >&2; {}; printf 'listening on ';
         printf 'half' >&2; sleep 0.02; printf 'port '; printf '8080\\n'; sleep 1000",
        gate("go")
    );
    let process = sandbox.start(&text);
    assert_eq!(sandbox.line(&process.id, "on stderr"), "on stderr: 2");
    // Which of two streams is read first is not said.
    let found = sandbox.wait(&process.id, pattern(r"^on \w+: 1$"));
    assert_eq!(line_of(found), "on stdout: 1");
    let found = wait_at_gate(&sandbox, &process.id, &pattern(r"listening .* (\d+)$"));
    assert_eq!(line_of(found), "listening on port 8080");
    assert_eq!(sandbox.line(&process.id, "ing on port"), "listening on port 8080");
}

#[test]
fn a_wait_ends_at_its_deadline_and_leaves_the_process_alone() {
    let sandbox = sandbox!();
    let process = sandbox.start("yes");
    for until in [Until::Exit].into_iter().chain(never()) {
        let name = format!("{until:?}");
        assert_eq!(code_of(sandbox.wait_for(&process.id, until, 100)), Code::TimedOut, "{name}");
    }
    assert_eq!(sandbox.status(&process.id), ProcessStatus::Running);
}

#[test]
fn a_wait_fails_at_once_with_the_code_if_the_process_ends_first() {
    let sandbox = sandbox!();
    for until in never() {
        let process = sandbox.start(&format!("{}; echo x; exit 41", gate("go")));
        match wait_at_gate(&sandbox, &process.id, &until) {
            Err(ClientError::Refused(failure)) => {
                assert_eq!(failure.code, Code::ExitedFirst);
                assert!(failure.message.contains("41"), "{failure}");
            }
            other => panic!("{other:?}"),
        }
        sandbox.ok("rm /tmp/go");
    }
}

#[test]
fn a_bad_wait_is_refused() {
    let sandbox = sandbox!();
    let process = sandbox.start("sleep 1000");
    let untils = [
        pattern("("),
        pattern("a{1000000}{1000000}"),
        Until::Port { port: 0, http: None },
        Until::Port { port: 80, http: http("no-slash", 200, 399) },
        Until::Port { port: 80, http: http("/x\r\nHost: y", 200, 399) },
        Until::Port { port: 80, http: http("/", 400, 300) },
    ];
    for until in untils {
        let name = format!("{until:?}");
        assert_eq!(code_of(sandbox.wait(&process.id, until)), Code::InvalidArgument, "{name}");
    }
}

#[test]
fn a_waiter_that_hangs_up_ends_its_wait() {
    let sandbox = sandbox!();
    let process = sandbox.start("sleep 1000");
    let calls = || sandbox.threads("call");
    eventually("earlier calls end", || calls() == 0);
    for until in [Until::Exit, text("x"), Until::Port { port: 9, http: None }] {
        let request = Request::WaitProcess { id: process.id.clone(), until, timeout_ms: None };
        let call = sandbox.client.call(request).unwrap();
        eventually("it waits", || calls() == 1);
        drop(call);
        eventually("it ends", || calls() == 0);
    }
}
