//! The loops.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use ringfence_fs::events;
use ringfence_fs::guard::Owner;
use ringfence_fs::layers::mask::MaskOptions;
use ringfence_fs::mount::{MountOptions, mount};
use ringfence_policy::{Policy, preset};
use ringfence_sys::spawn::Spawn;

use crate::api::Api;
use crate::order::{Answer, Order, Trouble};
use crate::sandbox::{Maker, Sandbox, TRUE};

/// Unread events of a mount that is only looked at.
const EVENTS: u64 = 1024;

#[derive(Debug)]
pub(crate) struct Worker {
    maker: Maker,
    open: Vec<Sandbox>,
    session: Option<String>,
    api: Api,
}

type Times = BTreeMap<&'static str, Vec<f64>>;

/// One sandbox from nothing to nothing, in microseconds.
pub(crate) struct Life {
    pub(crate) start: f64,
    pub(crate) first_exec: f64,
    pub(crate) destroy: f64,
}

impl Worker {
    pub(crate) fn new(ringfence: PathBuf, scratch: PathBuf) -> Result<Self, Trouble> {
        let api = Api::new(ringfence.clone(), scratch.clone())?;
        Ok(Self { maker: Maker::new(ringfence, scratch), open: Vec::new(), session: None, api })
    }

    pub(crate) fn carry_out(&mut self, order: Order) -> Result<Answer, Trouble> {
        match order {
            Order::Spawn { argv, count } => repeat("spawn", count, || spawn(&argv)),
            Order::Fork { program, count } => fork_loop(&program, count),
            Order::SpawnOutput { argv, bytes, count } => {
                repeat("output", count, || expect(bytes, spawn_output(&argv)?))
            }
            Order::Mount { base, count } => self.mounts(&base, count),
            Order::Life { base, count } => lives(count, || live(&self.maker, &base)),
            Order::Crowd { base, size, count } => {
                repeat("whole", count, || self.crowd(&base, size))
            }
            Order::Open { base, size } => self.keep(&base, size),
            Order::Close => self.close(),
            Order::Exec { argv, count } => {
                let sandbox = self.first()?;
                repeat("exec", count, || sandbox.exec(&argv).map(drop))
            }
            Order::ExecOutput { argv, bytes, count } => {
                let sandbox = self.first()?;
                repeat("output", count, || expect(bytes, sandbox.exec(&argv)?))
            }
            Order::SessionOpen { count } => self.sessions(count),
            Order::SessionExec { text, count } => {
                let session = self.session()?;
                let sandbox = self.first()?;
                repeat("exec", count, || sandbox.in_session(&session, &text).map(drop))
            }
            Order::SessionOutput { text, bytes, count } => {
                let session = self.session()?;
                let sandbox = self.first()?;
                repeat("output", count, || expect(bytes, sandbox.in_session(&session, &text)?))
            }
            Order::Api(ask) => self.api.carry_out(ask),
        }
    }

    fn first(&self) -> Result<&Sandbox, Trouble> {
        self.open.first().ok_or_else(|| Trouble::new("no sandbox is open"))
    }

    /// The session all commands are run in, opened when it is needed first.
    fn session(&mut self) -> Result<String, Trouble> {
        if self.session.is_none() {
            self.session = Some(self.first()?.open_session()?);
        }
        self.session.clone().ok_or_else(|| Trouble::new("no session is open"))
    }

    fn keep(&mut self, base: &Path, size: usize) -> Result<Answer, Trouble> {
        for _ in 0..size {
            self.open.push(self.maker.start(base)?);
        }
        Ok(Answer::Wardens(self.open.iter().map(Sandbox::warden_pid).collect()))
    }

    fn close(&mut self) -> Result<Answer, Trouble> {
        self.session = None;
        for mut sandbox in self.open.drain(..) {
            sandbox.stop()?;
            sandbox.remove()?;
        }
        Ok(Answer::Done)
    }

    /// All at once: each is left to its thread.
    fn crowd(&self, base: &Path, size: usize) -> Result<(), Trouble> {
        std::thread::scope(|scope| {
            let one = || live(&self.maker, base).map(drop);
            let threads: Vec<_> = (0..size).map(|_| scope.spawn(one)).collect();
            let died = |_| Err(Trouble::new("a thread died"));
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(died))
        })
    }

    fn sessions(&self, count: usize) -> Result<Answer, Trouble> {
        let sandbox = self.first()?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let (session, micros) = timed(|| sandbox.open_session())?;
            times.push(micros);
            sandbox.close_session(session)?;
        }
        Ok(times_of("open", times))
    }

    /// In this process, as the warden does it in its own: from the call to the first listing.
    fn mounts(&self, base: &Path, count: usize) -> Result<Answer, Trouble> {
        let rules = preset("agent-safe").ok_or_else(|| Trouble::new("there is no agent-safe"))?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let (place, _) = self.maker.place()?;
            let options = mount_options(base, &place);
            std::fs::create_dir(&options.mountpoint)?;
            let rules = rules.clone();
            let (mounted, micros) = timed(|| {
                let policy = Policy::compile(rules).map_err(|e| Trouble::new(e.to_string()))?;
                let (sink, _events) = events::channel(EVENTS);
                let mounted = mount(&options, Arc::new(policy), sink, || {})
                    .map_err(|e| Trouble::new(e.to_string()))?;
                std::fs::metadata(&options.mountpoint)?;
                std::fs::read_dir(&options.mountpoint)?.try_for_each(|entry| entry.map(drop))?;
                Ok(mounted)
            })?;
            times.push(micros);
            mounted.unmount().map_err(|e| Trouble::new(e.to_string()))?;
            std::fs::remove_dir_all(&place)?;
        }
        Ok(times_of("mount", times))
    }
}

pub(crate) fn lives(
    count: usize,
    mut live: impl FnMut() -> Result<Life, Trouble>,
) -> Result<Answer, Trouble> {
    let mut times = Times::new();
    for _ in 0..count {
        let life = live()?;
        let ready = life.start + life.first_exec;
        for (name, micros) in [
            ("start", life.start),
            ("first-exec", life.first_exec),
            ("usable", ready),
            ("destroy", life.destroy),
            ("whole", ready + life.destroy),
        ] {
            times.entry(name).or_default().push(micros);
        }
    }
    Ok(Answer::Times(times))
}

fn mount_options(base: &Path, place: &Path) -> MountOptions {
    MountOptions {
        base: base.into(),
        base_in_place: true,
        layer: place.join("layer"),
        mountpoint: place.join("workspace"),
        mask: MaskOptions::default(),
        owner: Owner { uid: 0, gid: 0 },
        passthrough: true,
    }
}

fn live(maker: &Maker, base: &Path) -> Result<Life, Trouble> {
    let (mut sandbox, start) = timed(|| maker.start(base))?;
    let (_, first_exec) = timed(|| sandbox.exec(&[TRUE.into()]))?;
    let (_, destroy) = timed(|| sandbox.stop())?;
    sandbox.remove()?;
    Ok(Life { start, first_exec, destroy })
}

fn spawn(argv: &[String]) -> Result<(), Trouble> {
    let (program, rest) = argv.split_first().ok_or_else(|| Trouble::new("no command"))?;
    let mut command = Command::new(program);
    let status = command.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(Trouble::new(format!("{program}: {status}"))),
    }
}

fn spawn_output(argv: &[String]) -> Result<u64, Trouble> {
    let (program, rest) = argv.split_first().ok_or_else(|| Trouble::new("no command"))?;
    let mut command = Command::new(program);
    let mut child = command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut printed = 0;
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match output.read(&mut buffer)? {
                0 => break,
                length => printed += length as u64,
            }
        }
    }
    child.wait()?;
    Ok(printed)
}

fn fork_loop(program: &str, count: usize) -> Result<Answer, Trouble> {
    let path = CString::new(program).map_err(|e| Trouble::new(e.to_string()))?;
    let spawn =
        Spawn { programs: vec![path.clone()], argv: vec![path], env: vec![], ..Spawn::default() };
    repeat("fork", count, || {
        let child = spawn.start().map_err(|e| Trouble::new(e.to_string()))?;
        let options = rustix::process::WaitOptions::empty();
        rustix::process::waitpid(Some(child.pid), options).map_err(std::io::Error::from)?;
        Ok(())
    })
}

pub(crate) fn expect(wanted: u64, printed: u64) -> Result<(), Trouble> {
    match printed == wanted {
        true => Ok(()),
        false => Err(Trouble::new(format!("{printed} bytes were printed, not {wanted}"))),
    }
}

pub(crate) fn repeat(
    name: &'static str,
    count: usize,
    mut work: impl FnMut() -> Result<(), Trouble>,
) -> Result<Answer, Trouble> {
    let times = (0..count).map(|_| timed(&mut work).map(|(_, micros)| micros));
    Ok(times_of(name, times.collect::<Result<_, _>>()?))
}

pub(crate) fn times_of(name: &'static str, micros: Vec<f64>) -> Answer {
    Answer::Times(Times::from([(name, micros)]))
}

fn timed<T>(work: impl FnOnce() -> Result<T, Trouble>) -> Result<(T, f64), Trouble> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, micros_since(start)))
}

pub(crate) fn micros_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}
