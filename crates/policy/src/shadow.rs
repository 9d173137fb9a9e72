//! Which rules can win at all, and which rule stands in another's way: questions about every
//! possible path, answered by walking automata instead of paths.

use std::collections::HashSet;

use crate::matcher::NO_RULE;
use crate::policy::Policy;
use crate::subtree::RuleAutomaton;
use crate::table::{START, Table};

/// Memory for the automaton of all rules together.
const TABLE_BYTES: usize = 1 << 19;

/// Pairs of states looked at before giving up on a comparison.
const MAX_PAIRS: usize = 1 << 16;

/// For each rule in order of strength, whether there is a path that it wins. `None` where the
/// automaton of all rules together is too large to look through.
pub(crate) fn winners(policy: &Policy) -> Option<Vec<bool>> {
    let regexes: Vec<&str> = policy.ranked().iter().map(|rule| rule.regex.as_str()).collect();
    let table = Table::build(&regexes, TABLE_BYTES)?;
    let mut wins = vec![false; policy.ranked().len()];
    for state in path_ends(&table)? {
        let strongest = table.strongest(state);
        if strongest != NO_RULE {
            wins[strongest as usize] = true;
        }
    }
    Some(wins)
}

/// Whether `stronger` matches every path below the root that `weaker` matches. `false` where that
/// is not certain.
pub(crate) fn covers(stronger: &Option<RuleAutomaton>, weaker: &Option<RuleAutomaton>) -> bool {
    let (Some(stronger), Some(weaker)) = (stronger, weaker) else {
        return false;
    };
    let (stronger, weaker) = (&stronger.table, &weaker.table);
    let bytes = distinct_bytes(stronger, weaker);
    let escapes = |(left, right): (usize, usize)| weaker.accepts(right) && !stronger.accepts(left);
    let step = |(left, right), byte| (stronger.step(left, byte), weaker.step(right, byte));
    match explore((START, START), &bytes, step) {
        Some(ends) => !ends.into_iter().any(escapes),
        None => false,
    }
}

/// The states in which a path other than the root can end.
fn path_ends(table: &Table) -> Option<HashSet<usize>> {
    let bytes = distinct_bytes(table, table);
    explore(START, &bytes, |state, byte| table.step(state, byte))
}

/// Everything reached at the end of one or more `/name`; `None` if that is too much.
fn explore<S: Copy + Eq + std::hash::Hash>(
    start: S,
    bytes: &[u8],
    step: impl Fn(S, u8) -> S,
) -> Option<HashSet<S>> {
    let mut ends = HashSet::new();
    let mut after_slash = HashSet::from([step(start, b'/')]);
    let mut open: Vec<S> = after_slash.iter().copied().collect();
    while let Some(state) = open.pop() {
        for end in bytes.iter().map(|byte| step(state, *byte)) {
            if ends.insert(end) {
                open.push(end);
                let slash = step(end, b'/');
                if after_slash.insert(slash) {
                    open.push(slash);
                }
            }
        }
        if ends.len() > MAX_PAIRS {
            return None;
        }
    }
    Some(ends)
}

/// One byte of each kind that either table tells apart, without `/`.
fn distinct_bytes(left: &Table, right: &Table) -> Vec<u8> {
    let mut kinds = HashSet::new();
    let kind = |byte| (left.column(byte), right.column(byte));
    (0..=255).filter(|byte| *byte != b'/' && kinds.insert(kind(*byte))).collect()
}
