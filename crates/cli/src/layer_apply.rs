//! `ringfence layer apply`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ringfence_fs::apply::{Applied, ApplyOptions, apply};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, NO};
use crate::layer::{explain, open};
use crate::layer_changes::{line, to_json};
use crate::output::{self, Paint, path_fields, shown};
use crate::policy_args::PolicyArgs;

/// Write the changes of a layer back to its base, or to another directory
///
/// Each file is compared with what it was when the layer covered it. If anything changed on both
/// sides, the conflicts are listed and nothing at all is written. Only changes that the policy lets
/// an agent make are applied; the policy is the one the layer was written under unless one is
/// given. The layer stays, and has nothing left to apply.
///
/// Exit codes: 0 done, also if the policy left something out; 1 conflicts, nothing written;
/// 2 bad input or a layer in use; 3 a failure while writing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence layer apply --dry-run ./changes
  ringfence layer apply ./changes
  ringfence layer apply --to ./copy --preset agent-safe ./changes")]
pub(crate) struct ApplyArgs {
    /// Write here instead of the base
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// Overwrite what changed on both sides
    #[arg(long)]
    force: bool,

    /// Say what would be done and write nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// The directory that holds the layer
    layer: PathBuf,
}

pub(crate) fn run(args: &ApplyArgs) -> Result<ExitCode, Failure> {
    let policy = match args.policy.is_given() {
        true => Some(args.policy.compile()?),
        false => None,
    };
    if let Some(dir) = args.to.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(Failure::bad_input(format!("{} is not a directory", dir.display())));
    }
    let mut layer = open(&args.layer)?;
    let options =
        ApplyOptions { to: args.to.clone(), force: args.force, dry_run: args.dry_run, policy };
    let applied = apply(&mut layer, &options).map_err(explain)?;
    match args.json {
        true => output::print_json(&described(args, &applied))?,
        false => output::print(report(args, &applied).as_bytes())?,
    }
    let conflicts = !applied.conflicts.is_empty();
    Ok(if conflicts { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn report(args: &ApplyArgs, applied: &Applied) -> String {
    let paint = Paint::for_stdout();
    let mut text = String::new();
    if applied.conflicts.is_empty() {
        applied.changes.iter().for_each(|change| text += &line(change, paint));
    }
    for refusal in &applied.refused {
        let line = line(&refusal.change, paint);
        text += &format!("refused: {} ({} is not writable)\n", line.trim_end(), refusal.because);
    }
    for conflict in &applied.conflicts {
        text += &format!("conflict: {}: {}\n", shown(&conflict.path), conflict.reason);
    }
    text + &summary(args, applied)
}

fn summary(args: &ApplyArgs, applied: &Applied) -> String {
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    };
    let target = applied.target.display();
    let changes = count(applied.changes.len(), "change");
    if !applied.conflicts.is_empty() {
        let forced = applied.conflicts.iter().all(|conflict| conflict.reason.yields_to_force());
        let hint = if forced { "; --force lets the layer win" } else { "" };
        let conflicts = count(applied.conflicts.len(), "conflict");
        return format!("{conflicts}, nothing was written to {target}{hint}\n");
    }
    match (applied.changes.is_empty(), args.dry_run) {
        (true, _) => "nothing to apply\n".into(),
        (false, true) => format!("{changes} would be applied to {target}\n"),
        (false, false) if applied.stale => format!(
            "{changes} applied to {target}; the base has moved away from under the layer, remove \
             it with `ringfence layer rm {}`\n",
            args.layer.display()
        ),
        (false, false) => format!(
            "{changes} applied to {target}; the layer stays, `ringfence layer rm {}` removes it\n",
            args.layer.display()
        ),
    }
}

fn described(args: &ApplyArgs, applied: &Applied) -> Value {
    let conflict = |conflict: &ringfence_fs::apply::Conflict| {
        let mut fields: Map<String, Value> =
            path_fields("path", &conflict.path).into_iter().collect();
        fields.insert("reason".into(), json!(conflict.reason.to_string()));
        fields.insert("yields_to_force".into(), json!(conflict.reason.yields_to_force()));
        Value::Object(fields)
    };
    let refused = |refusal: &ringfence_fs::apply::Refusal| {
        let mut value = to_json(&refusal.change);
        value["not_writable"] = json!(refusal.because.to_string());
        value
    };
    json!({
        "layer": args.layer.to_string_lossy(),
        "target": applied.target.to_string_lossy(),
        "dry_run": args.dry_run,
        "written": applied.written,
        "stale": applied.stale,
        "changes": applied.changes.iter().map(to_json).collect::<Vec<_>>(),
        "refused": applied.refused.iter().map(refused).collect::<Vec<_>>(),
        "conflicts": applied.conflicts.iter().map(conflict).collect::<Vec<_>>(),
    })
}
