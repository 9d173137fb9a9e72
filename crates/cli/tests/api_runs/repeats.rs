//! The same request twice does nothing twice.

use ringfence_wire::v1;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::upload_chunk::{Content, Metadata};
use tonic::{Code, Status};

use crate::support::{Sandbox, Server, refused, require_sandbox, within};

fn exec(sandbox: &Sandbox, id: &str, command: &str) -> v1::ExecRequest {
    v1::ExecRequest {
        sandbox_id: sandbox.id.clone(),
        command: command.into(),
        env: (0..20).map(|n| (format!("V{n}"), "x".into())).collect(),
        request_id: id.into(),
        ..Default::default()
    }
}

fn create(name: &str, id: &str) -> v1::CreateCodebaseRequest {
    v1::CreateCodebaseRequest {
        name: name.into(),
        owner_id: "o".into(),
        request_id: id.into(),
        ..Default::default()
    }
}

async fn upload(
    server: &Server,
    codebase: &str,
    id: &str,
    bytes: &'static [u8],
) -> Result<v1::UploadResult, Status> {
    let metadata = Metadata {
        codebase_id: codebase.into(),
        file_path: "file".into(),
        request_id: id.into(),
        ..Default::default()
    };
    let pieces = [Content::Metadata(metadata), Content::Data(bytes.into())];
    let chunks = pieces.map(|content| v1::UploadChunk { content: Some(content) });
    let mut codebases = CodebaseServiceClient::new(server.tcp.clone());
    let done = within(codebases.upload_files(tokio_stream::iter(chunks))).await;
    done.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_command_is_run_once_and_answered_twice_also_by_the_next_server() {
    require_sandbox!();
    let mut server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let command = "echo run >> /tmp/runs; wc -l < /tmp/runs";
    let first = sandbox.sandboxes.exec(exec(&sandbox, "r", command)).await.unwrap().into_inner();
    let again = sandbox.sandboxes.exec(exec(&sandbox, "r", command)).await.unwrap().into_inner();
    assert_eq!(first, again);
    server.kill_and_restart().await;
    let mut sandbox = Sandbox::at(&server.tcp, &sandbox.id);
    let later = sandbox.sandboxes.exec(exec(&sandbox, "r", command)).await.unwrap().into_inner();
    assert_eq!(first, later);
    assert_eq!(sandbox.ok("cat /tmp/runs").await, "run\n");
}

#[tokio::test]
async fn ten_at_once_are_one_and_all_get_its_answer() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let command = "echo run >> /tmp/runs; sleep 0.3; wc -l < /tmp/runs";
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (mut sandboxes, asked) = (sandbox.sandboxes.clone(), exec(&sandbox, "r", command));
        calls.spawn(async move { within(sandboxes.exec(asked)).await.unwrap().into_inner() });
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(sandbox.ok("cat /tmp/runs").await, "run\n");
}

#[tokio::test]
async fn sandboxes_are_made_once_by_ten_at_once() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let codebase = sandbox.sandboxes.list_sandboxes(v1::ListSandboxesRequest::default()).await;
    let codebase_id = codebase.unwrap().into_inner().sandboxes.remove(0).codebase_id;
    let wanted = v1::CreateSandboxRequest {
        codebase_id,
        start: true,
        request_id: "made".into(),
        ..Default::default()
    };
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (mut sandboxes, wanted) = (sandbox.sandboxes.clone(), wanted.clone());
        calls.spawn(async move { sandboxes.create_sandbox(wanted).await.unwrap().into_inner().id });
    }
    let ids = within(calls.join_all()).await;
    assert!(ids.iter().all(|id| *id == ids[0]));
    let listed = sandbox.sandboxes.list_sandboxes(v1::ListSandboxesRequest::default()).await;
    assert_eq!(listed.unwrap().into_inner().sandboxes.len(), 2);
}

#[tokio::test]
async fn an_id_is_for_one_request_only() {
    let server = Server::start().await;
    let mut codebases = CodebaseServiceClient::new(server.tcp.clone());
    let made = codebases.create_codebase(create("a", "r")).await.unwrap().into_inner();
    let again = codebases.create_codebase(create("a", "r")).await.unwrap().into_inner();
    assert_eq!(made, again);
    let other = codebases.create_codebase(create("b", "r")).await;
    refused(other, Code::InvalidArgument, "INVALID_ARGUMENT");
    let entry = v1::ManifestEntry { path: "d".into(), is_dir: true, ..Default::default() };
    let commit = |id: &str| v1::CommitUploadRequest {
        codebase_id: made.id.clone(),
        entries: vec![entry.clone()],
        request_id: id.into(),
    };
    let method = codebases.commit_upload(commit("r")).await;
    refused(method, Code::InvalidArgument, "INVALID_ARGUMENT");
    let one = codebases.commit_upload(commit("c")).await.unwrap().into_inner();
    let two = codebases.commit_upload(commit("c")).await.unwrap().into_inner();
    assert_eq!(one, two);
}

#[tokio::test]
async fn an_upload_is_done_once_and_other_bytes_are_noticed() {
    let server = Server::start().await;
    let mut codebases = CodebaseServiceClient::new(server.tcp.clone());
    let id = codebases.create_codebase(create("a", "")).await.unwrap().into_inner().id;
    let first = upload(&server, &id, "u", b"bytes").await.unwrap();
    assert_eq!(upload(&server, &id, "u", b"bytes").await.unwrap(), first);
    let other = upload(&server, &id, "u", b"other").await;
    refused(other, Code::InvalidArgument, "INVALID_ARGUMENT");
    upload(&server, &id, "", b"newer").await.unwrap();
    assert_eq!(upload(&server, &id, "u", b"bytes").await.unwrap(), first);
    let asked =
        v1::DownloadFileRequest { codebase_id: id, file_path: "file".into(), ..Default::default() };
    let mut file = codebases.download_file(asked).await.unwrap().into_inner();
    assert_eq!(&file.message().await.unwrap().unwrap().data[..], b"newer");
}

#[tokio::test]
async fn an_error_is_not_remembered() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let command = "echo run >> /tmp/runs";
    sandbox.stop().await;
    let failed = sandbox.sandboxes.exec(exec(&sandbox, "r", command)).await;
    refused(failed, Code::FailedPrecondition, "SANDBOX_NOT_RUNNING");
    sandbox.start_again().await;
    let done = sandbox.sandboxes.exec(exec(&sandbox, "r", command)).await.unwrap().into_inner();
    assert_eq!(done.exit_code, 0);
    assert_eq!(sandbox.ok("cat /tmp/runs").await, "run\n");
}

#[tokio::test]
async fn a_caller_who_vanishes_cancels_its_command_and_leaves_the_id_to_the_next() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let command = "echo run >> /tmp/runs; [ $(wc -l < /tmp/runs) -gt 1 ] || sleep 1000";
    let (mut sandboxes, asked) = (sandbox.sandboxes.clone(), exec(&sandbox, "r", command));
    let first = tokio::spawn(async move { sandboxes.exec(asked).await });
    sandbox.ok("until [ -s /tmp/runs ]; do sleep 0.01; done").await;
    first.abort();
    let mut sandboxes = sandbox.sandboxes.clone();
    let second = within(sandboxes.exec(exec(&sandbox, "r", command))).await.unwrap();
    assert_eq!(second.into_inner().exit_code, 0);
    assert_eq!(sandbox.ok("cat /tmp/runs").await, "run\nrun\n");
}
