//! Named sets of rules. One table, so that server, CLI and SDKs cannot drift apart; the shared
//! vectors hold every language to it.

use crate::error::PresetError;
use crate::level::Level;
use crate::policy::Policy;
use crate::rule::{Rule, RuleSource};

/// What an override is lifted by when it would not be above every rule of its base.
const OVERRIDE_STEP: i32 = 100;

/// A glob rule: level, pattern, priority.
type Row = (Level, &'static str, i32);

const VIEW_ONLY: &[Row] = &[(Level::View, "**/*", 0)];

const READ_ONLY: &[Row] = &[(Level::Read, "**/*", 0)];

const AGENT_SAFE: &[Row] = &[
    (Level::Read, "**/*", 0),
    (Level::Write, "/output/**", 10),
    (Level::Write, "/tmp/**", 10),
    (Level::None, "**/.env*", 100),
    (Level::None, "**/secrets/**", 100),
    (Level::None, "**/*.key", 100),
    (Level::None, "**/*.pem", 100),
    (Level::None, "**/credentials*", 100),
    (Level::None, "**/.git/**", 50),
];

const DEVELOPMENT: &[Row] = &[
    (Level::Write, "**/*", 0),
    (Level::None, "**/.env*", 100),
    (Level::None, "**/secrets/**", 100),
    (Level::None, "**/*.key", 100),
    (Level::None, "**/*.pem", 100),
];

const FULL_ACCESS: &[Row] = &[(Level::Write, "**/*", 0)];

const BUILT_IN: [(&str, &[Row]); 5] = [
    ("view-only", VIEW_ONLY),
    ("read-only", READ_ONLY),
    ("agent-safe", AGENT_SAFE),
    ("development", DEVELOPMENT),
    ("full-access", FULL_ACCESS),
];

/// The rules of a built-in preset, in order.
pub fn preset(name: &str) -> Option<Vec<Rule>> {
    let (name, rows) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(rows.iter().map(|row| to_rule(name, *row)).collect())
}

/// The names of the built-in presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// The rules of a built-in preset with more behind them; see [`PresetRegistry::extend`].
pub fn extend_preset(
    base: &str,
    additions: Vec<Rule>,
    overrides: Vec<Rule>,
) -> Result<Vec<Rule>, PresetError> {
    PresetRegistry::new().extend(base, additions, overrides)
}

/// The built-in presets and those that were registered on top.
#[derive(Clone, Debug)]
pub struct PresetRegistry {
    presets: Vec<(String, Vec<Rule>)>,
}

impl PresetRegistry {
    /// The built-in presets.
    pub fn new() -> Self {
        let built_in = |name: &str| Some((name.to_owned(), preset(name)?));
        PresetRegistry { presets: preset_names().filter_map(built_in).collect() }
    }

    pub fn get(&self, name: &str) -> Option<&[Rule]> {
        let (_, rules) = self.presets.iter().find(|(known, _)| known == name)?;
        Some(rules)
    }

    /// Every name, built-in ones first, then in order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.presets.iter().map(|(name, _)| name.as_str())
    }

    /// Adds a preset. An existing name is refused, so that nobody can change what `agent-safe`
    /// means, and so are rules that do not compile. Each rule's source becomes the preset.
    pub fn register(&mut self, name: &str, mut rules: Vec<Rule>) -> Result<(), PresetError> {
        let name = name.to_owned();
        if self.get(&name).is_some() {
            return Err(PresetError::Exists { name });
        }
        for rule in &mut rules {
            rule.source = RuleSource::Preset(name.clone());
        }
        if let Err(source) = Policy::compile(rules.clone()) {
            return Err(PresetError::Rules { name, source });
        }
        self.presets.push((name, rules));
        Ok(())
    }

    /// The rules of `base`, then `additions` as they are, then `overrides`: one whose priority is
    /// not above every rule of the base gets a priority that is.
    pub fn extend(
        &self,
        base: &str,
        additions: Vec<Rule>,
        overrides: Vec<Rule>,
    ) -> Result<Vec<Rule>, PresetError> {
        let name = base.to_owned();
        let Some(base) = self.get(base) else {
            return Err(PresetError::Unknown { name });
        };
        let top = base.iter().map(|rule| rule.priority).max();
        let mut rules = [base, &additions].concat();
        for rule in overrides {
            rules
                .push(lift(rule, top).ok_or_else(|| PresetError::Priority { name: name.clone() })?);
        }
        Ok(rules)
    }
}

impl Default for PresetRegistry {
    fn default() -> Self {
        PresetRegistry::new()
    }
}

/// Puts a rule above `top`; `None` if there is no room above it.
fn lift(rule: Rule, top: Option<i32>) -> Option<Rule> {
    match top {
        Some(top) if rule.priority <= top => Some(rule.at(top.checked_add(OVERRIDE_STEP)?)),
        _ => Some(rule),
    }
}

fn to_rule(preset: &str, (level, pattern, priority): Row) -> Rule {
    Rule {
        source: RuleSource::Preset(preset.to_owned()),
        ..Rule::glob(level, pattern).at(priority)
    }
}
