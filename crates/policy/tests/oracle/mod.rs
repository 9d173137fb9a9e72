//! The policy a second time, written from the specification alone: no automaton, no index, nothing
//! shared with the crate but its types. Slow on purpose, and read by more than one test program.

#![allow(dead_code)]

pub(crate) mod fuzz;
mod pattern;

use ringfence_policy::{Level, Rule, WorkspacePath};

pub(crate) use pattern::matches;

/// The level of a path and the index of the rule that decided.
pub(crate) fn decide(rules: &[Rule], path: &WorkspacePath) -> (Level, Option<u32>) {
    if path.is_root() {
        let (level, rule) = own(rules, path);
        return match level {
            Level::None => (Level::View, None),
            visible => (visible, rule),
        };
    }
    let (level, winner) = own(rules, path);
    let hiding = ancestors(path)
        .into_iter()
        .filter_map(|ancestor| match own(rules, &ancestor) {
            (Level::None, Some(rule)) => Some(rule),
            _ => None,
        })
        .max_by_key(|rule| strength(rules, *rule));
    match (hiding, winner) {
        (Some(hiding), Some(winner)) if strength(rules, winner) > strength(rules, hiding) => {
            (level, Some(winner))
        }
        (Some(hiding), _) => (Level::None, Some(hiding)),
        (None, winner) => (level, winner),
    }
}

/// The strict ancestors below the root.
fn ancestors(path: &WorkspacePath) -> Vec<WorkspacePath> {
    std::iter::successors(path.parent(), |above| above.parent())
        .filter(|above| !above.is_root())
        .collect()
}

/// What the rules that match the path itself say.
fn own(rules: &[Rule], path: &WorkspacePath) -> (Level, Option<u32>) {
    (0..rules.len() as u32)
        .filter(|rule| matches(&rules[*rule as usize], path))
        .max_by_key(|rule| strength(rules, *rule))
        .map_or((Level::None, None), |rule| (rules[rule as usize].level, Some(rule)))
}

fn strength(rules: &[Rule], index: u32) -> (i32, u8, bool, usize, u32) {
    let rule = &rules[index as usize];
    let kind = match rule.pattern_type.as_str() {
        "file" => 3,
        "directory" => 2,
        _ => 1,
    };
    let (exact, literal) = pattern::specificity(rule);
    (rule.priority, kind, exact, literal, index)
}
