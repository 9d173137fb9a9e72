//! The options that say what a sandbox is like, wherever it is made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ringfence_fs::layers::mask::ignore_files;
use ringfence_policy::Rule;
use ringfence_runtime::limits::{parse_cpus, parse_memory, parse_pids};
use ringfence_wire::v1;

use crate::client::rules::to_wire;
use crate::failure::Failure;
use crate::policy_args::PolicyArgs;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum NetworkArg {
    /// A loopback of its own and nothing else
    None,
    /// Whatever the host reaches
    Host,
    /// A network of the container engine's, with the runtime docker
    Bridge,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RuntimeArg {
    /// Namespaces made by bubblewrap, with the programs of this host
    Bwrap,
    /// A container with the programs of an image
    Docker,
}

/// What the sandbox is made of.
#[derive(Debug, Args)]
pub(crate) struct ShapeArgs {
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

    /// What the inside can reach
    #[arg(long, value_enum, default_value = "none")]
    net: NetworkArg,

    /// What isolates it; docker if an image is given, bwrap if not
    #[arg(long, value_enum)]
    runtime: Option<RuntimeArg>,

    /// The image whose programs are used, with the runtime docker
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Run everything as the user that the image names, instead of one that nobody else is
    #[arg(long, requires = "image")]
    image_user: bool,

    /// Set a variable inside; nothing of this environment is passed on otherwise; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,

    /// Show a further directory of the host inside, read-only, at the same path (a toolchain, say);
    /// may be repeated
    #[arg(long, value_name = "DIR")]
    ro_path: Vec<PathBuf>,

    /// Leave paths out of the workspace, by a gitignore pattern; may be repeated
    #[arg(long, value_name = "PATTERN", requires = "dir")]
    mask: Vec<String>,

    /// Leave out what the .gitignore and .sandboxignore files of DIR ignore
    #[arg(long, requires = "dir")]
    gitignore: bool,
}

impl ShapeArgs {
    /// The sandbox as it is asked for, but for what it stands on. Checks everything that can be
    /// checked without asking.
    pub(crate) fn request(&self) -> Result<v1::CreateSandboxRequest, Failure> {
        let network = match self.net {
            NetworkArg::None => v1::NetworkMode::None,
            NetworkArg::Host => v1::NetworkMode::Host,
            NetworkArg::Bridge => v1::NetworkMode::Bridge,
        };
        // An image says which runtime is meant.
        let runtime = match (self.runtime, &self.image) {
            (Some(RuntimeArg::Docker), _) | (None, Some(_)) => v1::RuntimeType::Docker,
            (Some(RuntimeArg::Bwrap), _) => v1::RuntimeType::Bwrap,
            (None, None) => v1::RuntimeType::Unspecified,
        };
        Ok(v1::CreateSandboxRequest {
            permissions: to_wire(&self.rules()?),
            resources: Some(self.limits()?),
            network: network.into(),
            runtime: runtime.into(),
            image: self.image.clone().unwrap_or_default(),
            image_user: self.image_user,
            env: variables(&self.env)?,
            read_only_paths: self.read_only()?,
            ..Default::default()
        })
    }

    pub(crate) fn rules(&self) -> Result<Vec<Rule>, Failure> {
        Ok(self.policy.compile()?.rules().to_vec())
    }

    /// A directory of this host, used where it is.
    pub(crate) fn codebase(&self, dir: &Path) -> Result<v1::CreateCodebaseRequest, Failure> {
        Ok(v1::CreateCodebaseRequest {
            name: dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            owner_id: owner(),
            local_path: text_of(dir)?,
            mask: self.mask.clone(),
            ignore_files: if self.gitignore { ignore_files() } else { vec![] },
            ..Default::default()
        })
    }

    fn limits(&self) -> Result<v1::ResourceLimits, Failure> {
        let memory = self.memory.as_deref().map(parse_memory).transpose();
        let cpu_quota = self.cpus.as_deref().map(parse_cpus).transpose();
        let pids = self.pids.as_deref().map(parse_pids).transpose();
        // None is 0 on the wire, and a limit is never 0.
        let number = |limit: Option<u64>| limit.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
        Ok(v1::ResourceLimits {
            memory_bytes: number(memory.map_err(Failure::bad_input)?),
            cpu_quota: number(cpu_quota.map_err(Failure::bad_input)?),
            cpu_shares: 0,
            pids_limit: number(pids.map_err(Failure::bad_input)?),
        })
    }

    fn read_only(&self) -> Result<Vec<String>, Failure> {
        let check = |path: &PathBuf| {
            let found = std::path::absolute(path).ok().filter(|path| path.exists());
            let found = found.ok_or_else(|| {
                Failure::bad_input(format!("--ro-path {}: there is no such path", path.display()))
            })?;
            text_of(&found)
        };
        self.ro_path.iter().map(check).collect()
    }
}

/// A directory that is there, by its one path.
pub(crate) fn existing_dir(dir: &Path) -> Result<PathBuf, Failure> {
    let shown = dir.display();
    match dir.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(Failure::bad_input(format!("{shown} is not a directory"))),
        Err(e) => Err(Failure::bad_input(format!("cannot use {shown}: {e}"))
            .hint("name the directory to work on")),
    }
}

/// Whose a codebase is if nobody says: a label to find it by, not a right.
pub(crate) fn owner() -> String {
    let named = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LOGNAME", "USER"].into_iter().find(named);
    name.and_then(|name| std::env::var(name).ok()).unwrap_or_else(|| "local".into())
}

/// Names of directories travel as text.
fn text_of(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::bad_input(format!("{}: the path is not UTF-8", path.display()))
            .hint("reach it through a symbolic link or a bind mount with another name")
    })
}

/// Variables as they are typed, `NAME=VALUE`.
pub(crate) fn variables(texts: &[String]) -> Result<HashMap<String, String>, Failure> {
    texts.iter().map(|text| variable(text)).collect()
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
