//! Policies as people keep them next to their code.
//!
//! ```toml
//! preset = "agent-safe"       # optional; its rules come first
//!
//! [[rule]]
//! pattern = "/build/**"
//! level = "write"
//! priority = 10               # optional, 0
//! type = "glob"               # optional; glob, directory or file
//! ```

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::error::{PolicyFileError, PolicyFileFault, PresetError, RuleError};
use crate::glob::Glob;
use crate::preset::PresetRegistry;
use crate::rule::{Rule, RuleSource};

/// A policy file that was read and found well formed, patterns included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The preset it builds on.
    pub preset: Option<String>,
    /// The file's own rules, in order.
    pub rules: Vec<Rule>,
    preset_rules: Vec<Rule>,
}

impl PolicyFile {
    /// Reads a file that may build on a built-in preset.
    pub fn parse(text: &str) -> Result<Self, PolicyFileError> {
        Self::parse_with(text, &PresetRegistry::new())
    }

    /// Reads a file that may build on any preset of `presets`. The preset's rules are taken now, so
    /// what the file means does not change afterwards.
    pub fn parse_with(text: &str, presets: &PresetRegistry) -> Result<Self, PolicyFileError> {
        let read = || -> Result<PolicyFile, Located> {
            let document: Document = toml::from_str(text).map_err(syntax)?;
            let preset_rules = match &document.preset {
                Some(name) => lookup(name, presets)?,
                None => Vec::new(),
            };
            Ok(PolicyFile {
                preset: document.preset.map(Spanned::into_inner),
                rules: document.rule.into_iter().map(to_rule).collect::<Result<_, _>>()?,
                preset_rules,
            })
        };
        read().map_err(|(fault, span)| at(text, span, fault))
    }

    /// The preset's rules, then the file's own, which therefore win ties.
    pub fn into_rules(self) -> Vec<Rule> {
        let mut rules = self.preset_rules;
        rules.extend(self.rules);
        rules
    }
}

/// A fault and the bytes of the file it is about.
type Located = (PolicyFileFault, Range<usize>);

/// Unknown keys are refused: a misspelt `priority` would quietly weaken a deny rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    preset: Option<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    pattern: Spanned<String>,
    level: Spanned<String>,
    #[serde(default)]
    priority: i32,
    r#type: Option<Spanned<String>>,
}

fn lookup(name: &Spanned<String>, presets: &PresetRegistry) -> Result<Vec<Rule>, Located> {
    let unknown = || PresetError::Unknown { name: name.get_ref().clone() };
    match presets.get(name.get_ref()) {
        Some(rules) => Ok(rules.to_vec()),
        None => Err((unknown().into(), name.span())),
    }
}

fn to_rule(entry: Entry) -> Result<Rule, Located> {
    let rule = Rule {
        level: parse(&entry.level)?,
        pattern_type: entry.r#type.as_ref().map(parse).transpose()?.unwrap_or_default(),
        priority: entry.priority,
        pattern: entry.pattern.get_ref().clone(),
        source: RuleSource::User,
    };
    match Glob::parse(&rule) {
        Ok(_) => Ok(rule),
        Err(source) => {
            let pattern = rule.pattern;
            Err((RuleError::Pattern { pattern, source }.into(), entry.pattern.span()))
        }
    }
}

fn parse<T: std::str::FromStr<Err = RuleError>>(text: &Spanned<String>) -> Result<T, Located> {
    text.get_ref().parse().map_err(|error: RuleError| (error.into(), text.span()))
}

fn syntax(error: toml::de::Error) -> Located {
    let reason = error.message().to_owned();
    (PolicyFileFault::Syntax { reason }, error.span().unwrap_or(0..0))
}

fn at(text: &str, span: Range<usize>, reason: PolicyFileFault) -> PolicyFileError {
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    PolicyFileError {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        reason,
    }
}
