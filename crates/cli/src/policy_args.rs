//! The options by which every command takes a policy, and how they add up.

use std::path::PathBuf;

use clap::Args;
use ringfence_policy::{Policy, PolicyFile, Rule, preset, preset_names};

use crate::failure::Failure;

/// Rules add up in this order: the preset, the file, the rules of the command line. On a tie the
/// later one wins.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyArgs {
    /// Start from a named set of rules: view-only, read-only, agent-safe, development, full-access
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,

    /// Read rules from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Add a rule, e.g. `none:**/*.key@100` or `write:/output/**`; may be repeated
    #[arg(long, value_name = "LEVEL:PATTERN[@PRIORITY]")]
    pub(crate) rule: Vec<String>,
}

/// What is in force if nothing is said.
const DEFAULT_PRESET: &str = "agent-safe";

impl PolicyArgs {
    /// Whether any rule was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.preset.is_some() || self.policy.is_some() || !self.rule.is_empty()
    }

    pub(crate) fn compile(&self) -> Result<Policy, Failure> {
        Policy::compile(self.rules()?).map_err(Failure::bad_input)
    }

    fn rules(&self) -> Result<Vec<Rule>, Failure> {
        let mut rules = Vec::new();
        let default = (self.policy.is_none() && self.rule.is_empty()).then_some(DEFAULT_PRESET);
        if let Some(name) = self.preset.as_deref().or(default) {
            rules.extend(preset(name).ok_or_else(|| unknown_preset(name))?);
        }
        if let Some(path) = &self.policy {
            rules.extend(read_policy_file(path)?.into_rules());
        }
        for text in &self.rule {
            rules.push(Rule::parse_cli(text).map_err(Failure::bad_input)?);
        }
        Ok(rules)
    }
}

pub(crate) fn read_policy_file(path: &std::path::Path) -> Result<PolicyFile, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", path.display())))?;
    PolicyFile::parse(&text).map_err(|e| Failure::bad_input(format!("{}: {e}", path.display())))
}

fn unknown_preset(name: &str) -> Failure {
    let names: Vec<_> = preset_names().collect();
    Failure::bad_input(format!("there is no preset {name:?}"))
        .hint(format!("the presets are {}", names.join(", ")))
}
