//! Shells that live on.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | what can be asked of them |
//! | `registry` | which there are, and how many there may be |
//! | `session` | one of them as others see it, and how they reach its thread |
//! | `keeper` | the thread that drives the shell, one command after the other |
//! | `run`, `early`, `conclude` | one command; how it is ended before its time; its end |
//! | `caller` | who asked for it: output, input, hanging up |
//! | `start`, `shell` | a shell, and everything that has to be attended to while it lives |
//! | `files`, `driver` | the files it is driven through, and the way lines take |
//! | `groups`, `kin` | its cgroups, and what to do without |
//! | `memory` | how much memory a command has |
//! | `terminal`, `watch` | its terminal; what is waited for |
//! | `protocol` | what is said to a shell and what it says back |

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ringfence_link::channel::Channel;
use ringfence_link::warden::{
    Code, Failure, OpenSession, Reply, SessionExec, SessionInfo, Variable,
};

mod caller;
mod conclude;
mod driver;
mod early;
mod files;
mod groups;
mod keeper;
mod kin;
mod memory;
mod protocol;
mod registry;
mod run;
#[allow(clippy::module_inception)]
mod session;
mod shell;
mod start;
mod terminal;
mod watch;

use keeper::Keeper;
use protocol::{ShellKind, exports};
pub(crate) use registry::Sessions;
use session::{Phase, Queued, Session};
use shell::Shell;
use start::Recipe;

use crate::environment::{check_text, check_variables, directory, environment, invalid};
use crate::sandbox::{Sandbox, failure, internal};

/// The session that every sandbox has.
const DEFAULT: &str = "default";
const LONGEST_NAME: usize = 128;
/// What can be asked for.
const KNOWN: &str = "bash, sh, dash, busybox, and zsh where it is installed";

/// What something that is started in a session begins with: what the last finished command left.
#[derive(Debug, Clone)]
pub(crate) struct SessionStart {
    pub(crate) id: String,
    pub(crate) cwd: Vec<u8>,
    /// All exported variables, and no others.
    pub(crate) env: Vec<Variable>,
}

impl Sandbox {
    pub(crate) fn open_session(
        self: &Arc<Self>,
        options: &OpenSession,
    ) -> Result<SessionInfo, Failure> {
        if let Some(name) = &options.name {
            check_name(name)?;
        }
        self.try_open(options).map(|session| session.info())
    }

    fn try_open(self: &Arc<Self>, options: &OpenSession) -> Result<Arc<Session>, Failure> {
        check_variables(&options.env)?;
        let (shell, recipe) = self.recipe(options)?;
        let session = self.sessions.reserve(options, shell, recipe)?;
        let ends = (&session.log, &session.wake);
        let started = Shell::start(self, session.number, &session.recipe, ends);
        let kept = started.and_then(|mut shell| {
            session.settle(shell.directory(), Some(shell.take_answer()));
            keeper::record_opened(self, &session, &session.recipe);
            Keeper::start(self, &session, shell).map_err(internal)
        });
        match kept {
            Ok(()) => session.open(),
            Err(failure) => {
                self.sessions.forget(&session);
                session.enter(Phase::Failed(failure.clone()));
                return Err(failure);
            }
        }
        Ok(session)
    }

    /// Which shell it is to be, and how it starts.
    fn recipe(&self, options: &OpenSession) -> Result<(String, Recipe), Failure> {
        let env = environment(&self.config.env, &options.env);
        let env: Vec<Variable> = env.iter().map(|entry| split(entry)).collect();
        let path = env.iter().find(|(name, _)| name == b"PATH").map(|(_, value)| value.clone());
        let path = path.unwrap_or_default();
        let find = |name: &str| self.inside.find_program(name.as_bytes(), &path).ok();
        let cwd = directory(options.cwd.as_deref())?;
        let (label, program) = match options.shell.as_deref() {
            Some(name) => {
                check_text(name.as_bytes(), "the name of the shell")?;
                let none =
                    || invalid(format!("there is no shell {name:?} inside; possible: {KNOWN}"));
                let program = find(name).ok_or_else(none)?;
                (name.to_owned(), program)
            }
            None => {
                let program = find("bash").or_else(|| find("sh"));
                let program = program.ok_or_else(|| invalid("there is no shell, not even sh"))?;
                (String::from_utf8_lossy(&program).into_owned(), program)
            }
        };
        let file = Path::new(std::ffi::OsStr::from_bytes(&program));
        let kind = ShellKind::detect(file).ok_or_else(|| {
            invalid(format!("{label:?} is not a shell that sessions know: {KNOWN}"))
        })?;
        Ok((label, Recipe { kind, program, cwd, env }))
    }

    /// By id or name; the default one is made if it is not there yet.
    fn session(self: &Arc<Self>, which: &str) -> Result<Arc<Session>, Failure> {
        if let Some(session) = self.sessions.find(which) {
            return session.opened().map(|()| session);
        }
        if which != DEFAULT {
            return Err(not_found(which));
        }
        let options = OpenSession { name: Some(DEFAULT.into()), ..OpenSession::default() };
        match self.try_open(&options) {
            // Somebody else was faster.
            Err(failure) if failure.code == Code::SessionExists => self.session(which),
            result => result,
        }
    }

    pub(crate) fn session_info(self: &Arc<Self>, which: &str) -> Result<SessionInfo, Failure> {
        self.session(which).map(|session| session.info())
    }

    pub(crate) fn list_sessions(&self) -> Vec<SessionInfo> {
        let all = self.sessions.all.lock().clone();
        let open = all.iter().filter(|session| !matches!(session.phase(), Phase::Opening));
        open.map(|session| session.info()).collect()
    }

    /// Has a command run when its turn comes. The session's thread answers the caller.
    pub(crate) fn session_exec(
        self: &Arc<Self>,
        caller: &Channel,
        which: &str,
        exec: SessionExec,
    ) -> Result<(), Failure> {
        check_variables(&exec.env)?;
        check_text(&exec.text, "the command")?;
        if let Some(cwd) = &exec.cwd {
            check_text(cwd, "the working directory")?;
        }
        let session = self.session(which)?;
        let caller = caller.try_clone().map_err(internal)?;
        session.submit(Queued { trace: crate::trace::current(), caller, exec })
    }

    /// Ends everything the session has started. The default one stays.
    pub(crate) fn close_session(&self, which: &str) -> Result<(), Failure> {
        if which == DEFAULT {
            return Ok(());
        }
        let session = self.sessions.find(which).ok_or_else(|| not_found(which))?;
        if session.name != DEFAULT {
            session.opened()?;
            session.ask_to_close("closed");
            session.wait_closed(None);
            self.sessions.forget(&session);
        }
        Ok(())
    }

    pub(crate) fn session_log(
        self: &Arc<Self>,
        caller: &Channel,
        which: &str,
        range: (u64, bool),
    ) -> Result<Option<Reply>, Failure> {
        let session = self.session(which)?;
        Ok(crate::background::send_log(caller, &session.log, range, || None).ok())
    }

    /// What a process or terminal that belongs to a session begins with. Does not wait for a
    /// command that runs.
    pub(crate) fn start_environment(
        self: &Arc<Self>,
        which: &str,
    ) -> Result<SessionStart, Failure> {
        let session = self.session(which)?;
        match session.phase() {
            Phase::Ended(code) => Err(session.ended(code)),
            Phase::Live => {
                let kept = session.kept();
                let env = exports::parse(&kept.exports);
                Ok(SessionStart { id: session.id.clone(), cwd: kept.cwd, env })
            }
            _ => Err(session.closed()),
        }
    }
}

fn split(entry: &[u8]) -> Variable {
    let at = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
    (entry[..at].to_vec(), entry.get(at + 1..).unwrap_or_default().to_vec())
}

fn not_found(which: &str) -> Failure {
    failure(Code::SessionNotFound, format!("there is no session {which:?}"))
}

/// A name that could be an id would make it unclear which one is meant.
fn check_name(name: &str) -> Result<(), Failure> {
    let possible = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.chars().any(char::is_control)
        && !is_id(name);
    match possible {
        true => Ok(()),
        false => Err(invalid(format!("{name:?} cannot be the name of a session"))),
    }
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("sess_");
    digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_name() {
        let id = registry::new_id().unwrap();
        assert!(is_id(&id) && check_name(&id).is_err());
        assert_ne!(id, registry::new_id().unwrap());
        for bad in ["", "a\n", &"x".repeat(129)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("sess_1").is_ok() && check_name("meine Sitzung").is_ok());
    }
}
