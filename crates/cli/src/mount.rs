//! `ringfence mount`: a guarded workspace in the foreground.

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use ringfence_fs::events::{self, AccessEvent, EventSink, Events};
use ringfence_fs::guard::Owner;
use ringfence_fs::layers::mask::{MaskOptions, ignore_files};
use ringfence_fs::mount::{MountOptions, Mounted, mount};
use ringfence_fs::{LayerError, MountError};
use ringfence_sys::signals::{self, BlockedSignals};
use serde::Serialize;

use crate::failure::Failure;
use crate::policy_args::PolicyArgs;

/// Mount DIR at MOUNTPOINT so that every program sees each path at its level, and changes go to a
/// layer instead of DIR.
///
/// Prints one line starting with `ready` when the workspace can be used. SIGINT or SIGTERM
/// unmounts; SIGHUP reads the `--policy` file again and puts it in force at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence mount --base ./project /mnt/work
  ringfence mount --base ./project --layer ./changes --preset development /mnt/work
  ringfence mount --base ./project --preset read-only --rule 'write:/docs/**' /mnt/work")]
pub(crate) struct MountArgs {
    /// The directory to show; it is never written to
    #[arg(long, value_name = "DIR")]
    base: PathBuf,

    /// Where changes are kept; made if it does not exist. Without it they are thrown away at the end
    #[arg(long, value_name = "DIR")]
    layer: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Leave paths out of the base, by a gitignore pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    mask: Vec<String>,

    /// Leave out what the .gitignore and .sandboxignore files of the base ignore
    #[arg(long)]
    gitignore: bool,

    /// Show files as owned by this user (default: whoever runs this)
    #[arg(long, value_name = "UID[:GID]")]
    owner: Option<String>,

    /// Write every decision to FILE as lines of JSON (`-`: to standard error)
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Serve reads and writes here instead of letting the kernel do it
    #[arg(long)]
    no_passthrough: bool,

    /// Print the `ready` line as JSON
    #[arg(long)]
    json: bool,

    /// An existing directory outside of the base
    mountpoint: PathBuf,
}

pub(crate) fn run(args: MountArgs) -> Result<ExitCode, Failure> {
    let policy = Arc::new(args.policy.compile()?);
    let blocked = [signals::SIGINT, signals::SIGTERM, signals::SIGHUP, signals::SIGUSR1];
    let blocked = BlockedSignals::block(&blocked).map_err(Failure::broken)?;
    ringfence_sys::memory::raise_open_file_limit();
    // Modes come from the programs inside, which have their own mask.
    rustix::process::umask(rustix::fs::Mode::empty());
    let temporary = Temporary::for_layer(&args)?;
    let options = options(&args, &temporary)?;
    let (sink, events) = match &args.events {
        Some(path) => {
            let (sink, events) = events::channel(64 * 1024);
            (sink, Some((events, open_events(path)?)))
        }
        None => (EventSink::default(), None),
    };
    let mounted =
        mount(&options, policy, sink, || signals::raise(signals::SIGUSR1)).map_err(explain)?;
    let writer = events.map(|(events, out)| std::thread::spawn(move || write_events(&events, out)));
    print_ready(&args, &mounted, temporary.is_used());
    let result = serve(&args, mounted, blocked);
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    result
}

fn options(args: &MountArgs, temporary: &Temporary) -> Result<MountOptions, Failure> {
    let files = if args.gitignore { ignore_files() } else { vec![] };
    let mask = MaskOptions { patterns: args.mask.clone(), files, ..Default::default() };
    mask.check().map_err(explain)?;
    Ok(MountOptions {
        base: args.base.clone(),
        base_in_place: true,
        layer: temporary.layer.clone(),
        mountpoint: args.mountpoint.clone(),
        mask,
        owner: owner(args.owner.as_deref())?,
        passthrough: !args.no_passthrough,
    })
}

/// Waits for the end, putting a changed policy file in force when asked to.
fn serve(
    args: &MountArgs,
    mut mounted: Mounted,
    signals: BlockedSignals,
) -> Result<ExitCode, Failure> {
    loop {
        match signals.wait().map_err(Failure::broken)? {
            signals::SIGHUP => match args.policy.compile() {
                Ok(policy) => mounted.set_policy(Arc::new(policy)).map_err(Failure::broken)?,
                // The old rules stay in force: a typing mistake must not open or close anything.
                Err(failure) => drop(failure.report()),
            },
            signals::SIGUSR1 if !mounted.is_gone() => {}
            _ => break,
        }
    }
    mounted.unmount().map_err(Failure::broken)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Ready<'a> {
    event: &'static str,
    mountpoint: std::borrow::Cow<'a, str>,
    layer: std::borrow::Cow<'a, str>,
    kept: bool,
}

fn print_ready(args: &MountArgs, mounted: &Mounted, temporary: bool) {
    let ready = Ready {
        event: "ready",
        mountpoint: mounted.mountpoint().to_string_lossy(),
        layer: mounted.layer().path().to_string_lossy(),
        kept: !temporary,
    };
    let line = match args.json {
        true => serde_json::to_string(&ready).unwrap_or_default(),
        false if temporary => format!("ready {} (changes are not kept)", ready.mountpoint),
        false => format!("ready {} layer {}", ready.mountpoint, ready.layer),
    };
    let mut out = std::io::stdout();
    // Nobody reading it is no reason to stop.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A layer for this run only, removed at the end.
struct Temporary {
    layer: PathBuf,
    dir: Option<PathBuf>,
}

impl Temporary {
    fn for_layer(args: &MountArgs) -> Result<Self, Failure> {
        if let Some(layer) = &args.layer {
            return Ok(Self { layer: layer.clone(), dir: None });
        }
        let dir = std::env::temp_dir().join(format!("ringfence-{}", std::process::id()));
        // Made anew and private: in a directory shared with others nothing there is trusted.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|e| Failure::bad_input(format!("cannot make {}: {e}", dir.display())))?;
        Ok(Self { layer: dir.join("layer"), dir: Some(dir) })
    }

    fn is_used(&self) -> bool {
        self.dir.is_some()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

fn owner(given: Option<&str>) -> Result<Owner, Failure> {
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let Some(text) = given else { return Ok(Owner { uid, gid }) };
    let number = |part: &str| {
        part.parse::<u32>().map_err(|_| {
            Failure::bad_input(format!("bad owner {text:?}")).hint("give numbers, as in 1000:1000")
        })
    };
    match text.split_once(':') {
        Some((uid, gid)) => Ok(Owner { uid: number(uid)?, gid: number(gid)? }),
        None => number(text).map(|uid| Owner { uid, gid: uid }),
    }
}

fn explain(e: MountError) -> Failure {
    let failure = Failure::bad_input(&e);
    match e {
        MountError::MountpointMissing { path } => {
            failure.hint(format!("make it with: mkdir -p {}", path.display()))
        }
        MountError::MountpointBusy { path } => {
            failure.hint(format!("free it with: umount {}", path.display()))
        }
        MountError::MountpointInside { .. } | MountError::LayerInsideBase { .. } => {
            failure.hint("base, layer and mountpoint must be apart")
        }
        MountError::Layer(LayerError::Frozen { path }) => failure
            .hint(format!("continue on it with: ringfence layer fork {} NEW", path.display())),
        MountError::Layer(LayerError::OtherBase { .. }) => {
            failure.hint("name another directory with --layer")
        }
        MountError::Layer(LayerError::Newer { .. }) => failure.hint("update ringfence"),
        _ => failure,
    }
}

fn open_events(path: &std::path::Path) -> Result<Box<dyn Write + Send>, Failure> {
    if path == std::path::Path::new("-") {
        return Ok(Box::new(std::io::stderr()));
    }
    let file = std::fs::File::options().append(true).create(true).open(path);
    let file =
        file.map_err(|e| Failure::bad_input(format!("cannot write {}: {e}", path.display())))?;
    Ok(Box::new(file))
}

#[derive(Serialize)]
struct EventLine<'a> {
    pid: u32,
    operation: &'static str,
    path: String,
    decision: &'static str,
    level: &'static str,
    needed: &'static str,
    rule: Option<&'a str>,
}

fn write_events(events: &Events, mut out: Box<dyn Write + Send>) {
    while let Some(event) = events.next() {
        let AccessEvent { pid, operation, path, needed, level, granted, rule, .. } = event;
        let line = EventLine {
            pid,
            operation: operation.as_str(),
            path: path.to_string(),
            decision: if granted { "granted" } else { "denied" },
            level: level.as_str(),
            needed: needed.as_str(),
            rule: rule.as_ref().map(|rule| rule.pattern.as_str()),
        };
        let text = serde_json::to_string(&line).unwrap_or_default();
        let _ = writeln!(out, "{text}");
        let lost = events.take_lost();
        if lost > 0 {
            let _ = writeln!(out, "{{\"lost\":{lost}}}");
        }
    }
}
