//! A sandbox on a server, and what is asked of it.

use ringfence_wire::v1;
use ringfence_wire::v1::audit_service_client::AuditServiceClient;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::process_service_client::ProcessServiceClient;
use ringfence_wire::v1::sandbox_service_client::SandboxServiceClient;
use ringfence_wire::v1::terminal_service_client::TerminalServiceClient;
use rustix::process::Signal;
use tonic::Streaming;
use tonic::transport::Channel;

use super::{processes_with, within};

#[derive(Clone)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    pub(crate) sandboxes: SandboxServiceClient<Channel>,
    pub(crate) processes: ProcessServiceClient<Channel>,
    pub(crate) terminals: TerminalServiceClient<Channel>,
    pub(crate) audit: AuditServiceClient<Channel>,
}

impl Sandbox {
    /// One that runs, on an empty codebase, with full access and these rules.
    pub(crate) async fn start(server: &Channel, rules: &[v1::PermissionRule]) -> Self {
        Self::on(server, v1::CreateCodebaseRequest::default(), rules).await
    }

    /// The same on another codebase.
    pub(crate) async fn on(
        server: &Channel,
        codebase: v1::CreateCodebaseRequest,
        rules: &[v1::PermissionRule],
    ) -> Self {
        let mut codebases = CodebaseServiceClient::new(server.clone());
        let wanted =
            v1::CreateCodebaseRequest { name: "c".into(), owner_id: "o".into(), ..codebase };
        let codebase = codebases.create_codebase(wanted).await.unwrap().into_inner();
        let wanted = v1::CreateSandboxRequest {
            codebase_id: codebase.id,
            preset: "full-access".into(),
            permissions: rules.to_vec(),
            start: true,
            ..Default::default()
        };
        let mut sandboxes = SandboxServiceClient::new(server.clone());
        let sandbox = within(sandboxes.create_sandbox(wanted)).await.unwrap().into_inner();
        Self::at(server, &sandbox.id)
    }

    /// The one that has this id.
    pub(crate) fn at(server: &Channel, id: &str) -> Self {
        let channel = || server.clone();
        Self {
            id: id.into(),
            sandboxes: SandboxServiceClient::new(channel()),
            processes: ProcessServiceClient::new(channel()),
            terminals: TerminalServiceClient::new(channel()),
            audit: AuditServiceClient::new(channel()),
        }
    }

    /// Runs a text for a shell that must succeed, and returns what it printed.
    pub(crate) async fn ok(&self, text: &str) -> String {
        let asked = v1::ExecRequest {
            sandbox_id: self.id.clone(),
            command: text.into(),
            ..Default::default()
        };
        let done = within(self.sandboxes.clone().exec(asked)).await.unwrap().into_inner();
        assert_eq!(done.exit_code, 0, "{text:?}: {done:?}");
        done.stdout
    }

    /// Lets go on who waits at a [`gate`](super::gate).
    pub(crate) async fn open_gate(&self, name: &str) {
        self.ok(&format!("touch /tmp/{name}")).await;
    }

    pub(crate) async fn stop(&self) {
        let asked = v1::StopSandboxRequest { sandbox_id: self.id.clone() };
        within(self.sandboxes.clone().stop_sandbox(asked)).await.unwrap();
    }

    pub(crate) async fn start_again(&self) {
        let asked = v1::StartSandboxRequest { sandbox_id: self.id.clone() };
        within(self.sandboxes.clone().start_sandbox(asked)).await.unwrap();
    }

    pub(crate) async fn destroy(&self) {
        let asked = v1::DestroySandboxRequest { sandbox_id: self.id.clone(), ..Default::default() };
        within(self.sandboxes.clone().destroy_sandbox(asked)).await.unwrap();
    }

    /// Kills the warden without a warning, and everything with it.
    pub(crate) fn kill_warden(&self) {
        self.signal_warden(Signal::KILL);
    }

    pub(crate) fn signal_warden(&self, signal: Signal) {
        let wardens = processes_with(&format!("{}/config.json", self.id));
        assert_eq!(wardens.len(), 1);
        let warden = rustix::process::Pid::from_raw(wardens[0]).unwrap();
        rustix::process::kill_process(warden, signal).unwrap();
    }

    /// Waits until the server has noticed, and cleaned up.
    pub(crate) async fn is_lost(&self) {
        let asked = || v1::GetSandboxRequest { sandbox_id: self.id.clone() };
        let noticed = async {
            loop {
                let found = self.sandboxes.clone().get_sandbox(asked()).await.unwrap();
                if found.into_inner().status() == v1::SandboxStatus::Error {
                    return;
                }
            }
        };
        within(noticed).await;
    }

    pub(crate) async fn process(&self, text: &str) -> v1::Process {
        let asked = v1::StartProcessRequest {
            sandbox_id: self.id.clone(),
            command: text.into(),
            ..Default::default()
        };
        within(self.processes.clone().start_process(asked)).await.unwrap().into_inner()
    }

    pub(crate) async fn log(&self, id: &str, from: i64, follow: bool) -> Streaming<v1::LogChunk> {
        let (sandbox_id, process_id) = (self.id.clone(), id.into());
        let asked = v1::ProcessLogRequest { sandbox_id, process_id, from, follow };
        within(self.processes.clone().process_log(asked)).await.unwrap().into_inner()
    }

    pub(crate) async fn wait(
        &self,
        id: &str,
        until: v1::wait_process_request::Until,
        timeout: Option<pbjson_types::Duration>,
    ) -> Result<v1::WaitProcessResponse, tonic::Status> {
        let asked = v1::WaitProcessRequest {
            sandbox_id: self.id.clone(),
            process_id: id.into(),
            timeout,
            until: Some(until),
        };
        let answer = within(self.processes.clone().wait_process(asked)).await;
        answer.map(tonic::Response::into_inner)
    }

    /// Waits until a process has printed something.
    pub(crate) async fn line(&self, id: &str, text: &str) -> String {
        let until = v1::wait_process_request::Until::Text(text.into());
        let found = self.wait(id, until, None).await.unwrap();
        String::from_utf8(found.line.to_vec()).unwrap()
    }

    pub(crate) async fn verdict(&self) -> v1::VerifyAuditResponse {
        let asked = v1::VerifyAuditRequest { sandbox_id: self.id.clone() };
        within(self.audit.clone().verify_audit(asked)).await.unwrap().into_inner()
    }

    pub(crate) async fn events(&self, asked: v1::AuditRequest) -> Streaming<v1::AuditEvent> {
        let asked = v1::AuditRequest { sandbox_id: self.id.clone(), ..asked };
        within(self.audit.clone().audit(asked)).await.unwrap().into_inner()
    }
}
