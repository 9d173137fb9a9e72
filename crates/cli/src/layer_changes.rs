//! `ringfence layer changes` and `diff`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ringfence_fs::changes::{Change, ChangeKind, EntryKind, LayerView};
use ringfence_fs::diff::write_diff;
use ringfence_fs::layers::format::LayerDir;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::layer::{explain, inspect_all};
use crate::output::{self, Colour, Paint, path_fields, shown};

/// Which layers to look at.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence layer changes ./changes
  ringfence layer diff ./changes | less
  ringfence layer diff ./changes | git apply --directory=elsewhere
  ringfence layer changes --json ./changes | jq -r '.changes[].path'")]
pub(crate) struct LookArgs {
    /// Print one JSON object per layer
    #[arg(long)]
    json: bool,

    /// Directories that hold layers
    #[arg(required = true, value_name = "LAYER")]
    layers: Vec<PathBuf>,
}

pub(crate) fn changes(args: &LookArgs) -> Result<ExitCode, Failure> {
    let paint = Paint::for_stdout();
    for layer in inspect_all(&args.layers)? {
        let changes = view(&layer)?.changes().map_err(explain)?;
        if args.json {
            output::print_json(&described(&layer, &changes))?;
            continue;
        }
        let mut text = heading(args, &layer);
        changes.iter().for_each(|change| text += &line(change, paint));
        output::print(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn diff(args: &LookArgs) -> Result<ExitCode, Failure> {
    let paint = Paint::for_stdout();
    for layer in inspect_all(&args.layers)? {
        let view = view(&layer)?;
        let changes = view.changes().map_err(explain)?;
        let mut patch = Vec::new();
        write_diff(&view, &changes, &mut patch).map_err(|e| {
            Failure::broken(format!("cannot compare {}: {e}", layer.path().display()))
        })?;
        if args.json {
            let mut value = described(&layer, &changes);
            value["diff"] = json!(String::from_utf8_lossy(&patch));
            output::print_json(&value)?;
        } else if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            output::print(&output::patch_for_terminal(&patch, paint))?;
        } else {
            output::print(&patch)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn view(layer: &LayerDir) -> Result<LayerView, Failure> {
    LayerView::open(layer).map_err(explain)
}

fn heading(args: &LookArgs, layer: &LayerDir) -> String {
    match args.layers.len() {
        1 => String::new(),
        _ => format!("{}:\n", layer.path().display()),
    }
}

fn described(layer: &LayerDir, changes: &[Change]) -> Value {
    json!({
        "layer": layer.path().to_string_lossy(),
        "base": layer.meta().base.to_string_lossy(),
        "changes": changes.iter().map(to_json).collect::<Vec<_>>(),
    })
}

/// A change as one line in the manner of `git status --short`.
pub(crate) fn line(change: &Change, paint: Paint) -> String {
    let (letter, colour) = match change.kind {
        ChangeKind::Added => ("A", Colour::Green),
        ChangeKind::Modified => ("M", Colour::Yellow),
        ChangeKind::Deleted => ("D", Colour::Red),
        ChangeKind::Renamed { .. } => ("R", Colour::Cyan),
        ChangeKind::Mode { .. } => ("m", Colour::Yellow),
    };
    format!("{} {}\n", paint.text(colour, letter), what(change))
}

fn what(change: &Change) -> String {
    let directory = change.entry == EntryKind::Directory;
    let name = |path: &ringfence_policy::WorkspacePath| match directory && !path.is_root() {
        true => format!("{}/", shown(path)),
        false => shown(path),
    };
    let path = name(&change.path);
    match &change.kind {
        ChangeKind::Renamed { from } => format!("{} -> {path}", name(from)),
        ChangeKind::Mode { from, to } => format!("{path} (mode {from:03o} -> {to:03o})"),
        _ => path,
    }
}

pub(crate) fn to_json(change: &Change) -> Value {
    let mut fields = Map::new();
    fields.insert("change".into(), json!(change.kind.as_str()));
    fields.extend(path_fields("path", &change.path));
    fields.insert("type".into(), json!(change.entry.as_str()));
    match &change.kind {
        ChangeKind::Renamed { from } => fields.extend(path_fields("from", from)),
        ChangeKind::Mode { from, to } => {
            fields.insert("old_mode".into(), json!(format!("{from:04o}")));
            fields.insert("new_mode".into(), json!(format!("{to:04o}")));
        }
        _ => {}
    }
    Value::Object(fields)
}
