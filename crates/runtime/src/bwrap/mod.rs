//! Isolation by bubblewrap.
//!
//! bwrap is started as the sandbox's user and inside its cgroups, makes the namespaces and mounts
//! of the [`plan`], and becomes init. All it needs is on the [stage](crate::stage).

mod failure;
mod plan;

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ringfence_sys::spawn::{Child, Spawn, SpawnError, Step};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::cgroup::SandboxGroup;
use crate::stage::Stage;
use crate::{Hold, Runtime, RuntimeError, Start, Started};
pub(crate) use failure::{INSTALL, complaint, failure};
pub use plan::{INIT, Plan, System, arguments};

/// The places where bwrap is looked for. Not `PATH`: it belongs to whoever called us.
pub(crate) const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// The descriptor on which bwrap tells init's pid; 3 is the socket.
const INFO_FD: i32 = 4;

/// The bubblewrap runtime.
#[derive(Debug, Clone)]
pub struct Bwrap {
    programs: Vec<PathBuf>,
}

impl Default for Bwrap {
    fn default() -> Self {
        Self { programs: PROGRAMS.map(PathBuf::from).to_vec() }
    }
}

impl Bwrap {
    /// Uses this program and no other.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { programs: vec![program.into()] }
    }
}

impl Runtime for Bwrap {
    fn name(&self) -> &'static str {
        "bwrap"
    }

    /// bwrap, which waits outside of the sandbox's pid namespace, and init.
    fn own_processes(&self) -> u64 {
        2
    }

    fn start(&self, start: &Start, group: &SandboxGroup) -> Result<Started, RuntimeError> {
        let stage = Stage::build(start, &start.stage)?;
        let (child, ends) = self.spawn(start, group, &stage).inspect_err(|_| stage.take_down())?;
        finish(child, ends, stage)
    }
}

/// Both ends of everything bwrap is connected with.
struct Ends {
    null: OwnedFd,
    stderr: OwnedFd,
    ours: OwnedFd,
    theirs: OwnedFd,
    info: OwnedFd,
    info_writer: OwnedFd,
}

impl Ends {
    fn new() -> rustix::io::Result<Self> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // Not a pipe: nobody has to read it for init to go on.
        let stderr = rustix::fs::memfd_create("stderr", MemfdFlags::CLOEXEC)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let (info, info_writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { null, stderr, ours, theirs, info, info_writer })
    }

    /// In the order of the numbers they get.
    fn inside(&self) -> Vec<BorrowedFd<'_>> {
        let all = [&self.null, &self.null, &self.stderr, &self.theirs, &self.info_writer];
        all.map(AsFd::as_fd).to_vec()
    }
}

impl Bwrap {
    fn spawn(
        &self,
        start: &Start,
        group: &SandboxGroup,
        stage: &Stage,
    ) -> Result<(Child, Ends), RuntimeError> {
        let ends = Ends::new().map_err(|e| RuntimeError::io("make descriptors for init", e))?;
        let plan = Plan::new(start, stage, INFO_FD);
        let attach = group.attach();
        let spawn = Spawn {
            programs: self
                .programs
                .iter()
                .map(|path| c_string(path.into()))
                .collect::<Result<_, _>>()?,
            argv: argv(&plan)?,
            cwd: Some(c"/".to_owned()),
            fds: ends.inside(),
            new_session: true,
            cgroup: attach.cgroup,
            tasks: attach.tasks,
            user: start.user,
            death_signal: Some(Signal::KILL.as_raw()),
            ..Spawn::default()
        };
        let child = spawn.start().map_err(not_started)?;
        drop(spawn);
        Ok((child, ends))
    }
}

/// Waits for bwrap to tell that init exists, or to end with a complaint.
fn finish(child: Child, ends: Ends, stage: Stage) -> Result<Started, RuntimeError> {
    let Ends { stderr, ours, theirs, info, info_writer, .. } = ends;
    drop((theirs, info_writer));
    match init_pid(&read_all(&info, &child)) {
        Some(init_pid) => {
            let init = descriptor(init_pid);
            make_killable(child.pid.as_raw_pid());
            make_killable(init_pid);
            let hold = Hold::Stage { stage, stderr };
            Ok(Started { child, socket: ours, env: Vec::new(), init_pid, init, hold })
        }
        None => {
            reap(&child);
            stage.take_down();
            Err(failure(&complaint(&stderr)))
        }
    }
}

/// A server protected from the OOM killer must not hand that down. Written by root this is also the
/// least that any process inside can give itself, so it is done before init is told anything.
fn make_killable(pid: i32) {
    // One that may not write this was not protected by us either.
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), "0");
}

fn reap(child: &Child) {
    use rustix::process::{WaitOptions, pidfd_send_signal, waitpid};
    // It has most likely ended already.
    let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
    let _ = waitpid(Some(child.pid), WaitOptions::empty());
}

fn descriptor(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// bwrap closes its end when it has told. If it ends before that, what it has forked may keep the
/// pipe open for ever.
fn read_all(info: &OwnedFd, child: &Child) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 512];
    loop {
        let mut set = [PollFd::new(info, PollFlags::IN), PollFd::new(&child.pidfd, PollFlags::IN)];
        if poll(&mut set, None).is_ok() && set[0].revents().is_empty() {
            break;
        }
        match rustix::io::read(info, &mut buffer) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(&buffer[..length]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// From `{ "child-pid": 1234, ... }`. One number does not make a JSON parser necessary.
fn init_pid(info: &str) -> Option<i32> {
    let (_, rest) = info.split_once("\"child-pid\":")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn argv(plan: &Plan) -> Result<Vec<CString>, RuntimeError> {
    let words = std::iter::once(OsString::from("bwrap")).chain(arguments(plan));
    words.map(c_string).collect()
}

fn c_string(word: OsString) -> Result<CString, RuntimeError> {
    CString::new(word.into_vec()).map_err(|e| RuntimeError::Refused {
        message: format!(
            "'{}' contains a NUL",
            String::from_utf8_lossy(&e.into_vec()).escape_debug()
        ),
        hint: "check the paths".to_owned(),
    })
}

fn not_started(error: SpawnError) -> RuntimeError {
    let missing = error.source.kind() == std::io::ErrorKind::NotFound;
    match error.step {
        Step::Exec if missing => {
            RuntimeError::Missing { program: "bubblewrap", hint: INSTALL.to_owned() }
        }
        Step::Cgroup => RuntimeError::io("enter the sandbox's control groups", error.source),
        Step::User => RuntimeError::io("become the sandbox's user", error.source),
        step => RuntimeError::io(format!("start bubblewrap ({step:?})"), error.source),
    }
}

/// The first of the usual places where bwrap is.
pub(crate) fn installed() -> Option<&'static Path> {
    PROGRAMS.iter().map(Path::new).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_found_in_what_bwrap_tells() {
        assert_eq!(
            init_pid("{\n    \"child-pid\": 4711,\n    \"mnt-namespace\": 42\n}\n"),
            Some(4711)
        );
        assert_eq!(init_pid("{\"child-pid\":7}"), Some(7));
        assert_eq!(init_pid(""), None);
        assert_eq!(init_pid("{\"child-pid\": }"), None);
    }
}
