//! Why a path has the level it has, for people.

use std::fmt;

use crate::level::Level;
use crate::matcher::{NO_RULE, Rank};
use crate::path::WorkspacePath;
use crate::policy::Policy;
use crate::rule::Rule;

/// The answer to "why". Agrees with [`Policy::verdict`] for every path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub path: WorkspacePath,
    pub level: Level,
    /// The rule that decided. `None` where no rule has a say (then the level is `none`, or `view`
    /// for the root).
    pub winner: Option<RuleRef>,
    /// The next in strength, among the rules that match the path and the `none` rule that hides it
    /// or would hide it from above.
    pub runner_up: Option<RuleRef>,
    /// The directory whose `none` hides this path, if that is why. The winner is its rule.
    pub hidden_by: Option<WorkspacePath>,
}

/// A rule and its place in [`Policy::rules`]. `rule.source` says where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRef {
    pub index: u32,
    pub rule: Rule,
}

impl Policy {
    /// Explains the level of `path`.
    pub fn explain(&self, path: &WorkspacePath) -> Explanation {
        let verdict = self.verdict(path);
        let own = self.matcher().all(path.below_root());
        let above = path.parent().map_or(NO_RULE, |parent| self.verdict(&parent).hide());
        let hidden = above < own.first().copied().unwrap_or(NO_RULE);
        let runner_up = self.claims(own, above).find(|index| Some(*index) != verdict.rule);
        Explanation {
            path: path.clone(),
            level: verdict.level,
            winner: verdict.rule.map(|index| self.rule_ref(index)),
            runner_up: runner_up.map(|index| self.rule_ref(index)),
            hidden_by: if hidden { self.first_hidden_by(above, path) } else { None },
        }
    }

    /// Every rule with a say about a path, strongest first: those that match it, and the `none`
    /// that hides what is below some directory above it.
    fn claims(&self, mut own: Vec<Rank>, above: Rank) -> impl Iterator<Item = u32> {
        own.push(above);
        own.sort_unstable();
        own.into_iter().filter_map(|rank| self.index_of(rank))
    }

    /// The topmost directory above `path` that the rule `hide` hides.
    fn first_hidden_by(&self, hide: Rank, path: &WorkspacePath) -> Option<WorkspacePath> {
        let above = std::iter::successors(path.parent(), WorkspacePath::parent);
        above.take_while(|ancestor| self.verdict(ancestor).hide() == hide).last()
    }

    fn rule_ref(&self, index: u32) -> RuleRef {
        RuleRef { index, rule: self.rules()[index as usize].clone() }
    }
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} `{}` ({})", self.index, self.rule, self.rule.source)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.level)?;
        match &self.winner {
            Some(winner) => write!(f, ", by {winner}")?,
            None if self.path.is_root() => write!(f, ", the root is always visible")?,
            None => write!(f, ", no rule matches")?,
        }
        if let Some(ancestor) = &self.hidden_by {
            write!(f, ", which hides {ancestor}")?;
        }
        match &self.runner_up {
            Some(runner_up) => write!(f, "; next {runner_up}"),
            None => Ok(()),
        }
    }
}
