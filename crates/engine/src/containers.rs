//! Container engines: the images they have, and containers of ours that were left.

use std::ops::ControlFlow;
use std::path::Path;

use ringfence_runtime::RuntimeError;
use ringfence_runtime::docker::{Engine, Step, address};

use crate::problem::{Code, Problem, Result};
use crate::wardens::end::is_alive;

/// The runtimes that this server can use now.
pub fn runtimes() -> Vec<String> {
    let mut names = vec!["bwrap".to_owned()];
    if is_root() && listens(&address()) {
        names.push("docker".to_owned());
    }
    names
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether somebody answers, by knocking: this is asked often.
fn listens(address: &str) -> bool {
    match address.strip_prefix("unix://") {
        Some(path) => std::os::unix::net::UnixStream::connect(path).is_ok(),
        None => true,
    }
}

/// Makes sure that the image is there, and fetches it if that is `allowed` and the engine can. May
/// take minutes; each step of it is told, and who has left stops it.
pub(crate) fn ensure(
    name: &str,
    allowed: bool,
    tell: impl FnMut(Step) -> ControlFlow<()>,
) -> Result<()> {
    if !is_root() {
        return Err(unsupported(ringfence_runtime::docker::needs_root()));
    }
    let engine = Engine::connect().map_err(unsupported)?;
    if engine.image(name).map_err(unsupported)?.is_some() {
        return Ok(());
    }
    if !allowed {
        return Err(not_fetched(name));
    }
    tracing::info!(image = name, "fetching an image");
    engine.pull(name, tell).map_err(unsupported)
}

fn not_fetched(name: &str) -> Problem {
    let message = format!("there is no image {name} here, and this server fetches none");
    Problem::new(Code::Unsupported, message)
        .with("runtime", "docker")
        .with("hint", "ask whoever runs the server to bring it there with `docker pull`")
}

/// Removes containers of sandboxes below `all` that have no warden: the engine did not answer when
/// they were to go. Returns whose they were.
pub(crate) fn sweep(all: &Path) -> Vec<String> {
    if !is_root() || !listens(&address()) {
        return Vec::new();
    }
    let Ok(engine) = Engine::connect() else { return Vec::new() };
    let found = engine.ours().unwrap_or_default();
    let left = found.into_iter().filter(|found| {
        let dir = Path::new(&found.dir);
        dir.parent() == Some(all) && !is_alive(dir)
    });
    let removed = left.filter(|found| engine.remove(&found.container).is_ok());
    removed.map(|found| found.sandbox).collect()
}

fn unsupported(error: RuntimeError) -> Problem {
    let problem = Problem::new(Code::Unsupported, error.to_string()).with("runtime", "docker");
    match error.hint() {
        Some(hint) => problem.with("hint", hint),
        None => problem,
    }
}
