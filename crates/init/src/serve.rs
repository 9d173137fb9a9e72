//! The loop: requests in, processes out.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;

use ringfence_link::VERSION;
use ringfence_link::channel::{Channel, ChannelError, TRUSTED_LIMIT};
use ringfence_link::init::{
    Confinement, Ending, FromInit, Spawn as Request, Stdio, Step, ToInit, Usage,
};
use ringfence_sys::children::{self, ChildSignal};
use ringfence_sys::spawn::{Child, Filter, Spawn, SpawnError, Step as Failed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::confine::{self, OomScore};
use crate::programs::Strings;
use crate::terminal::Terminal;
use crate::{files, filter, loopback, programs, trees};

/// Serves the warden at the other end of `socket` until it hangs up.
pub fn serve(socket: OwnedFd) -> ExitCode {
    match Init::start(Channel::from_fd(socket, TRUSTED_LIMIT)) {
        Ok(mut init) => init.run(),
        Err(error) => {
            eprintln!("init: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Init {
    channel: Channel,
    ended: ChildSignal,
    filters: [Filter; 1],
    oom_score: OomScore,
    /// What was started and has not been reported as ended.
    commands: HashMap<i32, u64>,
}

type Failure = Box<dyn std::error::Error>;

impl Init {
    fn start(channel: Channel) -> Result<Self, Failure> {
        let oom_score = OomScore::of_this_process();
        confine::hide_memory()?;
        confine::limit_resources();
        rustix::thread::set_no_new_privs(true)?;
        let landlock = confine::restrict_files()?;
        for filter in filter::for_all()? {
            filter.install()?;
        }
        let filters = filter::for_programs()?;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let confinement = Confinement { seccomp: true, landlock };
        channel.send(&FromInit::Hello { version: VERSION, confinement }, &[])?;
        let (ended, commands) = (ChildSignal::new()?, HashMap::new());
        Ok(Self { channel, ended, filters, oom_score, commands })
    }

    fn run(&mut self) -> ExitCode {
        let mut patience = Some(Timespec { tv_sec: 1, tv_nsec: 0 });
        loop {
            let mut fds = [
                PollFd::new(&self.channel, PollFlags::IN),
                PollFd::new(&self.ended, PollFlags::IN),
            ];
            match poll(&mut fds, patience.as_ref()) {
                Ok(0) => {
                    // Much of what is mapped now was for the start.
                    patience = None;
                    ringfence_sys::memory::give_back_code();
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return ExitCode::FAILURE,
            }
            let [request, ended] = fds.map(|fd| !fd.revents().is_empty());
            let result = match (ended, request) {
                // Endings first: a pid in a request must not be one that was given away since.
                (true, _) => self.report_endings(),
                (_, true) => self.handle_request(),
                _ => Ok(()),
            };
            if result.is_err() {
                return ExitCode::SUCCESS;
            }
        }
    }

    fn handle_request(&mut self) -> Result<(), ChannelError> {
        let (request, fds) = self.channel.receive()?;
        match request {
            ToInit::Spawn(request) => self.spawn(&request, &fds),
            ToInit::Signal { pid, signal } => {
                self.signal(pid, signal);
                Ok(())
            }
            ToInit::ShellFiles { id, session, spec } => {
                self.answer(id, files::make(session, &spec), FromInit::Made { id })
            }
            ToInit::RemoveFiles { session } => {
                files::remove(session);
                Ok(())
            }
            ToInit::Connect { id, port } => {
                let socket = loopback::begin(port).map(|socket| vec![socket]);
                self.answer(id, socket, FromInit::Connected { id })
            }
            ToInit::FindProgram { id, name, path } => match programs::find(&name, &path) {
                Some(file) => self.channel.send(&FromInit::Found { id, file }, &[]),
                None => self.answer(id, Err(Errno::NOENT), FromInit::Made { id }),
            },
        }
    }

    fn answer(
        &self,
        id: u64,
        result: rustix::io::Result<Vec<OwnedFd>>,
        success: FromInit,
    ) -> Result<(), ChannelError> {
        match result {
            Ok(fds) => {
                let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
                self.channel.send(&success, &fds)
            }
            Err(e) => self.channel.send(&FromInit::Refused { id, errno: e.raw_os_error() }, &[]),
        }
    }

    fn spawn(&mut self, request: &Request, fds: &[OwnedFd]) -> Result<(), ChannelError> {
        match self.try_spawn(request, fds) {
            Ok((child, terminal)) => {
                let pid = child.pid.as_raw_pid();
                self.commands.insert(pid, request.id);
                let mut fds = vec![child.as_fd()];
                fds.extend(terminal.as_ref().map(|fd| fd.as_fd()));
                self.channel.send(&FromInit::Started { id: request.id, pid }, &fds)
            }
            Err((step, errno)) => {
                self.channel.send(&FromInit::Failed { id: request.id, step, errno }, &[])
            }
        }
    }

    fn try_spawn(
        &mut self,
        request: &Request,
        fds: &[OwnedFd],
    ) -> Result<(Child, Option<OwnedFd>), (Step, i32)> {
        let invalid = (Step::SetUp, Errno::INVAL.raw_os_error());
        let strings = Strings::of(request).ok_or(invalid)?;
        let terminal = open_terminal(request.stdio).map_err(|e| (Step::SetUp, e.raw_os_error()))?;
        let (stdio, cgroup) = sort_out(request, fds, terminal.as_ref()).ok_or(invalid)?;
        let spawn = Spawn {
            programs: strings.programs,
            argv: strings.argv,
            env: strings.env,
            cwd: Some(strings.cwd),
            fds: stdio,
            new_session: true,
            terminal: terminal.as_ref().map(|terminal| terminal.inner.as_fd()),
            cgroup,
            filters: &self.filters,
            no_new_privileges: true,
            ..Spawn::default()
        };
        let child = self.oom_score.during(request.oom_score_adj, || spawn.start());
        let child = child.map_err(|e| reason(&e))?;
        Ok((child, terminal.map(|terminal| terminal.outer)))
    }

    fn signal(&self, first: i32, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        let members = trees::members(first, self.commands.contains_key(&first));
        for pid in members.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Collects everything that has ended; what nobody asked for (orphans) is not reported.
    fn report_endings(&mut self) -> Result<(), ChannelError> {
        self.ended.clear();
        while let Some((pid, ending, usage)) = children::reap() {
            if let Some(id) = self.commands.remove(&pid.as_raw_pid()) {
                let (ending, usage) = (translate(ending), account(usage));
                self.channel.send(&FromInit::Ended { id, ending, usage }, &[])?;
            }
        }
        Ok(())
    }
}

fn open_terminal(stdio: Stdio) -> rustix::io::Result<Option<Terminal>> {
    match stdio {
        Stdio::Given | Stdio::GivenAndScript => Ok(None),
        Stdio::GivenWithSilentTerminal => Terminal::open_silent().map(Some),
        Stdio::Terminal { rows, columns } => Terminal::open(rows, columns).map(Some),
    }
}

type Places<'a> = (Vec<BorrowedFd<'a>>, Option<BorrowedFd<'a>>);

/// Which of the descriptors sent along become 0, 1, 2 …, and which is the cgroup.
fn sort_out<'a>(
    request: &Request,
    fds: &'a [OwnedFd],
    terminal: Option<&'a Terminal>,
) -> Option<Places<'a>> {
    let (given, cgroup) = match request.in_cgroup {
        true => fds.split_last().map(|(last, given)| (given, Some(last.as_fd())))?,
        false => (fds, None),
    };
    let expected = match request.stdio {
        Stdio::Given | Stdio::GivenWithSilentTerminal => 3,
        Stdio::GivenAndScript => 4,
        Stdio::Terminal { .. } => 0,
    };
    let stdio: Vec<_> = match (request.stdio, terminal) {
        (Stdio::Terminal { .. }, Some(terminal)) => vec![terminal.inner.as_fd(); 3],
        _ => given.iter().map(|fd| fd.as_fd()).collect(),
    };
    (given.len() == expected).then_some((stdio, cgroup))
}

fn reason(error: &SpawnError) -> (Step, i32) {
    let step = match error.step {
        Failed::Fork => Step::Fork,
        Failed::Directory => Step::Directory,
        Failed::Exec => Step::Exec,
        _ => Step::SetUp,
    };
    (step, error.source.raw_os_error().unwrap_or(0))
}

fn translate(ending: children::Ending) -> Ending {
    match ending {
        children::Ending::Exited(code) => Ending::Exited(code),
        children::Ending::Signalled(signal) => Ending::Signalled(signal),
    }
}

fn account(usage: children::Usage) -> Usage {
    Usage {
        user_micros: usage.user.as_micros() as u64,
        system_micros: usage.system.as_micros() as u64,
        peak_memory: usage.peak_memory,
    }
}
