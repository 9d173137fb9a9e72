//! What the policy says about everything that could ever be below a directory.
//!
//! The filesystem asks this so that it scans a directory only when it must: a hidden directory below
//! which nothing can be visible does not exist, and one in which everything is writable can be
//! moved without looking inside.

use crate::level::Level;
use crate::path::WorkspacePath;
use crate::policy::Policy;
use crate::table::Table;

/// Memory for one rule's automaton. A rule that needs more is treated as "may match anything".
const AUTOMATON_BYTES: usize = 1 << 18;

/// The lowest and highest level any possible strict descendant can have. Sound, not always tight:
/// a descendant is never outside, but the ends need not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min: Level,
    pub max: Level,
}

/// [`Bounds`] as the filesystem's three cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtree {
    /// Every possible descendant has this level, which is not `none`.
    All(Level),
    /// No descendant can be visible.
    Nothing,
    /// It depends on what is there.
    Mixed,
}

impl Bounds {
    pub fn kind(&self) -> Subtree {
        match (self.min, self.max) {
            (_, Level::None) => Subtree::Nothing,
            (min, max) if min == max => Subtree::All(max),
            _ => Subtree::Mixed,
        }
    }
}

impl Policy {
    /// Bounds over all possible strict descendants of `path`, whether they exist or not.
    ///
    /// Going down from the strongest rule, each one that can match some descendant adds its level,
    /// until one matches every descendant, or a `none` that already hides the directory is
    /// stronger than all that are left. What hides a descendant is a `none` rule that can match
    /// some descendant too, so hiding inside the subtree is accounted for.
    pub fn subtree(&self, path: &WorkspacePath) -> Bounds {
        let levels = self.possible_below(path);
        Bounds {
            min: levels.iter().copied().min().unwrap_or_default(),
            max: levels.iter().copied().max().unwrap_or_default(),
        }
    }

    fn possible_below(&self, path: &WorkspacePath) -> Vec<Level> {
        let hide = self.verdict(path).hide();
        let mut levels = Vec::new();
        for (rank, rule) in self.ranked().iter().enumerate().take(hide as usize) {
            match self.reach(rank, path) {
                Reach::None => continue,
                Reach::Some => levels.push(rule.level),
                Reach::All => {
                    levels.push(rule.level);
                    return levels;
                }
            }
        }
        levels.push(Level::None);
        levels
    }

    fn reach(&self, rank: usize, path: &WorkspacePath) -> Reach {
        match &self.automata()[rank] {
            Some(automaton) => automaton.reach(path.below_root()),
            None => Reach::Some,
        }
    }
}

/// How much of the strict descendants of a path a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    None,
    Some,
    All,
}

/// One rule, with the answer for every state its automaton can be in.
#[derive(Debug)]
pub(crate) struct RuleAutomaton {
    pub(crate) table: Table,
    reach: Vec<Reach>,
}

impl RuleAutomaton {
    /// `None` if it would be too large.
    pub(crate) fn build(regex: &str) -> Option<Self> {
        let table = Table::build(&[regex], AUTOMATON_BYTES)?;
        let hits = table.can_reach_below(|state| table.accepts(state));
        let misses = table.can_reach_below(|state| !table.accepts(state));
        let reach = hits.into_iter().zip(misses).map(Reach::from_possible).collect();
        Some(RuleAutomaton { table, reach })
    }

    /// How much below `path` the rule matches.
    pub(crate) fn reach(&self, path: &[u8]) -> Reach {
        self.reach[self.table.walk(path)]
    }
}

impl Reach {
    fn from_possible((hit, miss): (bool, bool)) -> Self {
        match (hit, miss) {
            (false, _) => Reach::None,
            (true, true) => Reach::Some,
            (true, false) => Reach::All,
        }
    }
}
