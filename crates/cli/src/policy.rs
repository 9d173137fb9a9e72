//! `ringfence policy`: asking a policy about paths, trees and itself.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_policy::{Explanation, RuleRef, WorkspacePath, preset, preset_names};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::{self, Colour, Paint, path_fields};
use crate::policy_args::PolicyArgs;
use crate::policy_check::CheckArgs;
use crate::policy_tree::TreeArgs;

/// Ask a policy about paths, trees and itself; nothing is mounted or changed
#[derive(Debug, Args)]
pub(crate) struct PolicyCommandArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Explain(ExplainArgs),
    Tree(TreeArgs),
    Check(CheckArgs),
    Presets(PresetsArgs),
}

/// Say which level paths have, which rule decides, and which one would without it
///
/// Paths are those of the workspace, whether or not anything is there. Exit codes: 0; 2 bad input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence policy explain src/main.py .env
  ringfence policy explain --preset read-only --rule 'write:/docs/**' docs/index.md")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Print one JSON object per path
    #[arg(long)]
    json: bool,

    /// Paths in the workspace
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
}

/// List the presets and their rules
#[derive(Debug, Args)]
pub(crate) struct PresetsArgs {
    /// Print one JSON object per preset
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: PolicyCommandArgs) -> Result<ExitCode, Failure> {
    match args.command {
        PolicyCommand::Explain(args) => explain(&args),
        PolicyCommand::Tree(args) => crate::policy_tree::run(&args),
        PolicyCommand::Check(args) => crate::policy_check::run(&args),
        PolicyCommand::Presets(args) => presets(&args),
    }
}

fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let policy = args.policy.compile()?;
    let paths: Result<Vec<_>, _> = args.paths.iter().map(parse).collect();
    for path in paths? {
        let answer = policy.explain(&path);
        match args.json {
            true => output::print_json(&to_json(&answer))?,
            false => output::print(to_text(&answer).as_bytes())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parse(path: &OsString) -> Result<WorkspacePath, Failure> {
    WorkspacePath::parse(path.as_bytes())
        .map_err(|e| Failure::bad_input(format!("{}: {e}", path.display())))
}

fn to_text(answer: &Explanation) -> String {
    let level = Paint::for_stdout().text(Colour::of(answer.level), answer.level.as_str());
    let mut text = format!("{}: {level}\n", answer.path);
    let mut line = |name: &str, value: String| text += &format!("  {name:<11}{value}\n");
    match &answer.winner {
        Some(rule) => line("decided by", rule_text(rule)),
        None if answer.path.is_root() => line("because", "the root is always visible".into()),
        None => line("because", "no rule matches".into()),
    }
    if let Some(dir) = &answer.hidden_by {
        line("hidden by", format!("{dir} and all below it"));
    }
    if let Some(rule) = &answer.runner_up {
        line("runner-up", rule_text(rule));
    }
    text
}

fn rule_text(found: &RuleRef) -> String {
    format!("{} (rule {}, {})", found.rule, found.index, found.rule.source)
}

fn to_json(answer: &Explanation) -> Value {
    let rule = |found: &RuleRef| {
        let rule = &found.rule;
        json!({
            "index": found.index,
            "pattern": rule.pattern,
            "type": rule.pattern_type,
            "level": rule.level,
            "priority": rule.priority,
            "source": rule.source.to_string(),
        })
    };
    let mut fields: Map<_, _> = path_fields("path", &answer.path).into_iter().collect();
    fields.insert("level".into(), json!(answer.level));
    fields.insert("decided_by".into(), json!(answer.winner.as_ref().map(rule)));
    fields.insert("runner_up".into(), json!(answer.runner_up.as_ref().map(rule)));
    let hidden_by = answer.hidden_by.as_ref().map(WorkspacePath::to_string);
    fields.insert("hidden_by".into(), json!(hidden_by));
    Value::Object(fields)
}

fn presets(args: &PresetsArgs) -> Result<ExitCode, Failure> {
    for name in preset_names() {
        let rules = preset(name).unwrap_or_default();
        if args.json {
            output::print_json(&json!({ "preset": name, "rules": rules }))?;
            continue;
        }
        let lines: String = rules.iter().map(|rule| format!("  {rule}\n")).collect();
        output::print(format!("{name}\n{lines}").as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
