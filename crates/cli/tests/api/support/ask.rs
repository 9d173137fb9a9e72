//! Short ways to ask.

use std::collections::HashMap;
use std::path::Path;

use ringfence_wire::v1;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::Server;

/// The gRPC code, the stable code and the details of a refusal.
pub(crate) fn said<T: std::fmt::Debug>(
    answer: Result<T, Status>,
) -> (Code, String, HashMap<String, String>) {
    let status = answer.unwrap_err();
    let details = status.get_details_error_info().unwrap();
    assert!(!status.message().contains("/tmp/"), "a path of the host: {}", status.message());
    (status.code(), details.reason, details.metadata)
}

pub(crate) fn rule(permission: v1::Permission, pattern: &str) -> v1::PermissionRule {
    let (permission, pattern) = (permission.into(), pattern.to_owned());
    v1::PermissionRule { pattern, permission, priority: 10, ..Default::default() }
}

impl Server {
    /// A stored codebase with these files.
    pub(crate) async fn codebase(&self, files: &[(&str, &str)]) -> String {
        let wanted = v1::CreateCodebaseRequest {
            name: "test".into(),
            owner_id: "me".into(),
            ..Default::default()
        };
        let id = self.codebases().create_codebase(wanted).await.unwrap().into_inner().id;
        for (path, content) in files {
            self.upload(&id, path, content).await.unwrap();
        }
        id
    }

    /// One that is a directory of the host.
    pub(crate) async fn in_place(&self, directory: &Path) -> String {
        let wanted = v1::CreateCodebaseRequest {
            name: "test".into(),
            owner_id: "me".into(),
            local_path: directory.to_str().unwrap().into(),
            ..Default::default()
        };
        self.codebases().create_codebase(wanted).await.unwrap().into_inner().id
    }

    /// A sandbox in which everything is allowed that `rules` do not forbid. It is not started.
    pub(crate) async fn sandbox(&self, codebase: &str, rules: &[v1::PermissionRule]) -> String {
        let wanted = v1::CreateSandboxRequest {
            codebase_id: codebase.into(),
            preset: "full-access".into(),
            permissions: rules.to_vec(),
            ..Default::default()
        };
        self.sandboxes().create_sandbox(wanted).await.unwrap().into_inner().id
    }

    pub(crate) async fn start_sandbox(&self, id: &str) {
        let start = v1::StartSandboxRequest { sandbox_id: id.into() };
        self.sandboxes().start_sandbox(start).await.unwrap();
    }

    pub(crate) async fn stop_sandbox(&self, id: &str) {
        let stop = v1::StopSandboxRequest { sandbox_id: id.into() };
        self.sandboxes().stop_sandbox(stop).await.unwrap();
    }

    pub(crate) async fn destroy_sandbox(&self, id: &str) {
        let destroy = v1::DestroySandboxRequest { sandbox_id: id.into(), ..Default::default() };
        self.sandboxes().destroy_sandbox(destroy).await.unwrap();
    }

    pub(crate) async fn running(&self, codebase: &str, rules: &[v1::PermissionRule]) -> String {
        let id = self.sandbox(codebase, rules).await;
        self.start_sandbox(&id).await;
        id
    }

    /// What a command prints. It must succeed.
    pub(crate) async fn exec(&self, id: &str, command: &str) -> String {
        let wanted = v1::ExecRequest {
            sandbox_id: id.into(),
            command: command.into(),
            ..Default::default()
        };
        let result = self.sandboxes().exec(wanted).await.unwrap().into_inner();
        assert_eq!(result.exit_code, 0, "{command}: {}", result.stderr);
        result.stdout
    }

    pub(crate) async fn upload(
        &self,
        codebase: &str,
        path: &str,
        content: &str,
    ) -> Result<v1::UploadResult, Status> {
        use v1::upload_chunk::{Content, Metadata};
        let metadata =
            Metadata { codebase_id: codebase.into(), file_path: path.into(), ..Default::default() };
        let pieces = [Content::Metadata(metadata), Content::Data(content.to_owned().into())];
        let chunks = pieces.map(|piece| v1::UploadChunk { content: Some(piece) });
        let sent = self.codebases().upload_files(tokio_stream::iter(chunks)).await;
        sent.map(tonic::Response::into_inner)
    }

    pub(crate) async fn download(&self, codebase: &str, path: &str) -> Result<String, Status> {
        let wanted = v1::DownloadFileRequest {
            codebase_id: codebase.into(),
            file_path: path.into(),
            ..Default::default()
        };
        text(self.codebases().download_file(wanted).await?.into_inner()).await
    }

    /// The paths of a listing.
    pub(crate) async fn listed(&self, codebase: &str, path: &str) -> Result<Vec<String>, Status> {
        let wanted = v1::ListFilesRequest {
            codebase_id: codebase.into(),
            path: path.into(),
            recursive: true,
        };
        let found = self.codebases().list_files(wanted).await?.into_inner().files;
        Ok(found.into_iter().map(|file| file.path).collect())
    }

    pub(crate) async fn read(&self, id: &str, path: &str) -> Result<String, Status> {
        self.read_as(id, path, v1::View::Owner).await
    }

    pub(crate) async fn read_as(
        &self,
        id: &str,
        path: &str,
        view: v1::View,
    ) -> Result<String, Status> {
        let wanted = v1::ReadFileRequest {
            sandbox_id: id.into(),
            path: path.into(),
            view: view.into(),
            ..Default::default()
        };
        text(self.workspaces().read_file(wanted).await?.into_inner()).await
    }

    pub(crate) async fn write(
        &self,
        id: &str,
        path: &str,
        content: &str,
    ) -> Result<v1::FileInfo, Status> {
        self.write_as(id, path, content, v1::View::Owner).await
    }

    pub(crate) async fn write_as(
        &self,
        id: &str,
        path: &str,
        content: &str,
        view: v1::View,
    ) -> Result<v1::FileInfo, Status> {
        use v1::write_file_chunk::{Begin, Content};
        let begin = Begin {
            sandbox_id: id.into(),
            path: path.into(),
            view: view.into(),
            parents: true,
            ..Default::default()
        };
        let pieces = [Content::Begin(begin), Content::Data(content.to_owned().into())];
        let chunks = pieces.map(|piece| v1::WriteFileChunk { content: Some(piece) });
        let written = self.workspaces().write_file(tokio_stream::iter(chunks)).await;
        written.map(tonic::Response::into_inner)
    }

    /// `kind path` of every change.
    pub(crate) async fn changes(&self, id: &str) -> Vec<String> {
        let wanted = v1::ChangesRequest { sandbox_id: id.into() };
        let found = self.workspaces().changes(wanted).await.unwrap().into_inner().changes;
        found.into_iter().map(|change| format!("{} {}", change.kind, change.path)).collect()
    }

    pub(crate) async fn apply(
        &self,
        id: &str,
        force: bool,
        dry_run: bool,
    ) -> Result<v1::ApplyResponse, Status> {
        let wanted = v1::ApplyRequest { sandbox_id: id.into(), force, dry_run };
        self.workspaces().apply(wanted).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn snapshot(&self, id: &str) -> String {
        let wanted = v1::CreateSnapshotRequest { sandbox_id: id.into(), name: "now".into() };
        self.workspaces().create_snapshot(wanted).await.unwrap().into_inner().id
    }

    pub(crate) async fn delete_snapshot(&self, snapshot: &str) -> Result<(), Status> {
        let wanted = v1::DeleteSnapshotRequest { snapshot_id: snapshot.into() };
        self.workspaces().delete_snapshot(wanted).await.map(drop)
    }

    pub(crate) async fn restore(&self, id: &str, snapshot: &str) -> Result<v1::Sandbox, Status> {
        let wanted =
            v1::RestoreSnapshotRequest { sandbox_id: id.into(), snapshot_id: snapshot.into() };
        self.workspaces().restore_snapshot(wanted).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn fork(&self, id: &str) -> String {
        let wanted = v1::ForkSandboxRequest { sandbox_id: id.into(), ..Default::default() };
        self.workspaces().fork_sandbox(wanted).await.unwrap().into_inner().id
    }
}

async fn text(mut chunks: tonic::Streaming<v1::FileChunk>) -> Result<String, Status> {
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        bytes.extend_from_slice(&chunk.data);
    }
    Ok(String::from_utf8(bytes).unwrap())
}
