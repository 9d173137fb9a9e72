//! The body of the fuzz target, also run by `cargo test` over pseudo-random input.

use ringfence_policy::{Bounds, Level, PatternType, Policy, Rule, WorkspacePath};

use super::decide;

/// Longer input is compiled but not compared: the oracle takes time in proportion to the product of
/// pattern and path.
const COMPARED_BYTES: usize = 600;

/// Reads bytes as lines: all but the last are rules (one byte for level, type and priority, then
/// the pattern), the last is a path. Whatever they say, nothing may panic, and rules that compile
/// must decide as the oracle does.
pub(crate) fn check(data: &[u8]) {
    let mut lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let path = lines.pop().unwrap_or_default();
    let rules: Vec<Rule> = lines.into_iter().filter_map(to_rule).collect();
    let (Ok(policy), Ok(path)) = (Policy::compile(rules), WorkspacePath::parse(path)) else {
        return;
    };
    if data.len() <= COMPARED_BYTES {
        check_path(&policy, &path);
    }
}

/// Everything the crate says about a path must agree with the oracle and with itself.
pub(crate) fn check_path(policy: &Policy, path: &WorkspacePath) {
    let expected = decide(policy.rules(), path);
    let verdict = policy.verdict(path);
    assert_eq!((verdict.level, verdict.rule), expected, "{path}");
    assert_eq!(policy.level(path), expected.0, "{path}");
    let explanation = policy.explain(path);
    assert_eq!(explanation.level, expected.0, "{path}");
    assert_eq!(explanation.winner.map(|winner| winner.index), expected.1, "{path}");
    let mut below = path.clone();
    while let Some(above) = below.parent() {
        let parent = policy.verdict(&above);
        assert_eq!(policy.child_verdict(&parent, &below), policy.verdict(&below), "{below}");
        assert_within(policy.subtree(&above), verdict.level, &above, path);
        below = above;
    }
}

fn assert_within(bounds: Bounds, level: Level, above: &WorkspacePath, path: &WorkspacePath) {
    let within = bounds.min <= level && level <= bounds.max;
    assert!(within, "{path} is {level}, but below {above} all is within {bounds:?}");
}

fn to_rule(line: &[u8]) -> Option<Rule> {
    let (kind, pattern) = line.split_first()?;
    let pattern_type = match kind >> 2 & 7 {
        0 => PatternType::File,
        1 => PatternType::Directory,
        _ => PatternType::Glob,
    };
    let rule = Rule::glob(Level::ALL[usize::from(kind & 3)], String::from_utf8_lossy(pattern));
    Some(rule.of_type(pattern_type).at(i32::from(kind >> 6)))
}
