//! The rules in force in a sandbox.

use clap::{Args, Subcommand};
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::trouble::told;
use super::super::{rules, show};
use crate::failure::Failure;
use crate::policy_args::PolicyArgs as RuleArgs;

/// Look at the rules of a sandbox, change them while it runs, or ask why
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox policy show sb_0123456789abcdef
  ringfence sandbox policy set sb_0123456789abcdef --preset agent-safe --rule 'write:/docs/**'
  ringfence sandbox policy explain sb_0123456789abcdef .env src/main.rs")]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show the rules in force
    Show { id: String },
    /// Put other rules in force, for every file that is opened from now on
    Set {
        id: String,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Say what may be done with paths, and which rule says so
    Explain {
        id: String,
        #[arg(required = true)]
        paths: Vec<String>,
    },
}

pub(super) async fn act(server: &Server, json: bool, args: &PolicyArgs) -> Result<(), Failure> {
    let mut workspace = server.workspace();
    match &args.command {
        PolicyCommand::Show { id } => {
            let request = v1::GetPolicyRequest { sandbox_id: id.clone() };
            let found = workspace.get_policy(request).await.map_err(told)?.into_inner();
            list(json, &found.permissions)
        }
        PolicyCommand::Set { id, rules } => {
            if !rules.is_given() {
                return Err(Failure::bad_input("there are no rules to set")
                    .hint("give --preset, --policy or --rule"));
            }
            let request = v1::SetPolicyRequest {
                sandbox_id: id.clone(),
                permissions: rules::to_wire(rules.compile()?.rules()),
                ..Default::default()
            };
            let set = workspace.set_policy(request).await.map_err(told)?.into_inner();
            if json { list(json, &set.permissions) } else { Ok(()) }
        }
        PolicyCommand::Explain { id, paths } => {
            let request = v1::ExplainRequest { sandbox_id: id.clone(), paths: paths.clone() };
            let found = workspace.explain(request).await.map_err(told)?.into_inner();
            explain(json, &found.explanations)
        }
    }
}

fn list(json: bool, permissions: &[v1::PermissionRule]) -> Result<(), Failure> {
    show::list(json, permissions, &["LEVEL", "PRIORITY", "PATTERN"], |rule| {
        vec![
            rules::level(rule.permission()).into(),
            rule.priority.to_string(),
            rule.pattern.clone(),
        ]
    })
}

fn explain(json: bool, explanations: &[v1::Explanation]) -> Result<(), Failure> {
    show::list(json, explanations, &["PATH", "LEVEL", "RULE", "WHY"], |answer| {
        vec![
            answer.path.clone(),
            rules::level(answer.permission()).into(),
            answer.rule.as_ref().map(rules::shown).unwrap_or_default(),
            answer.reason.clone(),
        ]
    })
}
