//! `ringfence policy check`: mistakes in a policy file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ringfence_policy::{Lint, Policy, PolicyFile, PolicyFileError, Rule, RuleSource, lint};
use serde_json::{Value, json};

use crate::failure::{Failure, NO};
use crate::output;
use crate::policy_tree::paths_below;

/// Find mistakes in a policy file
///
/// Reported are rules that can never win, and with `--against` those of the file's own rules that
/// do nothing for what is in that directory.
///
/// Exit codes: 0 nothing found; 1 findings; 2 the file is malformed (line and column are named).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence policy check policy.toml
  ringfence policy check policy.toml --against ./project")]
pub(crate) struct CheckArgs {
    /// Also report rules that do nothing for what is in this directory
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,

    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    /// The policy file
    file: PathBuf,
}

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let name = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .map_err(|e| Failure::bad_input(format!("cannot read {name}: {e}")))?;
    let rules = match PolicyFile::parse(&text) {
        Ok(file) => file.into_rules(),
        Err(e) => return malformed(args, &e),
    };
    let findings = findings(args, &rules)?;
    match args.json {
        true => output::print_json(&described(args, &rules, &findings))?,
        false => output::print(report(args, &rules, &findings).as_bytes())?,
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn malformed(args: &CheckArgs, e: &PolicyFileError) -> Result<ExitCode, Failure> {
    if args.json {
        let error = json!({ "line": e.line, "column": e.column, "message": e.reason.to_string() });
        output::print_json(&json!({ "file": args.file.to_string_lossy(), "error": error }))?;
    }
    Err(Failure::bad_input(format!("{}: {e}", args.file.display())))
}

/// Findings about the file's own rules. A preset is made for any project, so that some of its rules
/// do nothing here is no mistake.
fn findings(args: &CheckArgs, rules: &[Rule]) -> Result<Vec<Lint>, Failure> {
    let mut findings = lint(rules);
    if let Some(dir) = &args.against {
        let policy = Policy::compile(rules.to_vec()).map_err(Failure::bad_input)?;
        let paths = paths_below(dir)
            .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", dir.display())))?;
        for found in ringfence_policy::lint_against(&policy, paths.iter()) {
            if !findings.iter().any(|known| known.rule() == found.rule()) {
                findings.push(found);
            }
        }
    }
    let own = |found: &Lint| rules.get(found.rule()).is_some_and(|r| r.source == RuleSource::User);
    findings.retain(own);
    findings.sort_by_key(Lint::rule);
    Ok(findings)
}

fn report(args: &CheckArgs, rules: &[Rule], findings: &[Lint]) -> String {
    let name = args.file.display();
    if findings.is_empty() {
        return format!("{name}: {} rules, nothing to report\n", rules.len());
    }
    let line = |found: &Lint| {
        let rule = rules.get(found.rule()).map(Rule::to_string).unwrap_or_default();
        format!("{name}: {found}: `{rule}`\n")
    };
    findings.iter().map(line).collect()
}

fn described(args: &CheckArgs, rules: &[Rule], findings: &[Lint]) -> Value {
    let finding = |found: &Lint| {
        json!({
            "rule": found.rule(),
            "pattern": rules.get(found.rule()).map(|rule| &rule.pattern),
            "message": found.to_string(),
        })
    };
    json!({
        "file": args.file.to_string_lossy(),
        "rules": rules.len(),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
