//! Rules that do not do what their author thinks. Only what is certain is reported.

use std::fmt;

use crate::error::PatternError;
use crate::glob::Glob;
use crate::path::WorkspacePath;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::shadow::{covers, winners};
use crate::subtree::Reach;

/// A finding. Rules are named by their index in the list that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lint {
    /// The pattern is malformed; the policy would be refused.
    Malformed { rule: usize, error: PatternError },
    /// Without effect, because `of` says the same and is stronger.
    Duplicate { rule: usize, of: usize },
    /// Never wins: `by` is stronger and matches every path this one matches. `by` is `None` where
    /// it takes several stronger rules together.
    Shadowed { rule: usize, by: Option<usize> },
    /// Matches the workspace root and nothing else. `/**` was probably meant.
    OnlyRoot { rule: usize },
    /// Matches none of the paths there are.
    MatchesNothing { rule: usize },
    /// Matches some of the paths there are, but never decides.
    NeverDecides { rule: usize },
}

impl Lint {
    /// The rule the finding is about.
    pub fn rule(&self) -> usize {
        match self {
            Lint::Malformed { rule, .. }
            | Lint::Duplicate { rule, .. }
            | Lint::Shadowed { rule, .. }
            | Lint::OnlyRoot { rule }
            | Lint::MatchesNothing { rule }
            | Lint::NeverDecides { rule } => *rule,
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: ", self.rule())?;
        match self {
            Lint::Malformed { error, .. } => write!(f, "{error}"),
            Lint::Duplicate { of, .. } => write!(f, "no effect, rule {of} repeats it"),
            Lint::Shadowed { by: Some(by), .. } => {
                write!(f, "never wins, rule {by} is stronger and matches all it matches")
            }
            Lint::Shadowed { by: None, .. } => {
                f.write_str("never wins, stronger rules together match all it matches")
            }
            Lint::OnlyRoot { .. } => f.write_str("matches only the workspace root"),
            Lint::MatchesNothing { .. } => f.write_str("matches nothing here"),
            Lint::NeverDecides { .. } => f.write_str("matches, but never decides anything here"),
        }
    }
}

/// Checks rules by themselves: what is found holds for every tree of files.
pub fn lint(rules: &[Rule]) -> Vec<Lint> {
    let (sound, mut lints) = split_malformed(rules);
    let chosen = sound.iter().map(|index| rules[*index].clone()).collect();
    // Rules that are too large together cannot be compiled, so there is nothing to be certain of.
    if let Ok(policy) = Policy::compile(chosen) {
        lints.extend(lint_policy(&policy).into_iter().map(|lint| lint.renumber(&sound)));
    }
    lints.sort_by_key(Lint::rule);
    lints
}

/// Checks rules against the paths that exist. Directories above a path need not be listed.
pub fn lint_against<'a>(
    policy: &Policy,
    paths: impl Iterator<Item = &'a WorkspacePath>,
) -> Vec<Lint> {
    let mut uses = vec![Use::Nothing; policy.rules().len()];
    for path in paths {
        record_uses(policy, path, &mut uses);
    }
    let finding = |(rule, used): (usize, &Use)| match used {
        Use::Nothing => Some(Lint::MatchesNothing { rule }),
        Use::Matches => Some(Lint::NeverDecides { rule }),
        Use::Decides => None,
    };
    uses.iter().enumerate().filter_map(finding).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Nothing,
    Matches,
    Decides,
}

/// What the rules do for a path and for the directories above it.
fn record_uses(policy: &Policy, path: &WorkspacePath, uses: &mut [Use]) {
    let mut above = Some(path.clone());
    while let Some(path) = above.filter(|path| !path.is_root()) {
        let matching = policy.matcher().all(path.below_root());
        for index in matching.into_iter().filter_map(|rank| policy.index_of(rank)) {
            uses[index as usize] = uses[index as usize].max(Use::Matches);
        }
        if let Some(index) = policy.verdict(&path).rule {
            uses[index as usize] = Use::Decides;
        }
        above = path.parent();
    }
}

fn split_malformed(rules: &[Rule]) -> (Vec<usize>, Vec<Lint>) {
    let mut sound = Vec::new();
    let mut lints = Vec::new();
    for (rule, written) in rules.iter().enumerate() {
        match Glob::parse(written) {
            Ok(_) => sound.push(rule),
            Err(error) => lints.push(Lint::Malformed { rule, error }),
        }
    }
    (sound, lints)
}

fn lint_policy(policy: &Policy) -> Vec<Lint> {
    let winners = winners(policy);
    let loses = |rank: &usize| winners.as_ref().is_none_or(|wins| !wins[*rank]);
    (0..policy.ranked().len())
        .filter(loses)
        .filter_map(|rank| lint_loser(policy, rank, winners.is_some()))
        .collect()
}

/// `certain` means that the rule is known never to win, and only the reason is looked for.
fn lint_loser(policy: &Policy, rank: usize, certain: bool) -> Option<Lint> {
    let index = |rank: usize| policy.ranked()[rank].index as usize;
    let rule = index(rank);
    let automata = policy.automata();
    if automata[rank].as_ref().is_some_and(|automaton| automaton.reach(b"") == Reach::None) {
        return Some(Lint::OnlyRoot { rule });
    }
    let written = |rank: usize| &policy.rules()[index(rank)];
    let mut stronger = (0..rank).rev();
    if let Some(twin) = stronger.clone().find(|other| says_the_same(written(rank), written(*other)))
    {
        let of = index(twin);
        return Some(Lint::Duplicate { rule, of });
    }
    let by = stronger.find(|other| covers(&automata[*other], &automata[rank])).map(index);
    (by.is_some() || certain).then_some(Lint::Shadowed { rule, by })
}

/// The spelling and the source of a rule do not change what it says.
fn says_the_same(left: &Rule, right: &Rule) -> bool {
    let rest = |rule: &Rule| (rule.pattern_type, rule.level, rule.priority);
    rest(left) == rest(right) && Glob::parse(left) == Glob::parse(right)
}

impl Lint {
    /// Translates indices into a shorter list back to the list it was taken from.
    fn renumber(self, original: &[usize]) -> Lint {
        match self {
            Lint::Duplicate { rule, of } => {
                Lint::Duplicate { rule: original[rule], of: original[of] }
            }
            Lint::Shadowed { rule, by } => {
                Lint::Shadowed { rule: original[rule], by: by.map(|by| original[by]) }
            }
            Lint::OnlyRoot { rule } => Lint::OnlyRoot { rule: original[rule] },
            other => other,
        }
    }
}
