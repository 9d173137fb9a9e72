//! What runs inside: every question of this kind is one for the warden.

use ringfence_link::client::ClientError;
use ringfence_link::warden::{self, Failure, Reply, Request};

use super::Sandboxes;
use crate::problem::{Code, Problem, Result};
use crate::wardens::call::Call;

impl Sandboxes {
    /// Begins a call; dropping it hangs up.
    pub async fn call(&self, account: &str, id: &str, request: Request) -> Result<Call> {
        let socket = self.socket(account, id)?;
        Call::begin(&socket, request).await.map_err(problem_of)
    }

    /// A call with one answer.
    pub async fn ask(&self, account: &str, id: &str, request: Request) -> Result<Reply> {
        let socket = self.socket(account, id)?;
        Call::ask(&socket, request).await.map_err(problem_of)
    }
}

/// What a warden's refusal is to a caller of this API.
pub fn problem_of(error: ClientError) -> Problem {
    match error {
        ClientError::Refused(failure) => refusal(failure),
        ClientError::Lost | ClientError::Unreachable(_) => {
            Problem::new(Code::SandboxNotRunning, "the sandbox ended in the middle of the call")
        }
        other => Problem::internal("ask the sandbox", other),
    }
}

/// What went wrong inside a warden may name paths of the host, so it goes to the log.
pub(super) fn refusal(Failure { code, message, details }: Failure) -> Problem {
    let code = match code {
        warden::Code::InvalidArgument => Code::InvalidArgument,
        warden::Code::SessionNotFound => Code::SessionNotFound,
        warden::Code::SessionClosed => Code::SessionClosed,
        warden::Code::SessionExists => Code::SessionAlreadyExists,
        warden::Code::ProcessNotFound => Code::ProcessNotFound,
        warden::Code::ProcessExists => Code::ProcessAlreadyExists,
        warden::Code::TerminalNotFound => Code::TerminalNotFound,
        warden::Code::TerminalExists => Code::TerminalAlreadyExists,
        warden::Code::LimitReached => Code::ResourceLimitExceeded,
        warden::Code::TimedOut => Code::WaitTimeout,
        warden::Code::ExitedFirst => Code::ProcessExited,
        warden::Code::NotRunning => Code::SandboxNotRunning,
        warden::Code::Unsupported => Code::Unsupported,
        warden::Code::FileNotFound => Code::FileNotFound,
        warden::Code::PermissionDenied => Code::PermissionDenied,
        warden::Code::FileExists => Code::FileAlreadyExists,
        warden::Code::NotADirectory
        | warden::Code::IsADirectory
        | warden::Code::DirectoryNotEmpty => Code::InvalidArgument,
        warden::Code::Internal => return Problem::internal("do this in the sandbox", message),
    };
    let problem = Problem::new(code, message);
    details.into_iter().fold(problem, |problem, (key, value)| match key.as_str() {
        "needed" => problem.with("level_needed", value),
        key => problem.with(key, value),
    })
}

impl Sandboxes {
    /// The sandbox of this account that has a session of this id. Ids are unique over all of them.
    pub async fn sandbox_of_session(&self, account: &str, session: &str) -> Result<String> {
        let not_found = || Problem::new(Code::SessionNotFound, "session not found");
        if !session.starts_with("sess_") {
            return Err(not_found());
        }
        let known = self.inner.sessions.lock().get(session).cloned();
        if let Some(id) = known.filter(|id| self.get(account, id).is_ok()) {
            return Ok(id);
        }
        for record in self.inner.store.running_sandboxes(account)? {
            let which = Request::Session { which: session.into() };
            if self.ask(account, &record.id, which).await.is_ok() {
                self.inner.sessions.lock().insert(session.into(), record.id.clone());
                return Ok(record.id);
            }
        }
        Err(not_found())
    }
}
