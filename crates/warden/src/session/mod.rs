//! Shells that live on.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | which sessions there are: open, find, list, close, limits |
//! | `session` | one of them as others see it, and how they reach its thread |
//! | `keeper` | the thread that drives the shell, one command after the other |
//! | `run`, `early` | one command, and how it is ended before its time |
//! | `caller` | who asked for it: output, input, hanging up |
//! | `shell` | the shell and everything that has to be attended to while it lives |
//! | `files`, `driver`, `terminal`, `groups` | its files, the way lines take, its terminal, its cgroups |
//! | `watch` | what is waited for |
//! | `protocol` | what is said to a shell and what it says back |

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_link::channel::Channel;
use ringfence_link::warden::{
    Code, Failure, OpenSession, Reply, SessionExec, SessionInfo, Variable,
};

mod caller;
mod driver;
mod early;
mod files;
mod groups;
mod keeper;
mod protocol;
mod run;
#[allow(clippy::module_inception)]
mod session;
mod shell;
mod terminal;
mod watch;

use keeper::Keeper;
use protocol::{ShellKind, exports};
use session::{Phase, Plan, Queued, Session};
use shell::{Recipe, Shell};

use crate::environment::{check_text, check_variables, directory, environment, invalid};
use crate::sandbox::{Sandbox, failure, internal};

/// The session that every sandbox has.
const DEFAULT: &str = "default";
/// How many sessions of a sandbox can be open at once. As many that have ended are remembered.
const MOST: usize = 64;
const LONGEST_NAME: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// The oldest first.
    all: Mutex<Vec<Arc<Session>>>,
    numbers: AtomicU64,
}

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
            Ok(()) => session.enter(Phase::Live),
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
                let program = find(name).ok_or_else(|| invalid(format!("no shell {name:?}")))?;
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
            invalid(format!("{label:?} is not a shell that sessions know: bash, dash, busybox"))
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
        session.submit(Queued { caller, exec })
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

impl Sessions {
    /// Calls `hook` when the session's shell ends or the session is closed; at once if it has.
    pub(crate) fn on_close(&self, id: &str, hook: Box<dyn FnOnce() + Send>) {
        match self.find(id) {
            Some(session) => session.on_close(hook),
            None => hook(),
        }
    }

    /// Signals a running command of a session. Whether there is one of that name.
    pub(crate) fn signal(&self, command: &str, signal: i32) -> bool {
        let all = self.all.lock().clone();
        all.iter().any(|session| session.signal(command, signal))
    }

    /// The sandbox ends: has all of them closed, without waiting.
    pub(crate) fn close_all(&self, reason: &str) {
        let all = self.all.lock().clone();
        all.iter().for_each(|session| session.ask_to_close(reason));
    }

    /// Waits until all of them are closed, but not for ever.
    pub(crate) fn wait_closed(&self, longest: Duration) {
        let (all, deadline) = (self.all.lock().clone(), Instant::now() + longest);
        all.iter().for_each(|session| session.wait_closed(Some(deadline)));
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn find(&self, which: &str) -> Option<Arc<Session>> {
        self.all.lock().iter().find(|session| session.answers_to(which)).cloned()
    }

    fn forget(&self, session: &Arc<Session>) {
        self.all.lock().retain(|known| !Arc::ptr_eq(known, session));
    }

    /// Takes a place and a name for a session that is being opened.
    fn reserve(
        &self,
        options: &OpenSession,
        shell: String,
        recipe: Recipe,
    ) -> Result<Arc<Session>, Failure> {
        let id = new_id()?;
        let mut all = self.all.lock();
        let replaced = match &options.name {
            Some(name) => free_name(&mut all, name)?,
            None => None,
        };
        if all.iter().filter(|session| is_open(session)).count() >= MOST {
            let text = format!("there are {MOST} sessions already: close one of them");
            return Err(failure(Code::LimitReached, text));
        }
        let name = options.name.clone().unwrap_or_else(|| new_name(&all));
        let number = self.next_number();
        let timeout_ms = options.timeout_ms;
        let plan = Plan { id, name, shell, number, timeout_ms, recipe };
        let session = Arc::new(Session::new(plan)?);
        all.push(session.clone());
        let surplus = drop_surplus(&mut all);
        drop(all);
        for old in replaced.into_iter().chain(surplus) {
            old.ask_to_close("replaced");
        }
        Ok(session)
    }
}

/// Makes room for a name: one that has ended gives up its own.
fn free_name(
    all: &mut Vec<Arc<Session>>,
    name: &str,
) -> Result<Option<Arc<Session>>, Failure> {
    let Some(at) = all.iter().position(|session| session.name == name) else { return Ok(None) };
    match all[at].phase() {
        Phase::Ended(_) => Ok(Some(all.remove(at))),
        _ => Err(failure(Code::SessionExists, format!("there is a session {name:?} already"))),
    }
}

/// The oldest of those that have ended, if they are too many.
fn drop_surplus(all: &mut Vec<Arc<Session>>) -> Option<Arc<Session>> {
    let ended = |session: &Arc<Session>| !is_open(session) && session.name != DEFAULT;
    let too_many = all.iter().filter(|session| ended(session)).count() > MOST;
    let at = all.iter().position(ended).filter(|_| too_many)?;
    Some(all.remove(at))
}

fn split(entry: &[u8]) -> Variable {
    let at = entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
    (entry[..at].to_vec(), entry.get(at + 1..).unwrap_or_default().to_vec())
}

fn is_open(session: &Arc<Session>) -> bool {
    matches!(session.phase(), Phase::Opening | Phase::Live)
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

fn new_name(all: &[Arc<Session>]) -> String {
    let taken = |name: &String| all.iter().any(|session| session.name == *name);
    let mut names = (1u64..).map(|n| format!("session-{n}"));
    names.find(|name| !taken(name)).unwrap_or_default()
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix("sess_");
    digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn new_id() -> Result<String, Failure> {
    use std::io::Read;
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").map_err(internal)?;
    source.read_exact(&mut bytes).map_err(internal)?;
    Ok(format!("sess_{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_name() {
        let id = new_id().unwrap();
        assert!(is_id(&id) && check_name(&id).is_err());
        assert_ne!(id, new_id().unwrap());
        for bad in ["", "a\n", &"x".repeat(129)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("sess_1").is_ok() && check_name("meine Sitzung").is_ok());
    }
}
