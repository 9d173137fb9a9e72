//! Commands in the background: starting, logs, waits, ends.

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Command, HttpCheck, ProcessInfo, ProcessStatus, Reply, Request, StartProcess, Until,
};

use crate::support::{PATIENCE, Sandbox};

mod ends;
mod logs;
mod many;
mod of_session;
mod servers;
mod start;
mod waits;

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGUSR1: i32 = 10;
const SIGTERM: i32 = 15;

fn shell(text: &str) -> StartProcess {
    of(Command::Shell(text.into()))
}

fn argv(words: &[&str]) -> StartProcess {
    of(Command::Argv(words.iter().map(|word| word.as_bytes().to_vec()).collect()))
}

fn of(command: Command) -> StartProcess {
    StartProcess { command, session: None, env: vec![], cwd: None, id: None }
}

fn named(id: &str, text: &str) -> StartProcess {
    StartProcess { id: Some(id.into()), ..shell(text) }
}

fn http(path: &str, status_from: u16, status_to: u16) -> Option<HttpCheck> {
    Some(HttpCheck { path: path.into(), status_from, status_to })
}

impl Sandbox {
    fn try_start(&self, start: StartProcess) -> Result<ProcessInfo, ClientError> {
        process_of(self.client.ask(Request::StartProcess(start)))
    }

    fn start(&self, text: &str) -> ProcessInfo {
        self.try_start(shell(text)).unwrap()
    }

    fn process(&self, id: &str) -> Result<ProcessInfo, ClientError> {
        process_of(self.client.ask(Request::Process { id: id.into() }))
    }

    fn status(&self, id: &str) -> ProcessStatus {
        self.process(id).unwrap().status
    }

    fn processes(&self) -> Vec<ProcessInfo> {
        match self.client.ask(Request::Processes).unwrap() {
            Reply::Processes(list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn follow(&self, id: &str, from: u64) -> Ongoing {
        self.client.call(Request::ProcessLog { id: id.into(), from, follow: true }).unwrap()
    }

    /// Follows a process to its end.
    fn log(&self, id: &str) -> Log {
        read_log(&self.follow(id, 0))
    }

    fn stored_log(&self, id: &str, from: u64) -> Log {
        let request = Request::ProcessLog { id: id.into(), from, follow: false };
        read_log(&self.client.call(request).unwrap())
    }

    fn wait(&self, id: &str, until: Until) -> Result<Reply, ClientError> {
        self.wait_for(id, until, PATIENCE.as_millis() as u64)
    }

    fn wait_for(&self, id: &str, until: Until, ms: u64) -> Result<Reply, ClientError> {
        self.client.ask(Request::WaitProcess { id: id.into(), until, timeout_ms: Some(ms) })
    }

    fn ended(&self, id: &str) -> ProcessStatus {
        process_of(self.wait(id, Until::Exit)).unwrap().status
    }

    /// Waits for a text, and returns the line.
    fn line(&self, id: &str, text: &str) -> String {
        line_of(self.wait(id, Until::Text(text.into())))
    }

    fn kill(&self, id: &str, signal: i32) -> Result<Reply, ClientError> {
        self.client.ask(Request::KillProcess { id: id.into(), signal })
    }

    /// How many there were.
    fn kill_all(&self) -> u64 {
        match self.client.ask(Request::KillAllProcesses).unwrap() {
            Reply::Count(count) => count,
            other => panic!("{other:?}"),
        }
    }
}

fn process_of(reply: Result<Reply, ClientError>) -> Result<ProcessInfo, ClientError> {
    match reply? {
        Reply::Process(info) => Ok(info),
        other => panic!("{other:?}"),
    }
}

fn line_of(reply: Result<Reply, ClientError>) -> String {
    match reply.unwrap() {
        Reply::Ready { line: Some(line) } => String::from_utf8(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What a process printed and how that ended.
#[derive(Debug, Default)]
struct Log {
    from: Vec<u64>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    next: u64,
    status: Option<ProcessStatus>,
}

impl Log {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

fn read_log(call: &Ongoing) -> Log {
    let mut log = Log::default();
    let last = call.finish(|event| match event {
        Event::Output(bytes) => log.stdout.extend(bytes),
        Event::Error(bytes) => log.stderr.extend(bytes),
        Event::Reply(Reply::Log { from }, _) => log.from.push(*from),
        Event::Reply(other, _) => panic!("{other:?}"),
    });
    match last.unwrap() {
        Reply::LogEnd { next, status } => Log { next, status, ..log },
        other => panic!("{other:?}"),
    }
}

/// The bytes of the next frame of a log that is not a message.
fn next_bytes(call: &Ongoing) -> Vec<u8> {
    loop {
        match call.next().unwrap() {
            Event::Output(bytes) | Event::Error(bytes) => return bytes,
            Event::Reply(Reply::Log { .. }, _) => {}
            other => panic!("{other:?}"),
        }
    }
}
