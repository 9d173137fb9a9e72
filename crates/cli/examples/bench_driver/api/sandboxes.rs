//! Single calls about sandboxes.

use std::path::Path;

use ringfence_wire::v1;
use tonic::Streaming;

use super::served::Callers;
use crate::order::Trouble;

/// What a new sandbox is like, beside limits as somebody who runs many would set them.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) codebase: String,
    pub(super) preset: &'static str,
    pub(super) start: bool,
}

impl Shape {
    pub(super) async fn create(&self, callers: &Callers) -> Result<String, Trouble> {
        let request = v1::CreateSandboxRequest {
            codebase_id: self.codebase.clone(),
            preset: self.preset.into(),
            start: self.start,
            resources: Some(v1::ResourceLimits {
                memory_bytes: 1 << 30,
                pids_limit: 256,
                ..Default::default()
            }),
            ..Default::default()
        };
        Ok(callers.sandboxes.clone().create_sandbox(request).await?.into_inner().id)
    }
}

pub(super) async fn codebase_on(callers: &Callers, base: &Path) -> Result<String, Trouble> {
    let request = v1::CreateCodebaseRequest {
        name: "bench".into(),
        owner_id: "bench".into(),
        local_path: base.display().to_string(),
        ..Default::default()
    };
    Ok(callers.codebases.clone().create_codebase(request).await?.into_inner().id)
}

pub(super) async fn get(callers: &Callers, id: &str) -> Result<v1::Sandbox, Trouble> {
    let request = v1::GetSandboxRequest { sandbox_id: id.into() };
    Ok(callers.sandboxes.clone().get_sandbox(request).await?.into_inner())
}

pub(super) async fn destroy(callers: &Callers, id: &str) -> Result<(), Trouble> {
    let request = v1::DestroySandboxRequest { sandbox_id: id.into(), ..Default::default() };
    callers.sandboxes.clone().destroy_sandbox(request).await?;
    Ok(())
}

pub(super) fn exec_request(id: &str, argv: &[String]) -> v1::ExecRequest {
    let argv = argv.iter().map(|word| word.clone().into_bytes().into()).collect();
    v1::ExecRequest { sandbox_id: id.into(), argv, ..Default::default() }
}

pub(super) fn session_request(id: &str, session: &str, text: &str) -> v1::SessionExecRequest {
    v1::SessionExecRequest {
        sandbox_id: id.into(),
        session_id: session.into(),
        command: text.into(),
        ..Default::default()
    }
}

pub(super) async fn exec(callers: &Callers, request: v1::ExecRequest) -> Result<(), Trouble> {
    succeeded(&callers.sandboxes.clone().exec(request).await?.into_inner())
}

pub(super) fn succeeded(result: &v1::ExecResult) -> Result<(), Trouble> {
    match result.exit_code {
        0 => Ok(()),
        code => Err(Trouble::new(format!("the command ended with {code}: {}", result.stderr))),
    }
}

/// Reads a stream of output to its end; says how much there was.
pub(super) async fn printed(mut output: Streaming<v1::ExecOutput>) -> Result<u64, Trouble> {
    let mut bytes = 0;
    while let Some(piece) = output.message().await? {
        bytes += piece.data.len() as u64;
        if let Some(result) = &piece.result {
            succeeded(result)?;
        }
    }
    Ok(bytes)
}

pub(super) async fn open_session(callers: &Callers, id: &str) -> Result<String, Trouble> {
    let request = v1::CreateSessionRequest { sandbox_id: id.into(), ..Default::default() };
    Ok(callers.sandboxes.clone().create_session(request).await?.into_inner().id)
}

pub(super) async fn close_session(callers: &Callers, id: &str, which: &str) -> Result<(), Trouble> {
    let request = v1::DestroySessionRequest { session_id: which.into(), sandbox_id: id.into() };
    callers.sandboxes.clone().destroy_session(request).await?;
    Ok(())
}
