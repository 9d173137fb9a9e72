//! `ringfence layer freeze`, `fork`, `rm` and `show`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ringfence_fs::LayerError;
use ringfence_fs::layers::format::{LayerDir, LayerState};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::layer::{explain, inspect_all, open};
use crate::output;

/// Which layers a command is about.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence layer show ./changes
  ringfence layer freeze ./changes
  ringfence layer rm ./attempt-1 ./attempt-2")]
pub(crate) struct LayersArgs {
    /// Print one JSON object per layer
    #[arg(long)]
    json: bool,

    /// Directories that hold layers
    #[arg(required = true, value_name = "LAYER")]
    layers: Vec<PathBuf>,
}

/// Make new live layers that stand on a frozen one
///
/// Nothing is copied. Exit codes: 0 done; 2 the layer is not frozen, or a new one cannot be made (then none was).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence layer freeze ./setup
  ringfence layer fork ./setup ./attempt-1 ./attempt-2
  ringfence mount --base ./project --layer ./attempt-1 /mnt/work")]
pub(crate) struct ForkArgs {
    /// Print one JSON object per new layer
    #[arg(long)]
    json: bool,

    /// The frozen layer to stand on
    layer: PathBuf,

    /// Directories to make; they must not exist, or be empty
    #[arg(required = true, value_name = "NEW")]
    new: Vec<PathBuf>,
}

pub(crate) fn freeze(args: &LayersArgs) -> Result<ExitCode, Failure> {
    let mut layers = open_all(&args.layers)?;
    for layer in &mut layers {
        layer.freeze().map_err(explain)?;
        say(args.json, &format!("frozen {}", layer.path().display()), layer)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn fork(args: &ForkArgs) -> Result<ExitCode, Failure> {
    let parent = LayerDir::inspect(&args.layer).map_err(explain)?;
    if parent.meta().state != LayerState::Frozen {
        return Err(explain(LayerError::NotFrozen { path: parent.path().into() }));
    }
    for (index, new) in args.new.iter().enumerate() {
        check_new(&parent, new)?;
        if args.new[..index].contains(new) {
            return Err(Failure::bad_input(format!("{} is named twice", new.display())));
        }
    }
    for new in &args.new {
        let child = parent.fork(new).map_err(explain)?;
        let text = format!("forked {} on {}", child.path().display(), parent.path().display());
        say(args.json, &text, &child)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All new layers are checked before the first is made.
fn check_new(parent: &LayerDir, new: &Path) -> Result<(), Failure> {
    let is_empty = |dir: std::fs::ReadDir| dir.into_iter().next().is_none();
    if new.symlink_metadata().is_ok() && !std::fs::read_dir(new).is_ok_and(is_empty) {
        return Err(explain(LayerError::Exists { path: new.into() }));
    }
    let above = new.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = above.canonicalize().map_err(|e| {
        Failure::bad_input(format!("cannot make {}: {}: {e}", new.display(), above.display()))
    })?;
    let meta = parent.meta();
    let taken = meta.parents.iter().chain([&meta.base]).map(PathBuf::as_path);
    match taken.chain([parent.path()]).find(|dir| above.starts_with(dir)) {
        Some(dir) => Err(Failure::bad_input(format!(
            "{} would be inside {}, which must stay as it is",
            new.display(),
            dir.display()
        ))),
        None => Ok(()),
    }
}

pub(crate) fn remove(args: &LayersArgs) -> Result<ExitCode, Failure> {
    let layers = open_all(&args.layers)?;
    check_unneeded(&layers)?;
    for layer in layers {
        let value = described(&layer);
        let path = layer.path().to_path_buf();
        layer.remove().map_err(explain)?;
        match args.json {
            true => output::print_json(&value)?,
            false => output::print(format!("removed {}\n", path.display()).as_bytes())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses before anything is removed. A layer may be given after those that stand on it.
fn check_unneeded(layers: &[LayerDir]) -> Result<(), Failure> {
    for (index, layer) in layers.iter().enumerate() {
        let children = layer.children().map_err(explain)?;
        let kept = |child: &PathBuf| !layers[..index].iter().any(|gone| gone.path() == child);
        if let Some(child) = children.into_iter().find(kept) {
            return Err(explain(LayerError::InUseBy { path: layer.path().into(), child }));
        }
    }
    Ok(())
}

pub(crate) fn show(args: &LayersArgs) -> Result<ExitCode, Failure> {
    for layer in inspect_all(&args.layers)? {
        match args.json {
            true => output::print_json(&described(&layer))?,
            false => output::print(summary(&layer).as_bytes())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open_all(paths: &[PathBuf]) -> Result<Vec<LayerDir>, Failure> {
    paths.iter().map(|path| open(path)).collect()
}

fn say(as_json: bool, text: &str, layer: &LayerDir) -> Result<(), Failure> {
    match as_json {
        true => output::print_json(&described(layer)),
        false => output::print(format!("{text}\n").as_bytes()),
    }
}

fn state(layer: &LayerDir) -> &'static str {
    match layer.meta().state {
        LayerState::Live => "live",
        LayerState::Frozen => "frozen",
    }
}

fn described(layer: &LayerDir) -> Value {
    let meta = layer.meta();
    let texts = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    };
    json!({
        "id": meta.id,
        "layer": layer.path().to_string_lossy(),
        "state": state(layer),
        "in_use": layer.is_in_use(),
        "base": meta.base.to_string_lossy(),
        "parents": texts(&meta.parents),
        "children": texts(&layer.children().unwrap_or_default()),
        "rules": meta.rules,
    })
}

fn summary(layer: &LayerDir) -> String {
    let meta = layer.meta();
    let used = if layer.is_in_use() { ", in use" } else { "" };
    let mut text = format!("{}\n", layer.path().display());
    let mut field = |name: &str, value: String| text += &format!("  {name:<9}{value}\n");
    field("id", meta.id.clone());
    field("state", format!("{}{used}", state(layer)));
    field("base", meta.base.display().to_string());
    for parent in &meta.parents {
        field("on", parent.display().to_string());
    }
    for child in layer.children().unwrap_or_default() {
        field("below", child.display().to_string());
    }
    for rule in &meta.rules {
        field("rule", format!("{}:{}@{}", rule.level, rule.pattern, rule.priority));
    }
    text
}
