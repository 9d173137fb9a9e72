//! Every route and the call it makes.

use ringfence_wire::v1::audit_service_server::AuditService;
use ringfence_wire::v1::codebase_service_server::CodebaseService;
use ringfence_wire::v1::image_service_server::ImageService;
use ringfence_wire::v1::process_service_server::ProcessService;
use ringfence_wire::v1::sandbox_service_server::SandboxService;
use ringfence_wire::v1::server_service_server::ServerService;
use ringfence_wire::v1::terminal_service_server::TerminalService;
use ringfence_wire::v1::token_service_server::TokenService;
use ringfence_wire::v1::workspace_service_server::WorkspaceService;

use super::Verb::{Delete, Get, Post, Put};
use super::{Table, files, terminals};
use crate::grpc::Services;

macro_rules! call {
    ($service:ident :: $method:ident) => {
        async |services: Services, request| $service::$method(&services, request).await
    };
}

pub(super) fn table() -> Table {
    let mut table = Table::new();
    codebases(&mut table);
    sandboxes(&mut table);
    sessions(&mut table);
    processes(&mut table);
    workspaces(&mut table);
    snapshots(&mut table);
    screens(&mut table);
    the_server(&mut table);
    table
}

#[rustfmt::skip]
fn codebases(table: &mut Table) {
    const ALL: &str = "/v1/codebases";
    const ONE: &str = "/v1/codebases/{codebase_id}";
    table.unary(Post, ALL, "CodebaseService.CreateCodebase", call!(CodebaseService::create_codebase));
    table.unary(Get, ALL, "CodebaseService.ListCodebases", call!(CodebaseService::list_codebases));
    table.unary(Get, ONE, "CodebaseService.GetCodebase", call!(CodebaseService::get_codebase));
    table.unary(Delete, ONE, "CodebaseService.DeleteCodebase", call!(CodebaseService::delete_codebase));
    table.unary(Get, "/v1/codebases/{codebase_id}/files", "CodebaseService.ListFiles", call!(CodebaseService::list_files));
    table.add(Post, "/v1/codebases/{codebase_id}/files", files::upload_form);
    table.download("/v1/codebases/{codebase_id}/files/{*file_path}", "CodebaseService.DownloadFile", call!(CodebaseService::download_file));
    table.upload("/v1/codebases/{codebase_id}/files/{*file_path}", "CodebaseService.UploadFiles", files::UPLOAD, files::upload);
    table.upload("/v1/codebases/{codebase_id}/staged", "CodebaseService.UploadFiles", files::UPLOAD, files::stage);
    table.unary(Post, "/v1/codebases/{codebase_id}/negotiate", "CodebaseService.NegotiateUpload", call!(CodebaseService::negotiate_upload));
    table.unary(Post, "/v1/codebases/{codebase_id}/commit", "CodebaseService.CommitUpload", call!(CodebaseService::commit_upload));
}

#[rustfmt::skip]
fn sandboxes(table: &mut Table) {
    const ALL: &str = "/v1/sandboxes";
    const ONE: &str = "/v1/sandboxes/{sandbox_id}";
    const LEASE: &str = "/v1/sandboxes/{sandbox_id}/lease";
    table.unary(Post, ALL, "SandboxService.CreateSandbox", call!(SandboxService::create_sandbox));
    table.unary(Get, ALL, "SandboxService.ListSandboxes", call!(SandboxService::list_sandboxes));
    table.unary(Get, ONE, "SandboxService.GetSandbox", call!(SandboxService::get_sandbox));
    table.unary(Delete, ONE, "SandboxService.DestroySandbox", call!(SandboxService::destroy_sandbox));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/start", "SandboxService.StartSandbox", call!(SandboxService::start_sandbox));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/stop", "SandboxService.StopSandbox", call!(SandboxService::stop_sandbox));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/exec", "SandboxService.Exec", call!(SandboxService::exec));
    table.streaming(Post, "/v1/sandboxes/{sandbox_id}/exec/stream", "SandboxService.ExecStream", call!(SandboxService::exec_stream));
    table.unary(Post, LEASE, "SandboxService.RenewLease", call!(SandboxService::renew_lease));
    table.streaming(Get, LEASE, "SandboxService.LeaseSandbox", call!(SandboxService::lease_sandbox));
}

#[rustfmt::skip]
fn sessions(table: &mut Table) {
    const OF_SANDBOX: &str = "/v1/sandboxes/{sandbox_id}/sessions";
    const ONE: &str = "/v1/sessions/{session_id}";
    table.unary(Post, OF_SANDBOX, "SandboxService.CreateSession", call!(SandboxService::create_session));
    table.unary(Get, OF_SANDBOX, "SandboxService.ListSessions", call!(SandboxService::list_sessions));
    table.unary(Get, ONE, "SandboxService.GetSession", call!(SandboxService::get_session));
    table.unary(Delete, ONE, "SandboxService.DestroySession", call!(SandboxService::destroy_session));
    table.unary(Post, "/v1/sessions/{session_id}/exec", "SandboxService.SessionExec", call!(SandboxService::session_exec));
    table.streaming(Post, "/v1/sessions/{session_id}/exec/stream", "SandboxService.SessionExecStream", call!(SandboxService::session_exec_stream));
    table.streaming(Get, "/v1/sessions/{session_id}/log", "SandboxService.SessionLog", call!(SandboxService::session_log));
}

#[rustfmt::skip]
fn processes(table: &mut Table) {
    const ALL: &str = "/v1/sandboxes/{sandbox_id}/processes";
    const ONE: &str = "/v1/sandboxes/{sandbox_id}/processes/{process_id}";
    table.unary(Post, ALL, "ProcessService.StartProcess", call!(ProcessService::start_process));
    table.unary(Get, ALL, "ProcessService.ListProcesses", call!(ProcessService::list_processes));
    table.unary(Delete, ALL, "ProcessService.KillAllProcesses", call!(ProcessService::kill_all_processes));
    table.unary(Get, ONE, "ProcessService.GetProcess", call!(ProcessService::get_process));
    table.streaming(Get, "/v1/sandboxes/{sandbox_id}/processes/{process_id}/log", "ProcessService.ProcessLog", call!(ProcessService::process_log));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/processes/{process_id}/wait", "ProcessService.WaitProcess", call!(ProcessService::wait_process));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/processes/{process_id}/kill", "ProcessService.KillProcess", call!(ProcessService::kill_process));
}

#[rustfmt::skip]
fn screens(table: &mut Table) {
    const ALL: &str = "/v1/sandboxes/{sandbox_id}/terminals";
    const ONE: &str = "/v1/sandboxes/{sandbox_id}/terminals/{terminal_id}";
    table.unary(Post, ALL, "TerminalService.OpenTerminal", call!(TerminalService::open_terminal));
    table.unary(Get, ALL, "TerminalService.ListTerminals", call!(TerminalService::list_terminals));
    table.unary(Delete, ONE, "TerminalService.CloseTerminal", call!(TerminalService::close_terminal));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/terminals/{terminal_id}/resize", "TerminalService.ResizeTerminal", call!(TerminalService::resize_terminal));
    table.download("/v1/sandboxes/{sandbox_id}/terminals/{terminal_id}/recording", "TerminalService.TerminalRecording", call!(TerminalService::terminal_recording));
    table.add(Get, "/v1/sandboxes/{sandbox_id}/terminals/{terminal_id}/attach", terminals::attach);
}

#[rustfmt::skip]
fn the_server(table: &mut Table) {
    const TOKENS: &str = "/v1/tokens";
    table.unary(Get, "/v1/info", "ServerService.Info", call!(ServerService::info));
    table.streaming(Post, "/v1/images/fetch", "ImageService.FetchImage", call!(ImageService::fetch_image));
    table.streaming(Get, "/v1/sandboxes/{sandbox_id}/audit", "AuditService.Audit", call!(AuditService::audit));
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/audit/verify", "AuditService.VerifyAudit", call!(AuditService::verify_audit));
    table.unary(Post, TOKENS, "TokenService.CreateToken", call!(TokenService::create_token));
    table.unary(Get, TOKENS, "TokenService.ListTokens", call!(TokenService::list_tokens));
    table.unary(Delete, "/v1/tokens/{token_id}", "TokenService.RevokeToken", call!(TokenService::revoke_token));
}

#[rustfmt::skip]
fn workspaces(table: &mut Table) {
    const FILE: &str = "/v1/sandboxes/{sandbox_id}/files/{*path}";
    const POLICY: &str = "/v1/sandboxes/{sandbox_id}/policy";
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/files", "WorkspaceService.ListDirectory", call!(WorkspaceService::list_directory));
    table.download(FILE, "WorkspaceService.ReadFile", call!(WorkspaceService::read_file));
    table.upload(FILE, "WorkspaceService.WriteFile", files::WRITE, files::write);
    table.unary(Delete, FILE, "WorkspaceService.RemoveFile", call!(WorkspaceService::remove_file));
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/stat", "WorkspaceService.StatFile", call!(WorkspaceService::stat_file));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/mkdir", "WorkspaceService.MakeDirectory", call!(WorkspaceService::make_directory));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/symlink", "WorkspaceService.MakeSymlink", call!(WorkspaceService::make_symlink));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/rename", "WorkspaceService.RenameFile", call!(WorkspaceService::rename_file));
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/changes", "WorkspaceService.Changes", call!(WorkspaceService::changes));
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/diff", "WorkspaceService.Diff", call!(WorkspaceService::diff));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/apply", "WorkspaceService.Apply", call!(WorkspaceService::apply));
    table.unary(Get, POLICY, "WorkspaceService.GetPolicy", call!(WorkspaceService::get_policy));
    table.unary(Put, POLICY, "WorkspaceService.SetPolicy", call!(WorkspaceService::set_policy));
    table.unary(Get, "/v1/sandboxes/{sandbox_id}/policy/explain", "WorkspaceService.Explain", call!(WorkspaceService::explain));
}

#[rustfmt::skip]
fn snapshots(table: &mut Table) {
    const OF_SANDBOX: &str = "/v1/sandboxes/{sandbox_id}/snapshots";
    table.unary(Post, OF_SANDBOX, "WorkspaceService.CreateSnapshot", call!(WorkspaceService::create_snapshot));
    table.unary(Get, OF_SANDBOX, "WorkspaceService.ListSnapshots", call!(WorkspaceService::list_snapshots));
    table.unary(Get, "/v1/snapshots", "WorkspaceService.ListSnapshots", call!(WorkspaceService::list_snapshots));
    table.unary(Delete, "/v1/snapshots/{snapshot_id}", "WorkspaceService.DeleteSnapshot", call!(WorkspaceService::delete_snapshot));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/restore", "WorkspaceService.RestoreSnapshot", call!(WorkspaceService::restore_snapshot));
    table.unary(Post, "/v1/sandboxes/{sandbox_id}/fork", "WorkspaceService.ForkSandbox", call!(WorkspaceService::fork_sandbox));
}
