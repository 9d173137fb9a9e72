//! `ringfence doctor`: what this host can enforce.

use std::process::ExitCode;

use clap::Args;
use ringfence_runtime::probe::{Finding, State, findings};
use serde_json::json;

use crate::failure::{Failure, NO};
use crate::output::{self, Colour, Paint};

/// Say what this host can enforce, what it cannot, and how to mend that
///
/// Exit codes: 0 sandboxes can be started here; 1 something they need is missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence doctor
  ringfence doctor --json")]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let findings = findings();
    match args.json {
        true => output::print_json(&findings.iter().map(described).collect::<Vec<_>>())?,
        false => output::print(report(&findings).as_bytes())?,
    }
    let missing = findings.iter().any(|finding| finding.state == State::Missing);
    Ok(if missing { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn report(findings: &[Finding]) -> String {
    let paint = Paint::for_stdout();
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = name(finding.state);
        let word = paint.text(colour, &format!("{word:<7}"));
        text += &format!("{word} {:width$}  {}\n", finding.what, finding.detail);
        if let Some(fix) = &finding.fix {
            text += &format!("        {:width$}  fix: {fix}\n", "");
        }
    }
    text
}

fn name(state: State) -> (&'static str, Colour) {
    match state {
        State::Ok => ("ok", Colour::Green),
        State::Limited => ("limited", Colour::Yellow),
        State::Missing => ("missing", Colour::Red),
    }
}

fn described(finding: &Finding) -> serde_json::Value {
    json!({
        "what": finding.what, "state": name(finding.state).0,
        "detail": finding.detail, "fix": finding.fix,
    })
}
