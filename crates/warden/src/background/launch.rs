//! From a request to something that runs, or to a record that says why it does not.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_link::init::{Spawn, Stdio};
use ringfence_link::warden::{Command, Failure, Outcome, Variable};

use super::job::Job;
use super::registry::Reservation;
use super::{Background, Beginning, Life};
use crate::exec::{Line, OOM_COMMAND, refusal};
use crate::inside::{Program, SpawnFailure};
use crate::journal::Event;
use crate::journal::event::How;
use crate::origins::Owner;
use crate::ring::{Ring, Stream};
use crate::sandbox::{Sandbox, Started, Starting, internal, now_ms};
use crate::terminals::Screen;
use crate::tree::Tree;

/// Something to start in the background, checked.
pub(crate) struct Launch<'a> {
    pub(crate) how: How,
    /// What was asked for.
    pub(crate) command: &'a Command,
    /// What is run for it.
    pub(crate) line: Line,
    /// The variables of the request.
    pub(crate) given: &'a [Variable],
    pub(crate) beginning: Beginning,
    /// How much of what it prints is kept.
    pub(crate) log: usize,
    /// Not connected yet.
    pub(crate) screen: Option<Screen>,
}

impl Sandbox {
    /// Starts it and returns at once. What cannot be run is a record too, of something that failed.
    pub(crate) fn launch(
        self: &Arc<Self>,
        place: Reservation<'_>,
        launch: Launch<'_>,
    ) -> Result<Arc<Background>, Failure> {
        self.reactor.prepare(self).map_err(internal)?;
        let mut ends = Ends::make(self, &launch)?;
        let name = format!("b{}", self.next_number());
        let group = (name.clone(), self.new_group(&name)?);
        let started = self.begin(&Starting {
            how: launch.how,
            session: launch.beginning.session.clone(),
            command: launch.command,
            cwd: &launch.beginning.cwd,
            env: launch.given,
            changes: false,
        });
        self.record(opened(&place.id, &started.name, &launch));
        let (request, owner) = (ends.request(&launch), Owner::of(started.number));
        let links = (&self.inside, &self.origins);
        let spawned = Tree::start(links, group, &owner, request, &ends.inner());
        match spawned {
            Ok((tree, program)) => {
                Ok(self.watch_over(place, launch, (tree, program), &mut ends, started))
            }
            Err(refused) => self.keep_failure(place, launch, refused, &started),
        }
    }

    fn watch_over(
        self: &Arc<Self>,
        place: Reservation<'_>,
        launch: Launch<'_>,
        (tree, mut program): (Tree, Program),
        ends: &mut Ends,
        started: Started,
    ) -> Arc<Background> {
        let tree = Arc::new(tree);
        self.running.lock().insert(started.name.clone(), Arc::downgrade(&tree));
        let mut streams = ends.outer();
        if let (Some(screen), Some(outer)) = (&launch.screen, program.terminal.take()) {
            streams = [screen.connect(outer), None];
        }
        let background = record(&place.id, launch, program.pid, Life::of(tree));
        place.fill(&background);
        self.reactor.add(Job::new(background.clone(), program, streams, started));
        self.bind(&background);
        background
    }

    fn keep_failure(
        &self,
        place: Reservation<'_>,
        launch: Launch<'_>,
        refused: SpawnFailure,
        started: &Started,
    ) -> Result<Arc<Background>, Failure> {
        let program = launch.line.argv[0].clone();
        let (exit_code, reason) = match refusal(&program, &launch.beginning.cwd, &refused) {
            Some(told) => told,
            None if self.inside.is_gone() => return Err(internal("the sandbox has ended")),
            None => (126, format!("cannot start: {refused}")),
        };
        let background = record(&place.id, launch, 0, Life::never_began(reason.clone()));
        background.ring.append(Stream::Error, format!("ringfence: {reason}\n").as_bytes());
        background.ring.close();
        place.fill(&background);
        self.finish(started, Outcome { exit_code, ..Outcome::default() });
        self.record(super::job::closed(&background));
        Ok(background)
    }
}

fn record(id: &str, launch: Launch<'_>, pid: i32, life: Life) -> Arc<Background> {
    Arc::new(Background {
        id: id.into(),
        command: text_of(launch.command),
        session: launch.beginning.session,
        created_ms: now_ms(),
        pid,
        ring: Ring::new(launch.log),
        screen: launch.screen,
        life: Mutex::new(life),
    })
}

fn opened(id: &str, command: &str, launch: &Launch<'_>) -> Event {
    use crate::journal::event::{ProcessOpened, TerminalOpened};
    let (id, command, session) = (id.into(), command.into(), launch.beginning.session.clone());
    match &launch.screen {
        None => Event::ProcessOpened(ProcessOpened { process: id, command, session }),
        Some(screen) => {
            let (rows, columns) = screen.size();
            Event::TerminalOpened(TerminalOpened { terminal: id, command, columns, rows })
        }
    }
}

/// A command as people read it.
fn text_of(command: &Command) -> String {
    let text = match command {
        Command::Shell(text) => text.clone(),
        Command::Argv(argv) => argv.join(&b' '),
    };
    String::from_utf8_lossy(&text).into_owned()
}

/// The descriptors of something that is started: those it gets and those that are kept.
struct Ends {
    given: Vec<OwnedFd>,
    kept: [Option<OwnedFd>; 2],
    stdio: Stdio,
}

impl Ends {
    fn make(sandbox: &Sandbox, launch: &Launch<'_>) -> Result<Self, Failure> {
        if let Some(screen) = &launch.screen {
            let (rows, columns) = screen.size();
            let stdio = Stdio::Terminal { rows, columns };
            return Ok(Self { given: Vec::new(), kept: [None, None], stdio });
        }
        let null = File::open("/dev/null").map_err(internal)?;
        let (output, stdout) = sandbox.pipe(false)?;
        let (errors, stderr) = sandbox.pipe(false)?;
        let mut given = vec![null.into(), stdout, stderr];
        if let Some(script) = &launch.line.script {
            given.push(script.try_clone().map_err(internal)?);
        }
        Ok(Self { given, kept: [Some(output), Some(errors)], stdio: launch.line.stdio() })
    }

    fn request(&self, launch: &Launch<'_>) -> Spawn {
        Spawn {
            argv: launch.line.argv.clone(),
            env: launch.beginning.env.clone(),
            cwd: launch.beginning.cwd.clone(),
            stdio: self.stdio,
            oom_score_adj: OOM_COMMAND,
            ..Spawn::default()
        }
    }

    fn inner(&self) -> Vec<BorrowedFd<'_>> {
        self.given.iter().map(|fd| fd.as_fd()).collect()
    }

    fn outer(&mut self) -> [Option<OwnedFd>; 2] {
        std::mem::take(&mut self.kept)
    }
}
