//! What something in the background begins with: of the sandbox, or of a session.

use std::sync::{Arc, Weak};

use ringfence_link::warden::{Failure, Variable};

use super::Background;
use crate::environment::{check_text, check_variables, directory, environment};
use crate::sandbox::Sandbox;

pub(crate) struct Beginning {
    /// The id of the session it belongs to.
    pub(crate) session: Option<String>,
    /// As `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) cwd: Vec<u8>,
}

impl Beginning {
    /// Programs on a terminal may do more than a dumb one can, unless somebody said which it is.
    pub(crate) fn on_terminal(mut self, given: &[Variable]) -> Self {
        let is_term = |entry: &Vec<u8>| entry.starts_with(b"TERM=");
        let named = self.env.iter().any(|entry| is_term(entry) && entry != b"TERM=dumb");
        if !named && !given.iter().any(|(name, _)| name == b"TERM") {
            self.env.retain(|entry| !is_term(entry));
            self.env.push(b"TERM=xterm-256color".to_vec());
        }
        self
    }

    pub(crate) fn path(&self) -> &[u8] {
        let path = self.env.iter().find_map(|entry| entry.strip_prefix(b"PATH="));
        path.unwrap_or_default()
    }
}

impl Sandbox {
    /// What is given counts more than the session's, and a relative directory is meant from there.
    pub(crate) fn beginning(
        self: &Arc<Self>,
        session: Option<&str>,
        given: &[Variable],
        cwd: Option<&[u8]>,
    ) -> Result<Beginning, Failure> {
        check_variables(given)?;
        let Some(which) = session else {
            let (env, cwd) = (environment(&self.config.env, given), directory(cwd)?);
            return Ok(Beginning { session: None, env, cwd });
        };
        let start = self.start_environment(which)?;
        let replaced = |name: &[u8]| given.iter().any(|(other, _)| other == name);
        let kept = start.env.iter().filter(|(name, _)| !replaced(name));
        let env = kept.chain(given).map(|(name, value)| [name, &b"="[..], value].concat());
        let (env, cwd) = (env.collect(), below(&start.cwd, cwd)?);
        Ok(Beginning { session: Some(start.id), env, cwd })
    }

    /// Lets it end with its session, if it has one.
    pub(super) fn bind(self: &Arc<Self>, background: &Arc<Background>) {
        let Some(session) = &background.session else { return };
        let (sandbox, background) = (Arc::downgrade(self), Arc::downgrade(background));
        let hook = move || end_both(&sandbox, &background);
        self.sessions.on_close(session, Box::new(hook));
    }
}

fn end_both(sandbox: &Weak<Sandbox>, background: &Weak<Background>) {
    if let (Some(sandbox), Some(background)) = (sandbox.upgrade(), background.upgrade()) {
        background.hang_up();
        sandbox.reactor.wake();
    }
}

fn below(cwd: &[u8], given: Option<&[u8]>) -> Result<Vec<u8>, Failure> {
    match given {
        None | Some([]) => Ok(cwd.to_vec()),
        Some([b'/', ..]) => directory(given),
        Some(relative) => {
            check_text(relative, "the working directory")?;
            Ok([cwd, b"/", relative].concat())
        }
    }
}
