//! Streams of commands end well whatever the exit code, which is in the trailing metadata.

use ringfence_wire::v1;
use ringfence_wire::v1::exec_input::Content;
use tonic::{Code, Streaming};

use crate::support::{Server, refused, require_sandbox, within};

/// What was printed, the exit code in the last message, and the one in the trailers.
async fn followed(mut stream: Streaming<v1::ExecOutput>) -> (String, i32, String) {
    let (mut printed, mut code) = (Vec::new(), None);
    while let Some(message) = within(stream.message()).await.unwrap() {
        printed.extend_from_slice(&message.data);
        code = message.result.map(|result| result.exit_code);
    }
    let trailers = stream.trailers().await.unwrap().unwrap();
    let noted = trailers.get("ringfence-exit-code").unwrap().to_str().unwrap().to_owned();
    (String::from_utf8(printed).unwrap(), code.unwrap(), noted)
}

#[tokio::test]
async fn the_exit_code_of_each_kind_of_stream_is_in_its_trailers() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let exec = |command: &str| v1::ExecRequest {
        sandbox_id: sandbox.id.clone(),
        command: command.into(),
        ..Default::default()
    };
    let (asked, input) = (exec("echo hi; sleep 0.2; echo late; exit 7"), exec("cat; kill -9 $$"));
    let stream = sandbox.sandboxes.exec_stream(asked).await.unwrap().into_inner();
    assert_eq!(followed(stream).await, ("hi\nlate\n".into(), 7, "7".into()));
    let asked = v1::SessionExecRequest {
        sandbox_id: sandbox.id.clone(),
        session_id: "default".into(),
        command: "sleep 0.2; echo state; (exit 3)".into(),
        ..Default::default()
    };
    let stream = sandbox.sandboxes.session_exec_stream(asked).await.unwrap().into_inner();
    assert_eq!(followed(stream).await, ("state\n".into(), 3, "3".into()));
    let said = [
        Content::Command(input),
        Content::Stdin(b"typed".to_vec().into()),
        Content::EndOfStdin(true),
    ];
    let said = said.map(|content| v1::ExecInput { content: Some(content) });
    let stream = sandbox.sandboxes.exec_attached(tokio_stream::iter(said)).await.unwrap();
    assert_eq!(followed(stream.into_inner()).await, ("typed".into(), 137, "137".into()));
}

#[tokio::test]
async fn a_stream_that_breaks_off_has_no_exit_code() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let asked = v1::ExecRequest {
        sandbox_id: sandbox.id.clone(),
        command: "echo up; sleep 1000".into(),
        ..Default::default()
    };
    let mut stream = sandbox.sandboxes.exec_stream(asked).await.unwrap().into_inner();
    assert_eq!(&within(stream.message()).await.unwrap().unwrap().data[..], b"up\n");
    sandbox.kill_warden();
    let end = within(stream.message()).await;
    let status = end.clone().unwrap_err();
    assert!(status.metadata().get("ringfence-exit-code").is_none());
    refused(end, Code::FailedPrecondition, "SANDBOX_NOT_RUNNING");
    sandbox.is_lost().await;
}
