//! `ringfence serve --for-process`, started for a test, with a process that it belongs to.

use std::io::{BufRead, BufReader};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use ringfence_runtime::users::HOST_LOCKS;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::Channel;

use super::server::connect;
use super::{Sandbox, eventually, processes_with, unique_sleep};
use crate::leftovers::Leftovers;

/// A server and its owner.
pub(crate) struct Owned {
    pub(crate) channel: Channel,
    pub(crate) socket: PathBuf,
    pub(crate) owner: Started,
    pub(crate) server: Started,
    scratch: Arc<TempDir>,
}

impl Owned {
    pub(crate) async fn start() -> Self {
        Self::in_scratch(Arc::new(tempfile::tempdir().unwrap())).await
    }

    /// Another one of the same state directory.
    pub(crate) async fn beside(&self) -> Self {
        Self::in_scratch(self.scratch.clone()).await
    }

    async fn in_scratch(scratch: Arc<TempDir>) -> Self {
        let owner = Started::sleeper();
        let state = scratch.path().join("state");
        let mut server = Started::by(serve(owner.id(), &state).stdout(Stdio::piped()));
        let socket = socket_of(&mut server);
        let channel = connect(socket.clone()).await;
        Self { channel, socket, owner, server, scratch }
    }

    pub(crate) async fn sandbox(&self) -> Sandbox {
        Sandbox::start(&self.channel, &[]).await
    }

    /// The directory of everything it has.
    pub(crate) fn place(&self) -> PathBuf {
        self.socket.parent().unwrap().into()
    }

    /// How many servers have something in the state directory.
    pub(crate) fn places(&self) -> usize {
        std::fs::read_dir(self.scratch.path().join("state/processes")).unwrap().count()
    }

    pub(crate) fn leftovers(&self, sandbox: &Sandbox) -> Leftovers {
        let dir = self.place().join("sandboxes").join(&sandbox.id);
        Leftovers::of(&sandbox.id, &dir, Path::new(HOST_LOCKS))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let server = Pid::from_raw(self.server.id() as i32).unwrap();
        kill_process(server, signal).unwrap();
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the server ends", || {
            status = self.server.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// It has ended in order, and nothing is left of it and this sandbox.
    pub(crate) async fn left_nothing(mut self, sandbox: &Sandbox) {
        assert!(self.ended().await.success());
        assert_eq!(processes_with(self.place().to_str().unwrap()), [0; 0], "wardens end first");
        self.leftovers(sandbox).assert_none();
        assert!(!self.place().exists());
        assert_eq!(self.places(), 0);
    }
}

/// A process that ends with this.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn by(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// One that does nothing, for long.
    pub(crate) fn sleeper() -> Self {
        Self::by(Command::new("sleep").arg(unique_sleep()))
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command line, as a program would have it.
pub(crate) fn serve(owner: u32, state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    command.args(["serve", "--for-process", &owner.to_string(), "--state"]).arg(state);
    command.stdin(Stdio::null());
    command
}

/// Where it says that it listens. Nobody reads what it says from then on.
pub(crate) fn socket_of(server: &mut Child) -> PathBuf {
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim_end().strip_prefix("ready ").unwrap_or_else(|| panic!("{line:?}")).into()
}
