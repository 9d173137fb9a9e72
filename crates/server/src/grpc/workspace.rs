//! What is in a sandbox's workspace, what was changed in it, and what becomes of the changes.

use std::collections::BTreeMap;

use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::apply::{ApplyHow, Outcome};
use ringfence_engine::sandboxes::files::parse_path;
use ringfence_engine::store::{Page, Snapshot, SnapshotFilter};
use ringfence_link::files::{ChangeKind, LayerChange};
use ringfence_policy::{Explanation, WorkspacePath};
use ringfence_wire::v1;
use ringfence_wire::v1::workspace_service_server::WorkspaceService;
use tonic::{Request, Response, Streaming};

use super::Services;
use super::files::{FileChunks, at, info, listing, range, send};
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;
use crate::repeats::{Asked, to_the_end};
use crate::status::status_of;

fn change(change: LayerChange) -> v1::FileChange {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (kind, from) = match &change.kind {
        ChangeKind::Deleted => ("deleted", String::new()),
        ChangeKind::Renamed { from } => ("renamed", text(from)),
        ChangeKind::Added => ("added", String::new()),
        ChangeKind::Modified => ("modified", String::new()),
        ChangeKind::Mode { .. } => ("mode", String::new()),
    };
    v1::FileChange { kind: kind.into(), path: text(&change.path), from }
}

fn changes(found: Vec<LayerChange>) -> Vec<v1::FileChange> {
    found.into_iter().map(change).collect()
}

fn applied(outcome: Outcome) -> v1::ApplyResponse {
    let path = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
    v1::ApplyResponse {
        applied: changes(outcome.changes),
        conflicts: outcome.conflicts.into_iter().map(|conflict| path(conflict.path)).collect(),
        refused: changes(outcome.refused),
        written: outcome.written,
    }
}

fn snapshot(snapshot: Snapshot) -> v1::Snapshot {
    v1::Snapshot {
        id: snapshot.id,
        sandbox_id: snapshot.sandbox_id,
        codebase_id: snapshot.codebase_id,
        name: snapshot.name,
        created_at: Some(convert::time(snapshot.created_ms)),
    }
}

fn explanation(explained: Explanation) -> v1::Explanation {
    v1::Explanation {
        // As it is, not as it is shown.
        path: String::from_utf8_lossy(explained.path.as_bytes()).into_owned(),
        permission: convert::permission(explained.level).into(),
        rule: explained.winner.as_ref().map(|winner| convert::wire_rule(&winner.rule)),
        reason: explained.to_string(),
    }
}

/// Who asks, and for which sandbox.
fn who<T>(request: &Request<T>, sandbox: &str) -> Result<(String, String)> {
    Ok((caller(request)?.account, required("sandbox_id", sandbox)?.to_owned()))
}

impl Services {
    async fn list_directory(
        &self,
        request: Request<v1::ListDirectoryRequest>,
    ) -> Result<v1::ListFilesResponse> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, &asked.path, asked.view)?;
        let entries = self.sandboxes.list_directory(&at, asked.recursive).await?;
        Ok(listing(entries, &at.path))
    }

    async fn read_file(&self, request: Request<v1::ReadFileRequest>) -> Result<FileChunks> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, &asked.path, asked.view)?;
        let range = range(asked.offset, asked.length)?;
        Ok(send(self.sandboxes.read_file(&at, range).await?))
    }

    async fn file_info(
        &self,
        request: Request<v1::FileRequest>,
        make: bool,
    ) -> Result<v1::FileInfo> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, &asked.path, asked.view)?;
        let entry = match make {
            true => self.sandboxes.make_directory(&at).await?,
            false => self.sandboxes.stat_file(&at).await?,
        };
        Ok(info(entry, &WorkspacePath::root()))
    }

    async fn make_symlink(&self, request: Request<v1::MakeSymlinkRequest>) -> Result<v1::FileInfo> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, required("path", &asked.path)?, asked.view)?;
        let entry = self.sandboxes.make_symlink(&at, &asked.target, asked.parents).await?;
        Ok(info(entry, &WorkspacePath::root()))
    }

    async fn remove_file(&self, request: Request<v1::RemoveFileRequest>) -> Result<v1::Empty> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, required("path", &asked.path)?, asked.view)?;
        self.sandboxes.remove_file(&at, asked.recursive).await?;
        Ok(v1::Empty {})
    }

    async fn rename_file(&self, request: Request<v1::RenameFileRequest>) -> Result<v1::FileInfo> {
        let asked = request.get_ref();
        let at = at(&request, &asked.sandbox_id, required("from", &asked.from)?, asked.view)?;
        let to = parse_path(required("to", &asked.to)?)?;
        let entry = self.sandboxes.rename_file(&at, to).await?;
        Ok(info(entry, &WorkspacePath::root()))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<v1::ApplyResponse> {
        let asked = request.get_ref();
        let (account, id) = who(&request, &asked.sandbox_id)?;
        let how = ApplyHow { force: asked.force, dry_run: asked.dry_run };
        self.sandboxes.apply(&account, &id, how).await.map(applied)
    }

    fn list_snapshots(
        &self,
        request: Request<v1::ListSnapshotsRequest>,
    ) -> Result<v1::ListSnapshotsResponse> {
        let account = caller(&request)?.account;
        let asked = request.into_inner();
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let filter = SnapshotFilter {
            codebase_id: some(asked.codebase_id),
            sandbox_id: some(asked.sandbox_id),
        };
        let listed = self.sandboxes.list_snapshots(&account, &filter, &Page::default())?;
        let snapshots = listed.items.into_iter().map(snapshot).collect();
        Ok(v1::ListSnapshotsResponse { snapshots })
    }

    async fn restore_snapshot(
        &self,
        request: Request<v1::RestoreSnapshotRequest>,
    ) -> Result<v1::Sandbox> {
        let asked = request.get_ref();
        let (account, id) = who(&request, &asked.sandbox_id)?;
        let snapshot = required("snapshot_id", &asked.snapshot_id)?;
        let record = self.sandboxes.restore_snapshot(&account, &id, snapshot).await?;
        Ok(self.shown(record))
    }

    async fn fork_sandbox(&self, request: Request<v1::ForkSandboxRequest>) -> Result<v1::Sandbox> {
        let (account, id) = who(&request, &request.get_ref().sandbox_id)?;
        let labels: BTreeMap<_, _> = request.into_inner().labels.into_iter().collect();
        Ok(self.shown(self.sandboxes.fork(&account, &id, labels).await?))
    }

    async fn set_policy(
        &self,
        request: Request<v1::SetPolicyRequest>,
    ) -> Result<v1::PolicyResponse> {
        let asked = request.get_ref();
        let (account, id) = who(&request, &asked.sandbox_id)?;
        let rules = convert::rules(&asked.preset, &asked.permissions)?;
        let record = self.sandboxes.set_rules(&account, &id, rules).await?;
        Ok(v1::PolicyResponse {
            permissions: record.rules.iter().map(convert::wire_rule).collect(),
        })
    }

    fn explain(&self, request: &Request<v1::ExplainRequest>) -> Result<v1::ExplainResponse> {
        let asked = request.get_ref();
        let (account, id) = who(request, &asked.sandbox_id)?;
        if asked.paths.is_empty() {
            return Err(Problem::invalid("paths are required"));
        }
        let paths = asked.paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>>>()?;
        let explained = self.sandboxes.explain(&account, &id, &paths)?;
        let explanations = explained.into_iter().map(explanation).collect();
        Ok(v1::ExplainResponse { explanations })
    }
}

#[tonic::async_trait]
impl WorkspaceService for Services {
    type ReadFileStream = FileChunks;

    async fn read_file(&self, request: Request<v1::ReadFileRequest>) -> Answer<FileChunks> {
        answer(Services::read_file(self, request).await)
    }

    async fn write_file(
        &self,
        request: Request<Streaming<v1::WriteFileChunk>>,
    ) -> Answer<v1::FileInfo> {
        Services::write_file(self, request).await.map(Response::new)
    }

    async fn stat_file(&self, request: Request<v1::FileRequest>) -> Answer<v1::FileInfo> {
        answer(self.file_info(request, false).await)
    }

    async fn list_directory(
        &self,
        request: Request<v1::ListDirectoryRequest>,
    ) -> Answer<v1::ListFilesResponse> {
        answer(Services::list_directory(self, request).await)
    }

    async fn make_directory(&self, request: Request<v1::FileRequest>) -> Answer<v1::FileInfo> {
        answer(self.file_info(request, true).await)
    }

    async fn make_symlink(&self, request: Request<v1::MakeSymlinkRequest>) -> Answer<v1::FileInfo> {
        answer(Services::make_symlink(self, request).await)
    }

    async fn remove_file(&self, request: Request<v1::RemoveFileRequest>) -> Answer<v1::Empty> {
        answer(Services::remove_file(self, request).await)
    }

    async fn rename_file(&self, request: Request<v1::RenameFileRequest>) -> Answer<v1::FileInfo> {
        answer(Services::rename_file(self, request).await)
    }

    async fn changes(&self, request: Request<v1::ChangesRequest>) -> Answer<v1::ChangesResponse> {
        let (account, id) = who(&request, &request.get_ref().sandbox_id).map_err(status_of)?;
        let found = self.sandboxes.changes(&account, &id).await;
        answer(found.map(|found| v1::ChangesResponse { changes: changes(found) }))
    }

    async fn diff(&self, request: Request<v1::ChangesRequest>) -> Answer<v1::DiffResponse> {
        let (account, id) = who(&request, &request.get_ref().sandbox_id).map_err(status_of)?;
        let diff = self.sandboxes.diff(&account, &id).await;
        answer(diff.map(|diff| v1::DiffResponse { diff: diff.into() }))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Answer<v1::ApplyResponse> {
        answer(Services::apply(self, request).await)
    }

    async fn create_snapshot(
        &self,
        request: Request<v1::CreateSnapshotRequest>,
    ) -> Answer<v1::Snapshot> {
        let (account, id) = who(&request, &request.get_ref().sandbox_id).map_err(status_of)?;
        let name = &request.get_ref().name;
        answer(self.sandboxes.create_snapshot(&account, &id, name).await.map(snapshot))
    }

    async fn list_snapshots(
        &self,
        request: Request<v1::ListSnapshotsRequest>,
    ) -> Answer<v1::ListSnapshotsResponse> {
        answer(Services::list_snapshots(self, request))
    }

    async fn delete_snapshot(
        &self,
        request: Request<v1::DeleteSnapshotRequest>,
    ) -> Answer<v1::Empty> {
        let account = caller(&request).map_err(status_of)?.account;
        let id = required("snapshot_id", &request.get_ref().snapshot_id).map_err(status_of)?;
        answer(self.sandboxes.delete_snapshot(&account, id).await.map(|()| v1::Empty {}))
    }

    async fn restore_snapshot(
        &self,
        request: Request<v1::RestoreSnapshotRequest>,
    ) -> Answer<v1::Sandbox> {
        answer(Services::restore_snapshot(self, request).await)
    }

    async fn fork_sandbox(&self, request: Request<v1::ForkSandboxRequest>) -> Answer<v1::Sandbox> {
        let repeat = Asked::of(&request, "ForkSandbox", &request.get_ref().request_id)?;
        let (services, repeats) = (self.clone(), self.repeats.clone());
        let forked = to_the_end(async move {
            let fork = async { services.fork_sandbox(request).await.map_err(status_of) };
            repeats.once(repeat, fork).await
        });
        Ok(forked.await?.response())
    }

    async fn get_policy(
        &self,
        request: Request<v1::GetPolicyRequest>,
    ) -> Answer<v1::PolicyResponse> {
        let (account, id) = who(&request, &request.get_ref().sandbox_id).map_err(status_of)?;
        let record = self.sandboxes.get(&account, &id);
        answer(record.map(|record| v1::PolicyResponse {
            permissions: record.rules.iter().map(convert::wire_rule).collect(),
        }))
    }

    async fn set_policy(
        &self,
        request: Request<v1::SetPolicyRequest>,
    ) -> Answer<v1::PolicyResponse> {
        answer(Services::set_policy(self, request).await)
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Answer<v1::ExplainResponse> {
        answer(Services::explain(self, &request))
    }
}
