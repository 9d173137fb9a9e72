//! Waiting for a process to get somewhere.

use ringfence_wire::v1::wait_process_request::{Port, Until};
use tonic::Code;

use crate::support::{Server, gate, refused, require_sandbox, seconds};

#[tokio::test]
async fn a_text_and_a_pattern_are_found_with_their_line() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("echo listening on port 8080; sleep 1000").await;
    let found = sandbox.wait(&process.id, Until::Text("on port".into()), seconds(60)).await;
    assert_eq!(&found.unwrap().line[..], b"listening on port 8080");
    let pattern = Until::Pattern("port [0-9]+$".into());
    let found = sandbox.wait(&process.id, pattern, seconds(60)).await.unwrap();
    assert_eq!(&found.line[..], b"listening on port 8080");
    assert_eq!(found.process.unwrap().id, process.id);
    let bad = sandbox.wait(&process.id, Until::Pattern("(".into()), None).await;
    refused(bad, Code::InvalidArgument, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_port_is_waited_for_also_by_what_it_answers() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("exec python3 -m http.server 8123").await;
    let port = |path: &str| Port { port: 8123, http_path: path.into(), ..Default::default() };
    for path in ["", "/"] {
        let found = sandbox.wait(&process.id, Until::Port(port(path)), seconds(60)).await;
        assert_eq!(found.unwrap().process.unwrap().id, process.id);
    }
    let missing = Until::Port(port("/nothing-there"));
    let late = sandbox.wait(&process.id, missing, seconds(1)).await;
    refused(late, Code::DeadlineExceeded, "WAIT_TIMEOUT");
    let answers = Port { status_from: 404, status_to: 404, ..port("/nothing-there") };
    sandbox.wait(&process.id, Until::Port(answers), seconds(60)).await.unwrap();
    let too_big = Until::Port(Port { port: 65_536, ..Default::default() });
    let result = sandbox.wait(&process.id, too_big, None).await;
    refused(result, Code::InvalidArgument, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn the_end_is_waited_for() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process(&format!("{}; exit 5", gate("go"))).await;
    let (waiter, id) = (sandbox.clone(), process.id.clone());
    let waiting = tokio::spawn(async move { waiter.wait(&id, Until::Exit(true), None).await });
    sandbox.open_gate("go").await;
    let ended = waiting.await.unwrap().unwrap().process.unwrap();
    assert_eq!(ended.state.unwrap().exit_code, 5);
}

#[tokio::test]
async fn a_wait_fails_at_once_when_the_process_ends_first() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("echo something else; exit 4").await;
    let port = Port { port: 8124, ..Default::default() };
    for until in [Until::Text("ready".into()), Until::Pattern("^x".into()), Until::Port(port)] {
        let failed = sandbox.wait(&process.id, until, seconds(3600)).await;
        refused(failed, Code::FailedPrecondition, "PROCESS_EXITED");
    }
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("sleep 1000").await;
    let port = Port { port: 8125, ..Default::default() };
    for until in [Until::Text("x".into()), Until::Exit(true), Until::Port(port)] {
        let late = sandbox.wait(&process.id, until, seconds(1)).await;
        refused(late, Code::DeadlineExceeded, "WAIT_TIMEOUT");
    }
}
