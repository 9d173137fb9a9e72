//! Shells that live on, in each of the three that are known well; `zsh` says what a fourth can.
//!
//! Numbers in comments are those of the list in `reference/cloudflare.md` 6, whose promises these
//! tests keep. Not here, because it belongs to the server: 1 (the time stamp of an answer),
//! 26 (the code of its refusal), 49 (a request without an id), 56 (several variables at once).

use std::sync::atomic::{AtomicU32, Ordering};

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Code, Control, OpenSession, Reply, Request, SessionExec, SessionInfo, Variable,
};

use crate::support::{Run, Sandbox, eventually, processes_with};

/// Makes three tests of each promise. `s` is a session in a sandbox of its own.
macro_rules! in_every_shell {
    ($($(#[$comment:meta])* fn $name:ident($s:ident) $body:block)*) => { $(
        $(#[$comment])*
        pub(crate) mod $name {
            #[allow(unused_imports)]
            use super::*;

            pub(crate) fn promise($s: &crate::sessions::Session) $body

            #[test]
            fn bash() {
                crate::support::require_sandbox!();
                crate::sessions::keep_promise("bash", promise);
            }

            #[test]
            fn dash() {
                crate::support::require_sandbox!();
                crate::sessions::keep_promise("dash", promise);
            }

            #[test]
            fn busybox() {
                crate::support::require_sandbox!();
                crate::sessions::keep_promise("busybox", promise);
            }
        }
    )* };
}

mod basics;
mod calls;
mod ending;
mod endurance;
mod jobs;
mod life;
mod log;
mod memory;
mod names;
mod terminal;
mod texts;
mod turns;
mod zsh;

/// A session to ask.
pub(crate) struct Session {
    pub(crate) sandbox: Sandbox,
    pub(crate) id: String,
    pub(crate) shell: &'static str,
}

fn keep_promise(shell: &'static str, promise: fn(&Session)) {
    let found = std::process::Command::new("which").arg(shell).output();
    if !found.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(), "no {shell}");
        eprintln!("skipped: no {shell}");
        return;
    }
    let sandbox = Sandbox::new();
    let id = sandbox.open(options(shell)).unwrap().id;
    promise(&Session { sandbox, id, shell });
}

pub(crate) fn options(shell: &str) -> OpenSession {
    OpenSession { shell: Some(shell.into()), ..OpenSession::default() }
}

pub(crate) fn named(shell: &str, name: &str) -> OpenSession {
    OpenSession { name: Some(name.into()), ..options(shell) }
}

/// A command with a time limit, in milliseconds.
pub(crate) fn limited(text: impl Into<Vec<u8>>, timeout_ms: u64) -> SessionExec {
    SessionExec { timeout_ms: Some(timeout_ms), ..SessionExec::new(text) }
}

pub(crate) fn within(text: &str, cwd: &str) -> SessionExec {
    SessionExec { cwd: Some(cwd.into()), ..SessionExec::new(text) }
}

pub(crate) fn with_env(text: &str, env: &[(&str, &str)]) -> SessionExec {
    SessionExec { env: variables(env), ..SessionExec::new(text) }
}

pub(crate) fn variables(env: &[(&str, &str)]) -> Vec<Variable> {
    env.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

impl Session {
    pub(crate) fn exec(&self, exec: SessionExec) -> Run {
        self.sandbox.in_session(&self.id, exec).unwrap()
    }

    pub(crate) fn run(&self, text: impl Into<Vec<u8>>) -> Run {
        self.exec(SessionExec::new(text))
    }

    /// Runs what must succeed without a complaint, and returns what it printed.
    pub(crate) fn ok(&self, text: &str) -> String {
        self.ok_exec(SessionExec::new(text))
    }

    pub(crate) fn ok_exec(&self, exec: SessionExec) -> String {
        let text = String::from_utf8_lossy(&exec.text).into_owned();
        let run = self.exec(exec);
        assert_eq!((run.code(), run.err().as_str()), (0, ""), "{text}: {run:?}");
        assert!(!run.outcome.session_ended && !run.outcome.timed_out, "{text}: {run:?}");
        run.out()
    }

    /// Begins a command and returns when it runs.
    pub(crate) fn begin(&self, exec: SessionExec) -> (Ongoing, String) {
        begin(&self.sandbox, &self.id, exec)
    }

    /// Whether the kernel knows which processes belong to a command. Where it does not, those that
    /// leave their parents are lost.
    pub(crate) fn is_tracked(&self) -> bool {
        self.sandbox.info().tracking == "cgroup"
    }

    pub(crate) fn info(&self) -> SessionInfo {
        info(&self.sandbox, &self.id).unwrap()
    }

    /// A FIFO inside that a command can wait at until [`Session::open_gate`].
    pub(crate) fn gate(&self, name: &str) -> String {
        self.sandbox.ok(&format!("mkfifo /tmp/{name}"));
        format!("cat /tmp/{name} >/dev/null")
    }

    pub(crate) fn open_gate(&self, name: &str) {
        self.sandbox.ok(&format!(": >/tmp/{name}"));
    }

    /// Ends in any way; the answer to later calls.
    pub(crate) fn refusal(&self, exec: SessionExec) -> (Code, String) {
        match self.sandbox.in_session(&self.id, exec) {
            Err(ClientError::Refused(failure)) => (failure.code, failure.message),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn begin(sandbox: &Sandbox, which: &str, exec: SessionExec) -> (Ongoing, String) {
    let which = which.to_owned();
    let call = sandbox.client.call(Request::SessionExec { which, exec }).unwrap();
    match call.next().unwrap() {
        Event::Reply(Reply::Started { command }, _) => (call, command),
        other => panic!("{other:?}"),
    }
}

/// Reads from a call until its output holds a text.
pub(crate) fn until(call: &Ongoing, text: &str) -> String {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        match call.next().unwrap() {
            Event::Output(bytes) => all.extend(bytes),
            Event::Error(_) => {}
            other => panic!("{other:?} before {text:?} in {:?}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

pub(crate) fn info(sandbox: &Sandbox, which: &str) -> Result<SessionInfo, ClientError> {
    match sandbox.client.ask(Request::Session { which: which.into() })? {
        Reply::Session(info) => Ok(info),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn list(sandbox: &Sandbox) -> Vec<SessionInfo> {
    match sandbox.client.ask(Request::Sessions).unwrap() {
        Reply::Sessions(list) => list,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn close(sandbox: &Sandbox, which: &str) -> Result<(), ClientError> {
    sandbox.client.ask(Request::CloseSession { which: which.into() }).map(drop)
}

pub(crate) fn cancel(call: &Ongoing) {
    call.control(Control::Cancel).unwrap();
}

/// A number of seconds, long and like no other: processes that sleep for it can be found.
pub(crate) fn long() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("3{:03}.{}77", number, std::process::id())
}

pub(crate) fn gone(text: &str) {
    eventually(&format!("no process with {text}"), || processes_with(text).is_empty());
}

pub(crate) fn there(text: &str, count: usize) {
    eventually(&format!("processes with {text}"), || processes_with(text).len() >= count);
}
