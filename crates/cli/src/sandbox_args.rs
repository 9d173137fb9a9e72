//! The options by which `run` and `shell` describe a sandbox.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ringfence_runtime::limits::{parse_cpus, parse_duration, parse_memory, parse_pids};
use ringfence_runtime::users::HOST_LOCKS;
use ringfence_runtime::{Limits, Network};
use ringfence_warden::Config;

use crate::failure::Failure;
use crate::policy_args::PolicyArgs;
use crate::state::StateArgs;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum NetworkArg {
    /// A loopback of its own and nothing else
    None,
    /// Whatever this host reaches
    Host,
}

/// What the sandbox is made of.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// The most memory everything inside may use together, e.g. 512M
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    memory: Option<String>,

    /// The most processors' worth of time, e.g. 1.5
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    cpus: Option<String>,

    /// The most processes and threads at once
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pids: Option<String>,

    /// End the command after this time, e.g. 60s or 5m (exit code 124)
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    timeout: Option<String>,

    /// What the inside can reach
    #[arg(long, value_enum, default_value = "none")]
    net: NetworkArg,

    /// Set a variable inside; nothing of this environment is passed on otherwise; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Show a further directory of the host inside, read-only, at the same path (a toolchain, say);
    /// may be repeated
    #[arg(long, value_name = "DIR")]
    ro_path: Vec<PathBuf>,

    /// Start here instead of /workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// Leave paths out of the workspace, by a gitignore pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    mask: Vec<String>,

    /// Leave out what the .gitignore and .sandboxignore files of DIR ignore
    #[arg(long)]
    gitignore: bool,

    /// Write the changes back to DIR at the end
    #[arg(long, conflicts_with_all = ["discard", "keep"])]
    pub(crate) apply: bool,

    /// Throw the changes away at the end
    #[arg(long, conflicts_with = "keep")]
    pub(crate) discard: bool,

    /// Keep the changes in their layer at the end, without asking
    #[arg(long)]
    pub(crate) keep: bool,

    /// Write the whole record of the run to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) state: StateArgs,

    /// The directory to work on; it is never written to before the changes are applied
    pub(crate) dir: PathBuf,
}

impl SandboxArgs {
    /// Checks everything that can be checked without starting anything.
    pub(crate) fn config(&self, id: &str) -> Result<Config, Failure> {
        let base = self.base()?;
        let dir = self.state.sandbox_dir(id)?;
        let rules = self.policy.compile()?.rules().to_vec();
        let files = [".gitignore", ".sandboxignore"].map(String::from).to_vec();
        Ok(Config {
            id: id.into(),
            layer: dir.join("layer"),
            base,
            rules,
            mask: self.mask.clone(),
            ignore_files: if self.gitignore { files } else { vec![] },
            limits: self.limits()?,
            network: match self.net {
                NetworkArg::None => Network::None,
                NetworkArg::Host => Network::Host,
            },
            env: self.env.iter().map(|text| variable(text)).collect::<Result<_, _>>()?,
            read_only: self.read_only()?,
            ends_with_caller: true,
            keeps_files: false,
            bwrap: std::env::var_os("RINGFENCE_BWRAP").map(PathBuf::from),
            users: HOST_LOCKS.into(),
            dir,
        })
    }

    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Failure> {
        self.timeout.as_deref().map(parse_duration).transpose().map_err(Failure::bad_input)
    }

    fn base(&self) -> Result<PathBuf, Failure> {
        let shown = self.dir.display();
        match self.dir.canonicalize() {
            Ok(path) if path.is_dir() => Ok(path),
            Ok(_) => Err(Failure::bad_input(format!("{shown} is not a directory"))),
            Err(e) => Err(Failure::bad_input(format!("cannot use {shown}: {e}"))
                .hint("name the directory to work on before `--`")),
        }
    }

    fn limits(&self) -> Result<Limits, Failure> {
        let memory = self.memory.as_deref().map(parse_memory).transpose();
        let cpu_quota = self.cpus.as_deref().map(parse_cpus).transpose();
        let pids = self.pids.as_deref().map(parse_pids).transpose();
        Ok(Limits {
            memory: memory.map_err(Failure::bad_input)?,
            cpu_quota: cpu_quota.map_err(Failure::bad_input)?,
            cpu_shares: None,
            pids: pids.map_err(Failure::bad_input)?,
        })
    }

    fn read_only(&self) -> Result<Vec<PathBuf>, Failure> {
        let check = |path: &PathBuf| {
            let found = std::path::absolute(path).ok().filter(|path| path.exists());
            found.ok_or_else(|| {
                Failure::bad_input(format!("--ro-path {}: there is no such path", path.display()))
            })
        };
        self.ro_path.iter().map(check).collect()
    }
}

fn variable(text: &str) -> Result<(String, String), Failure> {
    let bad = |what: &str| {
        Failure::bad_input(format!("--env {text:?}: {what}")).hint("give it as NAME=VALUE")
    };
    let (name, value) = text.split_once('=').ok_or_else(|| bad("there is no value"))?;
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    match starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        true => Ok((name.into(), value.into())),
        false => Err(bad("a name has letters, digits and _ and does not begin with a digit")),
    }
}
