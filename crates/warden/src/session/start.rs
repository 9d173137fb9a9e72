//! From a recipe to a shell that waits for its first command.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_link::init::{Spawn, Stdio, Step};
use ringfence_link::warden::{Failure, Variable};
use rustix::fs::{Mode, OFlags};

use super::driver::Driver;
use super::files::Place;
use super::groups::Groups;
use super::protocol::{ShellKind, Transport};
use super::shell::{Parts, Shell};
use super::terminal::SilentTerminal;
use crate::environment::invalid;
use crate::inside::{Program, SpawnFailure};
use crate::ring::Ring;
use crate::sandbox::{Sandbox, internal};

/// Shells are to go after commands and before init when memory runs out.
const OOM_SHELL: i16 = 250;
/// How long a shell may take to start on a machine that is busy.
const START: Duration = Duration::from_secs(20);

/// A shell to start.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) kind: ShellKind,
    /// The file of the program.
    pub(super) program: Vec<u8>,
    pub(super) cwd: Vec<u8>,
    pub(super) env: Vec<Variable>,
}

impl Shell {
    /// Starts a shell; returns when it waits for its first command.
    pub(super) fn start(
        sandbox: &Arc<Sandbox>,
        number: u64,
        recipe: &Recipe,
        (log, wake): (&Arc<Ring>, &OwnedFd),
    ) -> Result<Self, Failure> {
        let kind = recipe.kind;
        let place = Place::new(&sandbox.inside, number).map_err(internal)?;
        let mut files = place.make(kind.transport()).map_err(internal)?;
        let mut groups = Groups::new(sandbox, number)?;
        let (own, own_writer) = sandbox.pipe(false)?;
        let null: OwnedFd = File::open("/dev/null").map_err(internal)?.into();
        let (stdin, driver) = match (kind.transport(), files.script.take()) {
            (Transport::PacketScript, Some(script)) => {
                (null.try_clone().map_err(internal)?, script)
            }
            _ => sandbox.pipe(true)?,
        };
        let nowhere: OwnedFd =
            File::options().write(true).open("/dev/null").map_err(internal)?.into();
        let request = request(recipe, place.directory.as_str(), groups.dir().is_some());
        let mut fds = vec![stdin.as_fd(), own_writer.as_fd(), nowhere.as_fd()];
        fds.extend(groups.dir());
        let mut program =
            sandbox.inside.spawn(request, &fds).map_err(|refused| not_started(recipe, &refused))?;
        drop(fds);
        groups.shell_is(program.host_pid);
        let terminal = program.terminal.take().ok_or_else(|| internal("init sent no terminal"))?;
        let terminal = SilentTerminal::new(terminal).map_err(internal)?;
        let proc = proc_directory(&program);
        let driver = Driver::new(driver, kind.transport());
        let (sandbox, log) = (sandbox.clone(), log.clone());
        let parts = Parts {
            sandbox,
            kind,
            place,
            files,
            groups,
            program,
            terminal,
            driver,
            own,
            proc,
            log,
        };
        let mut shell = Self::assemble(parts, wake).map_err(internal)?;
        shell.set_up(recipe)?;
        Ok(shell)
    }

    fn set_up(&mut self, recipe: &Recipe) -> Result<(), Failure> {
        let late = late_variables(recipe);
        let setup = self.speech().setup(&recipe.cwd, &late);
        self.hand_over(&setup).map_err(internal)?;
        self.ask_status(false);
        let deadline = Instant::now() + START;
        let mut status = None;
        loop {
            let news = self.step(Some(deadline));
            status = status.or(news.finished);
            match status {
                Some(0) if news.idle => break,
                Some(1..) => return Err(no_directory(&recipe.cwd)),
                _ if news.died || news.nothing => return Err(internal("the shell did not start")),
                _ => {}
            }
        }
        // A greeting, perhaps.
        self.take_aside();
        // What it has used so far is no command's.
        self.groups.rest();
        Ok(())
    }
}

fn request(recipe: &Recipe, directory: &str, in_cgroup: bool) -> Spawn {
    let cwd = match recipe.kind.transport() {
        Transport::StdinPipe => recipe.cwd.clone(),
        Transport::PacketScript => directory.into(),
    };
    let env = recipe.env.iter().filter(|(name, _)| !is_late(recipe.kind, name));
    Spawn {
        argv: recipe.kind.start_argv().iter().map(|word| word.as_bytes().to_vec()).collect(),
        program: Some(recipe.program.clone()),
        env: env.map(|(name, value)| [&name[..], b"=", value].concat()).collect(),
        cwd,
        stdio: Stdio::GivenWithSilentTerminal,
        in_cgroup,
        oom_score_adj: OOM_SHELL,
        ..Spawn::default()
    }
}

/// An interactive shell would run the file that `ENV` names, unless it is bash or zsh.
fn is_late(kind: ShellKind, name: &[u8]) -> bool {
    let places = name == b"PWD" || name == b"OLDPWD";
    let reads_env = matches!(kind, ShellKind::Dash | ShellKind::Busybox);
    places || (reads_env && name == b"ENV")
}

/// Variables that are set when the shell runs.
fn late_variables(recipe: &Recipe) -> Vec<Variable> {
    let late = recipe.env.iter().filter(|(name, _)| name == b"ENV" && is_late(recipe.kind, name));
    late.cloned().collect()
}

fn no_directory(cwd: &[u8]) -> Failure {
    invalid(format!("cannot enter the directory {}", String::from_utf8_lossy(cwd)))
}

fn not_started(recipe: &Recipe, refused: &SpawnFailure) -> Failure {
    let name = String::from_utf8_lossy(&recipe.program);
    match refused {
        SpawnFailure::Refused { step: Step::Directory, .. } => no_directory(&recipe.cwd),
        SpawnFailure::Refused { step: Step::Exec, source } => {
            invalid(format!("cannot run the shell {name}: {source}"))
        }
        other => internal(format!("cannot start the shell {name}: {other}")),
    }
}

fn proc_directory(program: &Program) -> Option<OwnedFd> {
    let path = format!("/proc/{}", program.host_pid);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    // If it had ended before the number was looked up, the number could be another's.
    let alive = !crate::pump::readable(program, Duration::ZERO);
    alive.then_some(found)
}
