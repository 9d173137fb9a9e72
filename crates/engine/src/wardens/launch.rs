//! From a description to a warden that answers.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use ringfence_link::warden::{Info, Reply, Request};
use ringfence_warden::Config;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::call::Call;
use crate::problem::{Code, Problem, Result};

/// What a warden prints, once, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub enum Greeting {
    Ready { socket: PathBuf },
    Failed { message: String, hint: Option<String> },
}

/// A warden that answers.
#[derive(Debug)]
pub struct Launched {
    pub info: Info,
    /// The process, while it is a child of this one.
    pub child: Child,
}

/// Starts a warden. It outlives this process unless its description says otherwise: then it holds on
/// to its standard input, which ends however this process does. `program` is the one binary.
pub async fn launch(program: &Path, config: &Config) -> Result<Launched> {
    let failed = |e: std::io::Error| Problem::internal("start the sandbox", e);
    let (file, log) = (config.dir.join("config.json"), config.dir.join("warden.log"));
    let text = serde_json::to_vec_pretty(config)
        .map_err(|e| Problem::internal("describe the sandbox", e))?;
    std::fs::write(&file, text).map_err(failed)?;
    let log = std::fs::File::create(&log).map_err(failed)?;
    // The warden inherits this lock with the file, so from here on it can be found, by a server that
    // comes after this one too, although it has done nothing yet.
    rustix::fs::flock(&log, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| failed(e.into()))?;
    let mut child = Command::new(program)
        .arg("warden")
        .arg(&file)
        .stdin(if config.ends_with_caller { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(failed)?;
    match greeting(&mut child).await {
        Some(Greeting::Ready { socket }) => match Call::ask(&socket, Request::Info).await {
            Ok(Reply::Info(info)) => Ok(Launched { info: *info, child }),
            other => Err(give_up(child, format!("{other:?}")).await),
        },
        Some(Greeting::Failed { message, hint }) => {
            let _ = child.wait().await;
            Err(refused(config, message, hint))
        }
        None => Err(give_up(child, "it said nothing".into()).await),
    }
}

async fn greeting(child: &mut Child) -> Option<Greeting> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).await.ok()?;
    serde_json::from_str(&line).ok()
}

async fn give_up(mut child: Child, reason: String) -> Problem {
    let _ = child.kill().await;
    Problem::internal("start the sandbox", reason)
}

/// What a warden says of a start that failed is about this host: something is missing, or a limit
/// cannot be had.
///
/// Its words may name paths of the host, which only whoever has the server to themselves may hear.
fn refused(config: &Config, message: String, hint: Option<String>) -> Problem {
    tracing::warn!(sandbox = config.id, message, "a sandbox cannot start");
    let hear = |text: String| match config.ends_with_caller {
        true => text,
        false => without_paths(&text),
    };
    let (message, hint) = (hear(message), hint.map(hear));
    let problem = Problem::new(Code::Unsupported, format!("the sandbox cannot start: {message}"));
    match hint {
        Some(hint) => problem.with("hint", hint),
        None => problem,
    }
}

/// The text with every absolute path left out.
fn without_paths(text: &str) -> String {
    let is_path = |word: &str| {
        let bare = word.trim_start_matches(['(', '"', '\'', '`', '[', '=']);
        bare.starts_with('/') && bare.len() > 1
    };
    let words = text.split(' ').map(|word| match is_path(word) {
        true => "…",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::without_paths;

    #[test]
    fn paths_of_the_host_are_not_told() {
        let told =
            without_paths("layer /var/lib/x/layers/ly_1 was made over \"/srv/code\": try / or a/b");
        assert_eq!(told, "layer … was made over … try / or a/b");
    }
}
