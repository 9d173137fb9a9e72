//! The warden's end of the link to init.
//!
//! Requests carry numbers; a thread reads the answers and hands each to who asked. Nothing init
//! says is trusted: unknown numbers are dropped, and whether a process lives is asked of its pidfd.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_link::VERSION;
use ringfence_link::channel::{Channel, UNTRUSTED_LIMIT};
use ringfence_link::init::{Confinement, Ending, FromInit, ShellFiles, Spawn, Step, ToInit, Usage};

/// How long init may take for what is a matter of microseconds, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Inside {
    sender: Mutex<Channel>,
    waiting: Mutex<HashMap<u64, SyncSender<Answer>>>,
    next: AtomicU64,
    gone: AtomicBool,
    confinement: Confinement,
}

type Answer = (FromInit, Vec<OwnedFd>);

/// A program that init started.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) id: u64,
    /// As it is called inside.
    pub(crate) pid: i32,
    /// As it is called outside; 0 if that cannot be found out.
    pub(crate) host_pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// The other side of its terminal.
    pub(crate) terminal: Option<OwnedFd>,
    answers: Receiver<Answer>,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnFailure {
    #[error("{source}")]
    Refused { step: Step, source: io::Error },
    #[error("the sandbox has ended")]
    Gone,
}

impl Inside {
    /// Takes the other end's first message and begins to listen.
    pub(crate) fn greet(socket: OwnedFd) -> io::Result<Arc<Self>> {
        let channel = Channel::from_fd(socket, UNTRUSTED_LIMIT);
        let (hello, _) = channel.receive().map_err(io::Error::other)?;
        let FromInit::Hello { version: VERSION, confinement } = hello else {
            return Err(io::Error::other("init speaks another version"));
        };
        let sender = Mutex::new(channel.try_clone()?);
        let inside = Arc::new(Self {
            sender,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            gone: AtomicBool::new(false),
            confinement,
        });
        let listener = inside.clone();
        std::thread::Builder::new()
            .name("inside".into())
            .spawn(move || listener.listen(&channel))?;
        Ok(inside)
    }

    pub(crate) fn confinement(&self) -> Confinement {
        self.confinement
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Ends the link; init ends by itself when it sees that.
    pub(crate) fn hang_up(&self) {
        self.sender.lock().shut_down();
    }

    fn listen(&self, channel: &Channel) {
        while let Ok((message, fds)) = channel.receive::<FromInit>() {
            let id = match &message {
                FromInit::Hello { .. } => continue,
                FromInit::Started { id, .. }
                | FromInit::Failed { id, .. }
                | FromInit::Ended { id, .. }
                | FromInit::Made { id }
                | FromInit::Connected { id }
                | FromInit::Found { id, .. }
                | FromInit::Refused { id, .. } => *id,
            };
            let mut waiting = self.waiting.lock();
            let listens = waiting.get(&id).is_some_and(|who| who.try_send((message, fds)).is_ok());
            if !listens {
                waiting.remove(&id);
            }
        }
        self.gone.store(true, Ordering::Release);
        // Whoever waits learns it from the closed channel.
        self.waiting.lock().clear();
    }

    /// Starts a program; `fds` as [`Spawn`] says, the cgroup last.
    pub(crate) fn spawn(
        &self,
        mut request: Spawn,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Program, SpawnFailure> {
        let (id, answers) = self.register();
        request.id = id;
        self.tell(&ToInit::Spawn(request), fds).map_err(|_| SpawnFailure::Gone)?;
        match answers.recv_timeout(PATIENCE) {
            Ok((FromInit::Started { pid, .. }, fds)) => {
                let mut fds = fds.into_iter();
                let pidfd = fds.next().ok_or(SpawnFailure::Gone)?;
                let host_pid = host_pid(&pidfd);
                Ok(Program { id, pid, host_pid, pidfd, terminal: fds.next(), answers })
            }
            Ok((FromInit::Failed { step, errno, .. }, _)) => {
                self.forget(id);
                Err(SpawnFailure::Refused { step, source: io::Error::from_raw_os_error(errno) })
            }
            _ => Err(SpawnFailure::Gone),
        }
    }

    /// Signals a program and what init finds to come from it, where no cgroup knows better.
    pub(crate) fn signal(&self, pid: i32, signal: i32) {
        let _ = self.tell(&ToInit::Signal { pid, signal }, &[]);
    }

    pub(crate) fn make_files(&self, session: u64, spec: ShellFiles) -> io::Result<Vec<OwnedFd>> {
        self.ask(|id| ToInit::ShellFiles { id, session, spec })
    }

    pub(crate) fn remove_files(&self, session: u64) {
        let _ = self.tell(&ToInit::RemoveFiles { session }, &[]);
    }

    /// A socket that is being connected to a port inside.
    pub(crate) fn connect(&self, port: u16) -> io::Result<OwnedFd> {
        let fds = self.ask(|id| ToInit::Connect { id, port })?;
        fds.into_iter().next().ok_or_else(|| io::Error::other("init sent no socket"))
    }

    /// The file inside that a program is, links followed.
    pub(crate) fn find_program(&self, name: &[u8], path: &[u8]) -> io::Result<Vec<u8>> {
        let (name, path) = (name.to_vec(), path.to_vec());
        match self.ask_for(|id| ToInit::FindProgram { id, name, path })? {
            (FromInit::Found { file, .. }, _) => Ok(file),
            _ => Err(io::Error::other("init answered something else")),
        }
    }

    fn ask(&self, request: impl FnOnce(u64) -> ToInit) -> io::Result<Vec<OwnedFd>> {
        self.ask_for(request).map(|(_, fds)| fds)
    }

    fn ask_for(&self, request: impl FnOnce(u64) -> ToInit) -> io::Result<Answer> {
        let (id, answers) = self.register();
        self.tell(&request(id), &[])?;
        let answer = answers.recv_timeout(PATIENCE);
        self.forget(id);
        match answer {
            Ok((FromInit::Refused { errno, .. }, _)) => Err(io::Error::from_raw_os_error(errno)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(io::Error::other("the sandbox has ended")),
        }
    }

    fn register(&self) -> (u64, Receiver<Answer>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // One answer, and one more when a program ends; what is said beyond that is dropped.
        let (sender, receiver) = sync_channel(2);
        if !self.is_gone() {
            self.waiting.lock().insert(id, sender);
        }
        (id, receiver)
    }

    pub(crate) fn forget(&self, id: u64) {
        self.waiting.lock().remove(&id);
    }

    fn tell(&self, message: &ToInit, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.sender.lock().send(message, fds).map_err(io::Error::other)
    }
}

impl Program {
    /// How it ended. To be asked when the pidfd says that it has; without init's word for it (init
    /// is gone, or no longer answers) it counts as killed.
    pub(crate) fn ending(&self) -> (Ending, Usage) {
        let lost = (Ending::Signalled(9), Usage::default());
        loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok((FromInit::Ended { ending, usage, .. }, _)) => return (ending, usage),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return lost,
            }
        }
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The number of a process in this process's namespace.
fn host_pid(pidfd: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()));
    let pid = info.ok().and_then(|info| {
        let line = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
        line.trim().parse().ok()
    });
    pid.unwrap_or(0)
}
