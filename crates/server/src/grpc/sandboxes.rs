//! Sandboxes and commands in them.

use std::pin::Pin;

use bytes::Bytes;
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::create::CreateSandbox;
use ringfence_engine::store::{Page, SandboxFilter, SandboxRecord, Status as State};
use ringfence_link::warden::{Command, Exec, Request as Ask};
use ringfence_wire::v1;
use ringfence_wire::v1::sandbox_service_server::SandboxService;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::{Services, sessions};
use crate::caller::caller;
use crate::commands::{Output, Wanted, attached, collect, stream};
use crate::convert;
use crate::exit_code::{self, noting_exit_code};
use crate::repeats::{Asked, to_the_end};
use crate::status::status_of;

pub(super) type Answer<T> = std::result::Result<Response<T>, Status>;
type Pieces<T> = Pin<Box<dyn Stream<Item = std::result::Result<T, Status>> + Send>>;

pub(super) fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(status_of)
}

pub(super) fn required<'a>(name: &str, value: &'a str) -> Result<&'a str> {
    match value.is_empty() {
        true => Err(Problem::invalid(format!("{name} is required"))),
        false => Ok(value),
    }
}

impl Services {
    pub(super) fn shown(&self, record: SandboxRecord) -> v1::Sandbox {
        let info = self.sandboxes.info(&record.id);
        convert::sandbox(record, info.as_deref())
    }

    async fn create_sandbox(
        &self,
        request: Request<v1::CreateSandboxRequest>,
    ) -> Result<v1::Sandbox> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        required("codebase_id", &asked.codebase_id)?;
        let wanted = CreateSandbox {
            rules: convert::rules(&asked.preset, &asked.permissions)?,
            labels: asked.labels.into_iter().collect(),
            env: asked.env.into_iter().collect(),
            runtime: convert::runtime(asked.runtime)?,
            image: asked.image,
            image_user: asked.image_user,
            limits: convert::limits(asked.resources.as_ref())?,
            network: convert::network(asked.network)?,
            read_only_paths: asked.read_only_paths.into_iter().map(Into::into).collect(),
            expires_in: convert::duration(asked.expires_in)?,
            leased: asked.leased,
            snapshot_id: Some(asked.snapshot_id).filter(|id| !id.is_empty()),
            codebase_id: asked.codebase_id,
            owner_id: String::new(),
        };
        self.sandboxes.prepare(&wanted).await?;
        let record = self.sandboxes.create(&caller, wanted)?;
        match asked.start {
            true => Ok(self.shown(self.start_new(&caller.account, &record.id).await?)),
            false => Ok(self.shown(record)),
        }
    }

    /// One that cannot start is not there: who asked for both was told no id.
    async fn start_new(&self, account: &str, id: &str) -> Result<SandboxRecord> {
        let started = self.sandboxes.start(account, id).await;
        if started.is_err() {
            let because = "it could not start";
            if let Err(problem) = self.sandboxes.destroy_because(account, id, because).await {
                tracing::warn!(sandbox = id, %problem, "it is left");
            }
        }
        started
    }

    fn hold_lease(&self, account: &str, asked: &v1::LeaseSandboxRequest) -> Result<i64> {
        match asked.bind {
            true => self.sandboxes.bind_lease(account, &asked.sandbox_id),
            false => self.sandboxes.renew_lease(account, &asked.sandbox_id),
        }
    }

    fn list_sandboxes(
        &self,
        request: Request<v1::ListSandboxesRequest>,
    ) -> Result<v1::ListSandboxesResponse> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let status = match asked.status() {
            v1::SandboxStatus::Unspecified => None,
            v1::SandboxStatus::Pending => Some(State::Pending),
            v1::SandboxStatus::Running => Some(State::Running),
            v1::SandboxStatus::Stopped => Some(State::Stopped),
            v1::SandboxStatus::Error => Some(State::Error),
        };
        let filter = SandboxFilter {
            codebase_id: some(asked.codebase_id),
            owner_id: some(asked.owner_id),
            status,
            labels: asked.labels.into_iter().collect(),
        };
        let page = Page { limit: asked.page_size.max(0) as usize, token: asked.page_token };
        let listed = self.sandboxes.list(&caller.account, &filter, &page)?;
        Ok(v1::ListSandboxesResponse {
            sandboxes: listed.items.into_iter().map(|record| self.shown(record)).collect(),
            next_page_token: listed.next.unwrap_or_default(),
        })
    }

    async fn exec(&self, request: Request<v1::ExecRequest>) -> Result<v1::ExecResult> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let wanted = Wanted::of(asked.options.as_ref())?;
        let (id, exec, input) = command(asked)?;
        let call = self.sandboxes.call(&caller.account, &id, Ask::Exec(exec)).await?;
        collect(call, input, wanted).await
    }

    async fn exec_stream(&self, request: Request<v1::ExecRequest>) -> Result<Output> {
        let caller = caller(&request)?;
        let (id, exec, input) = command(request.into_inner())?;
        let call = self.sandboxes.call(&caller.account, &id, Ask::Exec(exec)).await?;
        Ok(stream(call, input))
    }

    /// The first message says what to run; the rest is for the command.
    async fn exec_attached(&self, request: Request<Streaming<v1::ExecInput>>) -> Result<Output> {
        use v1::exec_input::Content;
        let caller = caller(&request)?;
        let mut said = request.into_inner();
        let first = said.message().await.ok().flatten().and_then(|input| input.content);
        let (id, ask) = match first {
            Some(Content::Command(asked)) => {
                let (id, mut exec, _) = command(asked)?;
                exec.stdin = true;
                (id, Ask::Exec(exec))
            }
            Some(Content::SessionCommand(asked)) => {
                let (id, ask, _) = sessions::command(self, &caller, asked).await?;
                (id, sessions::with_input(ask))
            }
            _ => return Err(Problem::invalid("the first message must be the command")),
        };
        Ok(attached(self.sandboxes.call(&caller.account, &id, ask).await?, said))
    }
}

/// The sandbox, the command and its input.
fn command(asked: v1::ExecRequest) -> Result<(String, Exec, Option<Bytes>)> {
    required("sandbox_id", &asked.sandbox_id)?;
    let what = match (asked.argv.is_empty(), asked.command.is_empty()) {
        (false, true) => Command::Argv(asked.argv.into_iter().map(Into::into).collect()),
        (true, false) => Command::Shell(asked.command.into_bytes()),
        (true, true) => return Err(Problem::invalid("command is required")),
        (false, false) => return Err(Problem::invalid("give `command` or `argv`, not both")),
    };
    let input = match asked.stdin_bytes.is_empty() {
        false => Some(asked.stdin_bytes),
        true => Some(asked.stdin).filter(|text| !text.is_empty()).map(Bytes::from),
    };
    let timeout = convert::duration(asked.timeout)?;
    let exec = Exec {
        command: what,
        env: convert::variables(asked.env),
        cwd: Some(asked.workdir).filter(|dir| !dir.is_empty()).map(String::into_bytes),
        timeout_ms: timeout.map(|time| time.as_millis().max(1) as u64),
        stdin: input.is_some(),
        changes: asked.options.is_some_and(|options| options.changes),
    };
    Ok((asked.sandbox_id, exec, input))
}

#[tonic::async_trait]
impl SandboxService for Services {
    type ExecStreamStream = exit_code::Pieces;
    type ExecAttachedStream = exit_code::Pieces;
    type SessionExecStreamStream = exit_code::Pieces;
    type SessionLogStream = Pieces<v1::LogChunk>;
    type LeaseSandboxStream = Pieces<v1::LeaseState>;

    async fn create_sandbox(
        &self,
        request: Request<v1::CreateSandboxRequest>,
    ) -> Answer<v1::Sandbox> {
        let asked = Asked::of(&request, "CreateSandbox", &request.get_ref().request_id)?;
        let services = self.clone();
        let made = to_the_end(async move {
            let made =
                async { Services::create_sandbox(&services, request).await.map_err(status_of) };
            services.repeats.once(asked, made).await
        });
        Ok(made.await?.response())
    }

    async fn get_sandbox(&self, request: Request<v1::GetSandboxRequest>) -> Answer<v1::Sandbox> {
        let found = caller(&request).and_then(|caller| {
            let id = &request.get_ref().sandbox_id;
            self.sandboxes.get(&caller.account, required("sandbox_id", id)?)
        });
        answer(found.map(|record| self.shown(record)))
    }

    async fn list_sandboxes(
        &self,
        request: Request<v1::ListSandboxesRequest>,
    ) -> Answer<v1::ListSandboxesResponse> {
        answer(Services::list_sandboxes(self, request))
    }

    async fn start_sandbox(
        &self,
        request: Request<v1::StartSandboxRequest>,
    ) -> Answer<v1::Sandbox> {
        let caller = caller(&request).map_err(status_of)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id).map_err(status_of)?;
        let (sandboxes, id) = (self.sandboxes.clone(), id.to_owned());
        let start = async move { sandboxes.start(&caller.account, &id).await.map_err(status_of) };
        Ok(Response::new(self.shown(to_the_end(start).await?)))
    }

    async fn stop_sandbox(&self, request: Request<v1::StopSandboxRequest>) -> Answer<v1::Sandbox> {
        let caller = caller(&request).map_err(status_of)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id).map_err(status_of)?;
        let (sandboxes, id) = (self.sandboxes.clone(), id.to_owned());
        let stop = async move { sandboxes.stop(&caller.account, &id).await.map_err(status_of) };
        Ok(Response::new(self.shown(to_the_end(stop).await?)))
    }

    async fn destroy_sandbox(
        &self,
        request: Request<v1::DestroySandboxRequest>,
    ) -> Answer<v1::Empty> {
        let caller = caller(&request).map_err(status_of)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id).map_err(status_of)?;
        let (sandboxes, id) = (self.sandboxes.clone(), id.to_owned());
        let keeps = request.get_ref().keep_codebase;
        let destroy = async move {
            if keeps {
                sandboxes.keep_codebase_of(&caller.account, &id)?;
            }
            sandboxes.destroy(&caller.account, &id).await
        };
        to_the_end(async move { destroy.await.map_err(status_of) }).await?;
        Ok(Response::new(v1::Empty {}))
    }

    async fn exec(&self, request: Request<v1::ExecRequest>) -> Answer<v1::ExecResult> {
        let asked = Asked::of(&request, "Exec", &request.get_ref().request_id)?;
        // Who leaves cancels the command, so this is not to be carried through.
        let run = async { Services::exec(self, request).await.map_err(status_of) };
        Ok(self.repeats.once(asked, run).await?.response())
    }

    async fn exec_stream(
        &self,
        request: Request<v1::ExecRequest>,
    ) -> Answer<Self::ExecStreamStream> {
        let output = Services::exec_stream(self, request).await;
        output.map(noting_exit_code).map_err(status_of)
    }

    async fn exec_attached(
        &self,
        request: Request<Streaming<v1::ExecInput>>,
    ) -> Answer<Self::ExecAttachedStream> {
        let output = Services::exec_attached(self, request).await;
        output.map(noting_exit_code).map_err(status_of)
    }

    async fn create_session(
        &self,
        request: Request<v1::CreateSessionRequest>,
    ) -> Answer<v1::Session> {
        answer(sessions::create(self, request).await)
    }

    async fn get_session(&self, request: Request<v1::GetSessionRequest>) -> Answer<v1::Session> {
        answer(sessions::get(self, request).await)
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Answer<v1::ListSessionsResponse> {
        answer(sessions::list(self, request).await)
    }

    async fn destroy_session(
        &self,
        request: Request<v1::DestroySessionRequest>,
    ) -> Answer<v1::Empty> {
        answer(sessions::destroy(self, request).await)
    }

    async fn session_exec(
        &self,
        request: Request<v1::SessionExecRequest>,
    ) -> Answer<v1::ExecResult> {
        let asked = Asked::of(&request, "SessionExec", &request.get_ref().request_id)?;
        let run = async { sessions::exec(self, request).await.map_err(status_of) };
        Ok(self.repeats.once(asked, run).await?.response())
    }

    async fn session_exec_stream(
        &self,
        request: Request<v1::SessionExecRequest>,
    ) -> Answer<Self::SessionExecStreamStream> {
        let output = sessions::exec_stream(self, request).await;
        output.map(noting_exit_code).map_err(status_of)
    }

    async fn session_log(
        &self,
        request: Request<v1::SessionLogRequest>,
    ) -> Answer<Self::SessionLogStream> {
        let chunks = sessions::log(self, request).await;
        answer(chunks.map(|chunks| Box::pin(chunks) as Self::SessionLogStream))
    }

    async fn lease_sandbox(
        &self,
        request: Request<v1::LeaseSandboxRequest>,
    ) -> Answer<Self::LeaseSandboxStream> {
        let caller = caller(&request).map_err(status_of)?;
        let asked = request.into_inner();
        self.hold_lease(&caller.account, &asked).map_err(status_of)?;
        let (sandboxes, id) = (self.sandboxes.clone(), asked.sandbox_id);
        let ticks = tokio::time::interval(sandboxes.lease_sign());
        let states = tokio_stream::wrappers::IntervalStream::new(ticks).map(move |_| {
            let until = sandboxes.renew_lease(&caller.account, &id).map_err(status_of)?;
            Ok(v1::LeaseState { safe_until: Some(convert::time(until)) })
        });
        Ok(Response::new(Box::pin(states)))
    }

    async fn renew_lease(
        &self,
        request: Request<v1::LeaseSandboxRequest>,
    ) -> Answer<v1::LeaseState> {
        let caller = caller(&request).map_err(status_of)?;
        let until = self.hold_lease(&caller.account, request.get_ref());
        answer(until.map(|until| v1::LeaseState { safe_until: Some(convert::time(until)) }))
    }
}
