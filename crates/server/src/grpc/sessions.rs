//! Shells that keep their state.

use bytes::Bytes;
use ringfence_engine::Caller;
use ringfence_engine::problem::{Problem, Result};
use ringfence_link::warden::{OpenSession, Reply, Request as Ask, SessionExec, SessionInfo};
use ringfence_wire::v1;
use tonic::Request;

use super::Services;
use super::logs::{self, Chunks};
use super::sandboxes::required;
use crate::caller::caller;
use crate::commands::{Output, Wanted, collect, stream};
use crate::convert;

pub(super) async fn create(
    services: &Services,
    request: Request<v1::CreateSessionRequest>,
) -> Result<v1::Session> {
    let caller = caller(&request)?;
    let asked = request.into_inner();
    let id = required("sandbox_id", &asked.sandbox_id)?;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let open = OpenSession {
        name: some(asked.name),
        shell: some(asked.shell),
        cwd: some(asked.cwd).map(String::into_bytes),
        env: convert::variables(asked.env),
        timeout_ms: convert::duration(asked.timeout)?.map(|time| time.as_millis().max(1) as u64),
    };
    let reply = services.sandboxes.ask(&caller.account, id, Ask::OpenSession(open)).await?;
    Ok(convert::session(id, session_of(reply)?))
}

fn session_of(reply: Reply) -> Result<SessionInfo> {
    match reply {
        Reply::Session(info) => Ok(info),
        other => Err(Problem::internal("understand the sandbox", format!("{other:?}"))),
    }
}

/// The sandbox of a session that is named by its id, or by its name and its sandbox.
async fn sandbox_of(
    services: &Services,
    caller: &Caller,
    session: &str,
    sandbox: &str,
) -> Result<String> {
    required("session_id", session)?;
    match sandbox.is_empty() {
        false => Ok(sandbox.into()),
        true => services.sandboxes.sandbox_of_session(&caller.account, session).await,
    }
}

pub(super) async fn get(
    services: &Services,
    request: Request<v1::GetSessionRequest>,
) -> Result<v1::Session> {
    let caller = caller(&request)?;
    let asked = request.into_inner();
    let id = sandbox_of(services, &caller, &asked.session_id, &asked.sandbox_id).await?;
    let which = Ask::Session { which: asked.session_id };
    let reply = services.sandboxes.ask(&caller.account, &id, which).await?;
    Ok(convert::session(&id, session_of(reply)?))
}

pub(super) async fn list(
    services: &Services,
    request: Request<v1::ListSessionsRequest>,
) -> Result<v1::ListSessionsResponse> {
    let caller = caller(&request)?;
    let id = required("sandbox_id", &request.get_ref().sandbox_id)?;
    let Reply::Sessions(all) = services.sandboxes.ask(&caller.account, id, Ask::Sessions).await?
    else {
        return Err(Problem::internal("understand the sandbox", "not a list of sessions"));
    };
    let sessions = all.into_iter().map(|info| convert::session(id, info)).collect();
    Ok(v1::ListSessionsResponse { sessions })
}

pub(super) async fn destroy(
    services: &Services,
    request: Request<v1::DestroySessionRequest>,
) -> Result<v1::Empty> {
    let caller = caller(&request)?;
    let asked = request.into_inner();
    let id = sandbox_of(services, &caller, &asked.session_id, &asked.sandbox_id).await?;
    let close = Ask::CloseSession { which: asked.session_id };
    services.sandboxes.ask(&caller.account, &id, close).await?;
    Ok(v1::Empty {})
}

pub(super) async fn exec(
    services: &Services,
    request: Request<v1::SessionExecRequest>,
) -> Result<v1::ExecResult> {
    let caller = caller(&request)?;
    let asked = request.into_inner();
    let wanted = Wanted::of(asked.options.as_ref())?;
    let (id, ask, input) = command(services, &caller, asked).await?;
    collect(services.sandboxes.call(&caller.account, &id, ask).await?, input, wanted).await
}

pub(super) async fn exec_stream(
    services: &Services,
    request: Request<v1::SessionExecRequest>,
) -> Result<Output> {
    let caller = caller(&request)?;
    let (id, ask, input) = command(services, &caller, request.into_inner()).await?;
    Ok(stream(services.sandboxes.call(&caller.account, &id, ask).await?, input))
}

/// The sandbox, the question and the input of the command.
pub(super) async fn command(
    services: &Services,
    caller: &Caller,
    asked: v1::SessionExecRequest,
) -> Result<(String, Ask, Option<Bytes>)> {
    let id = sandbox_of(services, caller, &asked.session_id, &asked.sandbox_id).await?;
    let text = match (asked.command.is_empty(), asked.command_bytes.is_empty()) {
        (_, true) => asked.command.into_bytes(),
        (true, false) => asked.command_bytes.into(),
        (false, false) => {
            return Err(Problem::invalid("give `command` or `command_bytes`, not both"));
        }
    };
    let input = Some(asked.stdin).filter(|bytes| !bytes.is_empty());
    let exec = SessionExec {
        text,
        env: convert::variables(asked.env),
        cwd: Some(asked.cwd).filter(|dir| !dir.is_empty()).map(String::into_bytes),
        timeout_ms: convert::duration(asked.timeout)?.map(|time| time.as_millis().max(1) as u64),
        stdin: input.is_some(),
        changes: asked.options.is_some_and(|options| options.changes),
        restart: asked.restart,
    };
    Ok((id, Ask::SessionExec { which: asked.session_id, exec }, input))
}

/// The same, with input that comes later.
pub(super) fn with_input(ask: Ask) -> Ask {
    match ask {
        Ask::SessionExec { which, exec } => {
            Ask::SessionExec { which, exec: SessionExec { stdin: true, ..exec } }
        }
        other => other,
    }
}

pub(super) async fn log(
    services: &Services,
    request: Request<v1::SessionLogRequest>,
) -> Result<Chunks> {
    let caller = caller(&request)?;
    let asked = request.into_inner();
    let id = sandbox_of(services, &caller, &asked.session_id, &asked.sandbox_id).await?;
    let from = u64::try_from(asked.from).map_err(|_| Problem::invalid("`from` is negative"))?;
    let ask = Ask::SessionLog { which: asked.session_id, from, follow: asked.follow };
    Ok(logs::chunks(services.sandboxes.call(&caller.account, &id, ask).await?))
}
