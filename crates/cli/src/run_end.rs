//! What `run` and `shell` do and say when what they ran is over.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use ringfence_fs::apply::{ApplyOptions, apply};
use ringfence_fs::changes::{Change, changes};
use ringfence_fs::layers::format::LayerDir;
use ringfence_link::warden::{Denied, Outcome};
use ringfence_policy::Rule;
use ringfence_warden::journal::{self, Event};
use ringfence_wire::v1;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::layer::explain;
use crate::layer_changes::{line, to_json};
use crate::output::{Paint, shown};
use crate::own_sandbox::Place;
use crate::run::Finished;
use crate::sandbox_args::SandboxArgs;

/// Lines of one kind before the rest is only counted.
const LINES: usize = 20;

/// What becomes of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Applied,
    Discarded,
    Kept,
    /// There was nothing to keep.
    Nothing,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Discarded => "discarded",
            Self::Kept => "kept",
            Self::Nothing => "none",
        }
    }
}

/// A place that cannot be written to is found out before anything runs.
pub(crate) fn check_json(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let file = File::options().create(true).append(true).open(path);
    file.map(drop).map_err(|e| Failure::bad_input(format!("cannot write {}: {e}", path.display())))
}

/// Reports what there is to say, and applies, discards or keeps the changes.
pub(crate) fn settle(
    args: &SandboxArgs,
    finished: &Finished,
    record: Option<&Path>,
) -> Result<(), Failure> {
    let place = &finished.place;
    let layer = LayerDir::open(&place.layer).map_err(explain)?;
    let found = changes(&layer).map_err(explain)?;
    let paint = Paint::for_stderr();
    eprint!("{}", remarks(&finished.outcome, &place.base) + &changed(&found, paint));
    let fate = decide(args, &found);
    let result = carry_out(fate, layer, place);
    if let Some(path) = record {
        let text = serde_json::to_vec_pretty(&described(finished, &found, fate));
        let text = text.map_err(Failure::broken)?;
        std::fs::write(path, text)
            .map_err(|e| Failure::broken(format!("cannot write {}: {e}", path.display())))?;
    }
    result
}

/// Everything the journal says was refused, each path once.
pub(crate) fn denied_on_record(dir: &Path) -> Vec<Denied> {
    let mut all: Vec<Denied> = Vec::new();
    let Ok(entries) = journal::read(dir) else { return all };
    for entry in entries.flatten().filter(|entry| entry.event.is_denial()) {
        let Event::Access(access) = entry.event else { continue };
        let path = String::from_utf8_lossy(&access.path.bytes()).into_owned();
        let same = |known: &&mut Denied| known.operation == access.operation && known.path == path;
        if let Some(known) = all.iter_mut().find(same) {
            known.count += access.count;
            continue;
        }
        let rule = access.rule.and_then(|rule| Rule::parse_cli(&rule.text).ok());
        all.push(Denied {
            operation: access.operation.into_owned(),
            path,
            needed: access.needed.as_str().into(),
            level: access.level.as_str().into(),
            priority: rule.as_ref().map(|rule| rule.priority),
            rule: rule.map(|rule| rule.pattern),
            count: access.count,
        });
    }
    all
}

fn decide(args: &SandboxArgs, found: &[Change]) -> Fate {
    match (found.is_empty(), args.apply, args.discard) {
        (true, ..) => Fate::Nothing,
        (_, true, _) => Fate::Applied,
        (_, _, true) => Fate::Discarded,
        _ if args.keep => Fate::Kept,
        _ => ask().unwrap_or(Fate::Kept),
    }
}

/// Asks a person, if there is one.
fn ask() -> Option<Fate> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    let mut input = std::io::BufReader::new(terminal);
    loop {
        eprint!("apply these changes to the directory, keep them aside, or discard them? [a/K/d] ");
        std::io::stderr().flush().ok()?;
        let mut answer = String::new();
        if input.read_line(&mut answer).ok()? == 0 {
            return None;
        }
        match answer.trim().to_lowercase().as_str() {
            "a" | "apply" => return Some(Fate::Applied),
            "" | "k" | "keep" => return Some(Fate::Kept),
            "d" | "discard" => return Some(Fate::Discarded),
            _ => {}
        }
    }
}

fn carry_out(fate: Fate, mut layer: LayerDir, place: &Place) -> Result<(), Failure> {
    let path = place.layer.display().to_string();
    match fate {
        Fate::Nothing | Fate::Discarded => {
            layer.remove().map_err(explain)?;
            if fate == Fate::Discarded {
                eprintln!("changes discarded");
            }
        }
        Fate::Kept => eprint!("{}", how_to_go_on(&path)),
        Fate::Applied => {
            let options = ApplyOptions { to: None, force: false, dry_run: false, policy: None };
            let applied = apply(&mut layer, &options).map_err(explain)?;
            for conflict in &applied.conflicts {
                eprintln!("conflict: {}: {}", shown(&conflict.path), conflict.reason);
            }
            if !applied.conflicts.is_empty() {
                eprintln!("nothing was applied: the directory has changed meanwhile");
                eprint!("{}", how_to_go_on(&path));
                return Ok(());
            }
            eprintln!("changes applied to {}", applied.target.display());
            layer.remove().map_err(explain)?;
        }
    }
    Ok(())
}

fn how_to_go_on(layer: &str) -> String {
    let layer = quote(layer);
    format!(
        "changes kept\n  look:    ringfence layer diff {layer}\n  apply:   ringfence layer apply \
         {layer}\n  discard: ringfence layer rm {layer}\n"
    )
}

/// For a shell, only where it must be.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    match text.chars().all(plain) {
        true => text.into(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn changed(found: &[Change], paint: Paint) -> String {
    let mut text = String::new();
    if found.is_empty() {
        return text;
    }
    let _ = writeln!(text, "changed in the workspace:");
    for change in found.iter().take(LINES) {
        let _ = write!(text, "  {}", line(change, paint));
    }
    text + &more(found.len())
}

fn more(count: usize) -> String {
    match count.saturating_sub(LINES) {
        0 => String::new(),
        rest => format!("  and {rest} more\n"),
    }
}

/// Limits that were met and accesses that were refused.
fn remarks(outcome: &Outcome, base: &Path) -> String {
    let mut text = String::new();
    if outcome.timed_out {
        let _ = writeln!(text, "ended: the time was up (--timeout)");
    }
    if outcome.oom_killed {
        let _ = writeln!(text, "killed: the memory limit was reached (--memory)");
    } else if let Some(reason) = &outcome.reason {
        let _ = writeln!(text, "ended: {reason}");
    }
    if outcome.pids_refused {
        let _ = writeln!(text, "refused: new processes, the limit was reached (--pids)");
    }
    if outcome.denied.is_empty() {
        return text;
    }
    let _ = writeln!(text, "refused by the policy:");
    for denied in outcome.denied.iter().take(LINES) {
        let _ = writeln!(text, "  {}", refusal(denied, base));
    }
    text + &more(outcome.denied.len() + outcome.denied_more as usize)
}

fn refusal(denied: &Denied, base: &Path) -> String {
    let Denied { operation, path, needed, level, rule, .. } = denied;
    let because = match rule {
        Some(rule) => format!("rule {level}:{rule}"),
        None => "no rule covers it".into(),
    };
    // To see a name is rarely what was wanted of it.
    let needed = if needed == "view" { "read" } else { needed };
    let priority = denied.priority.map_or(0, |priority| priority.saturating_add(1));
    // A directory is wanted with what is in it.
    let is_dir =
        base.join(path.trim_start_matches('/')).symlink_metadata().is_ok_and(|m| m.is_dir());
    let below = if is_dir { "/**" } else { "" };
    let allow = quote(&format!("{needed}:{}{below}@{priority}", escape(path)));
    format!("{operation} {path} ({because}); to allow it: --rule {allow}")
}

/// A path as a pattern that matches it and nothing else.
fn escape(path: &str) -> String {
    let special = |c: char| "*?[]{}\\!".contains(c);
    path.chars().fold(String::new(), |text, c| match special(c) {
        true => text + "\\" + &c.to_string(),
        false => text + &c.to_string(),
    })
}

fn described(finished: &Finished, found: &[Change], fate: Fate) -> Value {
    let Finished { sandbox, place, argv, outcome } = finished;
    let denied = |denied: &Denied| {
        json!({
            "operation": denied.operation, "path": denied.path, "needed": denied.needed,
            "level": denied.level, "rule": denied.rule, "count": denied.count,
        })
    };
    json!({
        "sandbox": sandbox.id,
        "command": argv,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "cancelled": outcome.cancelled,
        "oom_killed": outcome.oom_killed,
        "pids_refused": outcome.pids_refused,
        "reason": outcome.reason,
        "duration_us": outcome.duration_micros,
        "cpu_us": outcome.cpu_micros,
        "peak_memory_bytes": outcome.peak_memory,
        "stdout_bytes": outcome.stdout_bytes,
        "stderr_bytes": outcome.stderr_bytes,
        "denied": outcome.denied.iter().map(denied).collect::<Vec<_>>(),
        "denied_more": outcome.denied_more,
        "changes": found.iter().map(to_json).collect::<Vec<_>>(),
        "changes_are": fate.as_str(),
        "layer": (fate == Fate::Kept).then(|| place.layer.to_string_lossy()),
        "journal": place.dir.join("journal.jsonl").to_string_lossy(),
        "base": place.base.to_string_lossy(),
        "in_force": in_force(sandbox, place),
    })
}

fn in_force(sandbox: &v1::Sandbox, place: &Place) -> Value {
    let limits = sandbox.resources.unwrap_or_default();
    let confined = sandbox.confinement.clone().unwrap_or_default();
    let limit = |number: i64| (number != 0).then_some(number);
    let network = match sandbox.network() {
        v1::NetworkMode::Host => "host",
        v1::NetworkMode::Bridge => "bridge",
        v1::NetworkMode::None | v1::NetworkMode::Unspecified => "none",
    };
    json!({
        "runtime": match sandbox.runtime() {
            v1::RuntimeType::Docker => "docker",
            v1::RuntimeType::Bwrap | v1::RuntimeType::Unspecified => "bwrap",
        },
        "uid": confined.uid,
        "network": network,
        "seccomp": confined.seccomp,
        "landlock": confined.landlock_abi,
        "tracking": confined.tracking,
        "memory_bytes": limit(limits.memory_bytes),
        "cpu_quota_us": limit(limits.cpu_quota),
        "pids": limit(limits.pids_limit),
        "rules": place.rules,
    })
}
