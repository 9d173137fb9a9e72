//! Commands in the background, with a log.

use std::sync::Arc;

use ringfence_link::channel::Channel;
use ringfence_link::warden::{Code, Command, Failure, ProcessInfo, Reply, StartProcess};

use crate::background::{Background, Kind, Launch, Registry, check_signal, send_log};
use crate::environment::invalid;
use crate::exec::Line;
use crate::journal::event::How;
use crate::sandbox::Sandbox;
use crate::tree::SIGTERM;

mod lines;
mod port;
mod wait;

/// How much of what a process prints is kept.
const LOG: usize = 4 * 1024 * 1024;

const KIND: Kind = Kind {
    noun: "process",
    prefix: "proc_",
    not_found: Code::ProcessNotFound,
    exists: Code::ProcessExists,
    most: 256,
    remembered: 256,
};

#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) registry: Registry,
}

impl Default for Processes {
    fn default() -> Self {
        Self { registry: Registry::new(&KIND) }
    }
}

impl Sandbox {
    pub(crate) fn start_process(
        self: &Arc<Self>,
        start: &StartProcess,
    ) -> Result<ProcessInfo, Failure> {
        let line = Line::of(&start.command)?;
        if matches!(&start.command, Command::Shell(text) if text.trim_ascii().is_empty()) {
            return Err(invalid("there is no command"));
        }
        let session = start.session.as_deref();
        let beginning = self.beginning(session, &start.env, start.cwd.as_deref())?;
        let place = self.processes.registry.reserve(start.id.as_deref())?;
        let launch = Launch {
            how: How::Process,
            command: &start.command,
            line,
            given: &start.env,
            beginning,
            log: LOG,
            screen: None,
        };
        self.launch(place, launch).map(|process| info(&process))
    }

    /// Oldest first.
    pub(crate) fn list_processes(&self) -> Vec<ProcessInfo> {
        self.processes.registry.all().iter().map(|process| info(process)).collect()
    }

    pub(crate) fn process_info(&self, id: &str) -> Result<ProcessInfo, Failure> {
        self.processes.registry.find(id).map(|process| info(&process))
    }

    /// The last reply; none if the caller has hung up.
    pub(crate) fn process_log(
        &self,
        caller: &Channel,
        id: &str,
        from: u64,
        follow: bool,
    ) -> Result<Option<Reply>, Failure> {
        let process = self.processes.registry.find(id)?;
        let status = || Some(process.status());
        Ok(send_log(caller, &process.ring, (from, follow), status).ok())
    }

    /// Signals the whole tree of a process; one that is over already is left alone.
    pub(crate) fn kill_process(&self, id: &str, signal: i32) -> Result<(), Failure> {
        let process = self.processes.registry.find(id)?;
        check_signal(signal)?;
        process.signal(signal);
        self.reactor.wake();
        Ok(())
    }

    /// Asks all to end; how many there were.
    pub(crate) fn kill_all_processes(&self) -> u64 {
        let all = self.processes.registry.all();
        let live: Vec<_> = all.iter().filter(|process| process.is_live()).collect();
        live.iter().for_each(|process| process.signal(SIGTERM));
        self.reactor.wake();
        live.len() as u64
    }
}

fn info(process: &Background) -> ProcessInfo {
    ProcessInfo {
        id: process.id.clone(),
        pid: process.pid,
        command: process.command.clone(),
        session: process.session.clone(),
        status: process.status(),
        created_ms: process.created_ms,
        ended_ms: process.ended_ms(),
        log_end: process.ring.end(),
    }
}
