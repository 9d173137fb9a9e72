//! Commands in the background.

use ringfence_engine::problem::{Problem, Result};
use ringfence_link::warden::{
    Command, HttpCheck, ProcessInfo, Reply, Request as Ask, StartProcess, Until,
};
use ringfence_wire::v1;
use ringfence_wire::v1::process_service_server::ProcessService;
use ringfence_wire::v1::wait_process_request::{Port, Until as Wanted};
use tonic::{Request, Response};

use super::Services;
use super::logs::{self, Chunks};
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;
use crate::status::status_of;

const SIGTERM: i32 = 15;
/// What counts as "it answers" where the caller does not say.
const FINE: (u16, u16) = (200, 399);

/// A text for a shell, or a program with its arguments; nothing if neither is given.
pub(super) fn line(command: String, argv: Vec<bytes::Bytes>) -> Result<Option<Command>> {
    match (command.is_empty(), argv.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => Ok(Some(Command::Shell(command.into_bytes()))),
        (true, false) => Ok(Some(Command::Argv(argv.into_iter().map(Into::into).collect()))),
        (false, false) => Err(Problem::invalid("give `command` or `argv`, not both")),
    }
}

pub(super) fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A warden that answers something else is not one of ours.
pub(super) fn unexpected(reply: &Reply) -> Problem {
    Problem::internal("understand the sandbox", format!("{reply:?}"))
}

fn shown(sandbox_id: &str, info: ProcessInfo) -> v1::Process {
    v1::Process {
        id: info.id,
        sandbox_id: sandbox_id.into(),
        pid: info.pid,
        command: info.command,
        session_id: info.session.unwrap_or_default(),
        state: Some(logs::state(info.status)),
        created_at: Some(convert::time(info.created_ms as i64)),
        ended_at: info.ended_ms.map(|time| convert::time(time as i64)),
        log_end: info.log_end as i64,
    }
}

fn until(wanted: Option<Wanted>) -> Result<Until> {
    match wanted {
        None => Err(Problem::invalid("say what to wait for: exit, text, pattern or port")),
        Some(Wanted::Exit(_)) => Ok(Until::Exit),
        Some(Wanted::Text(text)) => Ok(Until::Text(text.into_bytes())),
        Some(Wanted::Pattern(pattern)) => Ok(Until::Pattern(pattern)),
        Some(Wanted::Port(port)) => until_port(port),
    }
}

fn until_port(asked: Port) -> Result<Until> {
    let small = |name: &str, value: u32| {
        u16::try_from(value).map_err(|_| Problem::invalid(format!("{name} is too big")))
    };
    let or = |given: u16, usual: u16| if given == 0 { usual } else { given };
    let from = or(small("status_from", asked.status_from)?, FINE.0);
    let to = or(small("status_to", asked.status_to)?, FINE.1.max(from));
    let http = some(asked.http_path);
    let http = http.map(|path| HttpCheck { path, status_from: from, status_to: to });
    Ok(Until::Port { port: small("port", asked.port)?, http })
}

impl Services {
    async fn process(&self, account: &str, sandbox: &str, id: String) -> Result<v1::Process> {
        match self.sandboxes.ask(account, sandbox, Ask::Process { id }).await? {
            Reply::Process(info) => Ok(shown(sandbox, info)),
            other => Err(unexpected(&other)),
        }
    }

    async fn start_process(
        &self,
        request: Request<v1::StartProcessRequest>,
    ) -> Result<v1::Process> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let id = required("sandbox_id", &asked.sandbox_id)?;
        let command = line(asked.command, asked.argv)?;
        let start = StartProcess {
            command: command.ok_or_else(|| Problem::invalid("command is required"))?,
            session: some(asked.session),
            env: convert::variables(asked.env),
            cwd: some(asked.cwd).map(String::into_bytes),
            id: some(asked.id),
        };
        match self.sandboxes.ask(&caller.account, id, Ask::StartProcess(start)).await? {
            Reply::Process(info) => Ok(shown(id, info)),
            other => Err(unexpected(&other)),
        }
    }

    async fn list_processes(
        &self,
        request: Request<v1::ListProcessesRequest>,
    ) -> Result<v1::ListProcessesResponse> {
        let caller = caller(&request)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id)?;
        match self.sandboxes.ask(&caller.account, id, Ask::Processes).await? {
            Reply::Processes(all) => Ok(v1::ListProcessesResponse {
                processes: all.into_iter().map(|info| shown(id, info)).collect(),
            }),
            other => Err(unexpected(&other)),
        }
    }

    async fn process_log(&self, request: Request<v1::ProcessLogRequest>) -> Result<Chunks> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let id = required("sandbox_id", &asked.sandbox_id)?;
        required("process_id", &asked.process_id)?;
        let from = u64::try_from(asked.from).map_err(|_| Problem::invalid("`from` is negative"))?;
        let ask = Ask::ProcessLog { id: asked.process_id, from, follow: asked.follow };
        Ok(logs::chunks(self.sandboxes.call(&caller.account, id, ask).await?))
    }

    async fn wait_process(
        &self,
        request: Request<v1::WaitProcessRequest>,
    ) -> Result<v1::WaitProcessResponse> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let sandbox = required("sandbox_id", &asked.sandbox_id)?;
        required("process_id", &asked.process_id)?;
        let timeout = convert::duration(asked.timeout)?;
        let (id, until) = (asked.process_id, until(asked.until)?);
        let timeout_ms = timeout.map(|time| time.as_millis().max(1) as u64);
        let ask = Ask::WaitProcess { id: id.clone(), until, timeout_ms };
        let line = match self.sandboxes.ask(&caller.account, sandbox, ask).await? {
            Reply::Ready { line } => line.unwrap_or_default().into(),
            Reply::Process(_) => bytes::Bytes::new(),
            other => return Err(unexpected(&other)),
        };
        let process = self.process(&caller.account, sandbox, id).await?;
        Ok(v1::WaitProcessResponse { process: Some(process), line })
    }

    async fn kill_process(&self, request: Request<v1::KillProcessRequest>) -> Result<v1::Process> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let sandbox = required("sandbox_id", &asked.sandbox_id)?;
        required("process_id", &asked.process_id)?;
        let signal = if asked.signal == 0 { SIGTERM } else { asked.signal };
        let ask = Ask::KillProcess { id: asked.process_id.clone(), signal };
        self.sandboxes.ask(&caller.account, sandbox, ask).await?;
        self.process(&caller.account, sandbox, asked.process_id).await
    }
}

#[tonic::async_trait]
impl ProcessService for Services {
    type ProcessLogStream = Chunks;

    async fn start_process(
        &self,
        request: Request<v1::StartProcessRequest>,
    ) -> Answer<v1::Process> {
        answer(Services::start_process(self, request).await)
    }

    async fn get_process(&self, request: Request<v1::GetProcessRequest>) -> Answer<v1::Process> {
        let caller = caller(&request).map_err(status_of)?;
        let asked = request.into_inner();
        required("process_id", &asked.process_id).map_err(status_of)?;
        answer(self.process(&caller.account, &asked.sandbox_id, asked.process_id).await)
    }

    async fn list_processes(
        &self,
        request: Request<v1::ListProcessesRequest>,
    ) -> Answer<v1::ListProcessesResponse> {
        answer(Services::list_processes(self, request).await)
    }

    async fn process_log(
        &self,
        request: Request<v1::ProcessLogRequest>,
    ) -> Answer<Self::ProcessLogStream> {
        answer(Services::process_log(self, request).await)
    }

    async fn wait_process(
        &self,
        request: Request<v1::WaitProcessRequest>,
    ) -> Answer<v1::WaitProcessResponse> {
        answer(Services::wait_process(self, request).await)
    }

    async fn kill_process(&self, request: Request<v1::KillProcessRequest>) -> Answer<v1::Process> {
        answer(Services::kill_process(self, request).await)
    }

    async fn kill_all_processes(
        &self,
        request: Request<v1::ListProcessesRequest>,
    ) -> Answer<v1::KillAllProcessesResponse> {
        let caller = caller(&request).map_err(status_of)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id).map_err(status_of)?;
        let asked = self.sandboxes.ask(&caller.account, id, Ask::KillAllProcesses).await;
        match asked.map_err(status_of)? {
            Reply::Count(count) => {
                Ok(Response::new(v1::KillAllProcessesResponse { count: count as i64 }))
            }
            other => Err(status_of(unexpected(&other))),
        }
    }
}
