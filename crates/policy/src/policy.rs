//! Rules that were compiled, and what they say about a path.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use crate::error::{CompileError, PatternError};
use crate::glob::{Glob, Specificity};
use crate::level::Level;
use crate::matcher::{Matcher, NO_RULE, Rank};
use crate::path::WorkspacePath;
use crate::rule::{PatternType, Rule};
use crate::subtree::RuleAutomaton;

/// All patterns of a policy together, in [`Glob::weight`]. Beyond this, memory and the time to
/// compile would be the caller's problem instead of an error.
const MAX_WEIGHT: usize = 1 << 18;

/// A compiled set of rules. Immutable; share it behind an `Arc`.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    /// The rules in order of strength, strongest first.
    ranked: Vec<Ranked>,
    matcher: Matcher,
    root: Verdict,
    /// Built when a subtree is first asked about; many policies never are.
    automata: OnceLock<Vec<Option<RuleAutomaton>>>,
}

#[derive(Debug)]
pub(crate) struct Ranked {
    pub(crate) index: u32,
    pub(crate) level: Level,
    pub(crate) regex: String,
}

/// What the policy says about one path. Cheap to keep next to the path: the verdict on an entry of
/// a directory follows from the directory's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub level: Level,
    /// The rule that decided, as an index into [`Policy::rules`]. For a path hidden by an ancestor
    /// it is the `none` rule that won there. `None` where no rule has a say.
    pub rule: Option<u32>,
    /// The strongest `none` rule that won at this path or above, or `NO_RULE`.
    hide: Rank,
    /// Tells verdicts of different policies apart.
    stamp: u64,
}

impl Policy {
    /// Compiles all rules or none: a malformed deny rule must not fail open.
    pub fn compile(rules: Vec<Rule>) -> Result<Policy, CompileError> {
        let globs = parse_all(&rules)?;
        let ranked = rank(&rules, &globs);
        let regexes: Vec<&str> = ranked.iter().map(|rule| rule.regex.as_str()).collect();
        let matcher =
            Matcher::build(&regexes).map_err(|reason| CompileError::Matcher { reason })?;
        let root = root_verdict(matcher.strongest(b""), &ranked, stamp(&rules));
        Ok(Policy { rules, ranked, matcher, root, automata: OnceLock::new() })
    }

    /// The rules in the order they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The level of `path`, hidden ancestors included.
    pub fn level(&self, path: &WorkspacePath) -> Level {
        self.verdict(path).level
    }

    /// The verdict on the workspace root, which is always visible and never hides what is below it.
    pub fn root_verdict(&self) -> Verdict {
        self.root
    }

    /// The verdict on `path`, given the one on its parent. Equal to [`verdict`](Self::verdict), but
    /// it decides once and not for each component.
    pub fn child_verdict(&self, parent: &Verdict, path: &WorkspacePath) -> Verdict {
        // The root has no parent, and a verdict of another policy says nothing here.
        if path.is_root() || parent.stamp != self.root.stamp {
            return self.verdict(path);
        }
        self.below(parent, self.matcher.strongest(path.below_root()))
    }

    /// The verdict on `path` from scratch.
    pub fn verdict(&self, path: &WorkspacePath) -> Verdict {
        let mut verdict = self.root;
        self.matcher.strongest_along(path.below_root(), |own| verdict = self.below(&verdict, own));
        verdict
    }

    /// The heart of the matter. The stronger of `own`, the strongest rule that matches the path
    /// itself, and the `none` rules that won above it decides. Winning with `none`, a rule also
    /// hides what is below.
    fn below(&self, parent: &Verdict, own: Rank) -> Verdict {
        let decider = own.min(parent.hide);
        // Where no rule matches, the decider is what hid the parent, and that goes on.
        let hides = self.level_of(own) == Level::None;
        Verdict {
            level: self.level_of(decider),
            rule: self.index_of(decider),
            hide: if hides { decider } else { parent.hide },
            stamp: parent.stamp,
        }
    }

    pub(crate) fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// The rules in order of strength, strongest first.
    pub(crate) fn ranked(&self) -> &[Ranked] {
        &self.ranked
    }

    /// One automaton per rule in order of strength; `None` where it would be too large.
    pub(crate) fn automata(&self) -> &[Option<RuleAutomaton>] {
        self.automata.get_or_init(|| {
            self.ranked.iter().map(|rule| RuleAutomaton::build(&rule.regex)).collect()
        })
    }

    /// No rule matches: `none`.
    fn level_of(&self, rank: Rank) -> Level {
        self.ranked.get(rank as usize).map_or(Level::None, |rule| rule.level)
    }

    pub(crate) fn index_of(&self, rank: Rank) -> Option<u32> {
        self.ranked.get(rank as usize).map(|rule| rule.index)
    }
}

impl Verdict {
    /// The strongest `none` rule that won at this path or above, or `NO_RULE`.
    pub(crate) fn hide(&self) -> Rank {
        self.hide
    }
}

fn parse_all(rules: &[Rule]) -> Result<Vec<Glob>, CompileError> {
    let mut weight = 0;
    let mut globs = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let glob = Glob::parse(rule).map_err(|error| refused(index, rule, error))?;
        weight += glob.weight();
        if weight > MAX_WEIGHT {
            return Err(CompileError::TooLarge { index, pattern: rule.pattern.clone() });
        }
        globs.push(glob);
    }
    Ok(globs)
}

fn refused(index: usize, rule: &Rule, error: PatternError) -> CompileError {
    CompileError::Pattern {
        index,
        pattern: rule.pattern.clone(),
        column: error.column,
        reason: error.reason,
    }
}

/// The order among rules: priority, then type, then specificity, then position. Greater is
/// stronger, and no two rules are equal.
fn strength(index: usize, rule: &Rule, glob: &Glob) -> (i32, PatternType, Specificity, usize) {
    (rule.priority, rule.pattern_type, glob.specificity(), index)
}

fn rank(rules: &[Rule], globs: &[Glob]) -> Vec<Ranked> {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(strength(*index, &rules[*index], &globs[*index])));
    let ranked = |index: usize| Ranked {
        index: index as u32,
        level: rules[index].level,
        regex: globs[index].to_regex(),
    };
    order.into_iter().map(ranked).collect()
}

fn root_verdict(own: Rank, ranked: &[Ranked], stamp: u64) -> Verdict {
    let visible = ranked.get(own as usize).filter(|rule| rule.level > Level::None);
    Verdict {
        level: visible.map_or(Level::View, |rule| rule.level),
        rule: visible.map(|rule| rule.index),
        hide: NO_RULE,
        stamp,
    }
}

fn stamp(rules: &[Rule]) -> u64 {
    let mut hasher = DefaultHasher::new();
    rules.hash(&mut hasher);
    hasher.finish()
}
