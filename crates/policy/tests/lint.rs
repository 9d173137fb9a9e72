//! The linter reports what is certain, and nothing else.

mod oracle;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use ringfence_policy::{
    Level, Lint, PatternFault, PatternType, Policy, Rule, WorkspacePath, lint, lint_against,
    preset, preset_names,
};

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse_cli(text).expect("well formed")).collect()
}

fn paths(texts: &[&str]) -> Vec<WorkspacePath> {
    texts.iter().map(|text| WorkspacePath::parse(text).expect("well formed")).collect()
}

#[test]
fn presets_have_nothing_to_complain_about() {
    for name in preset_names() {
        assert_eq!(lint(&preset(name).expect("built in")), [], "{name}");
    }
}

#[test]
fn a_rule_behind_a_stronger_one_for_the_same_paths_is_shadowed() {
    let found = lint(&rules(&["read:/secrets/a", "none:/secrets/**@100", "read:**/*.md"]));
    assert_eq!(found, [Lint::Shadowed { rule: 0, by: Some(1) }]);
    assert_eq!(
        found[0].to_string(),
        "rule 0: never wins, rule 1 is stronger and matches all it matches"
    );
}

#[test]
fn an_exception_that_outranks_is_not_shadowed() {
    assert_eq!(lint(&rules(&["read:/secrets/a", "none:/secrets/**"])), []);
}

#[test]
fn several_rules_can_shadow_together() {
    let found = lint(&rules(&["read:/a/**", "write:/a@1", "view:/a/*/**@2"]));
    assert_eq!(found, [Lint::Shadowed { rule: 0, by: None }]);
}

#[test]
fn a_repeated_rule_is_a_duplicate_however_it_is_spelt() {
    let found = lint(&rules(&["read:/a//b/", "write:/c", "read:a/./b"]));
    assert_eq!(found, [Lint::Duplicate { rule: 0, of: 2 }]);
}

#[test]
fn the_same_pattern_with_another_level_is_shadowed() {
    let found = lint(&rules(&["view:**/*", "read:**/*"]));
    assert_eq!(found, [Lint::Shadowed { rule: 0, by: Some(1) }]);
}

#[test]
fn a_rule_for_the_root_alone_is_reported() {
    let root = Rule::glob(Level::Read, "/");
    let found = lint(&[root.clone(), root.of_type(PatternType::File)]);
    assert_eq!(found, [Lint::OnlyRoot { rule: 0 }, Lint::OnlyRoot { rule: 1 }]);
}

#[test]
fn malformed_rules_are_reported_and_the_others_still_checked() {
    let mut all = rules(&["view:**/*", "read:**/*"]);
    all.insert(1, Rule::glob(Level::None, "**/[ab"));
    let found = lint(&all);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], Lint::Shadowed { rule: 0, by: Some(2) });
    let Lint::Malformed { rule: 1, error } = &found[1] else {
        panic!("not about the malformed rule: {}", found[1]);
    };
    assert_eq!((error.column, error.reason), (4, PatternFault::UnclosedClass));
}

#[test]
fn rules_that_multiply_are_still_checked_one_by_one() {
    let mut all: Vec<Rule> =
        (0..40).map(|number| Rule::glob(Level::None, format!("**/*word{number}x*"))).collect();
    all.push(Rule::glob(Level::Read, "**/aword7xb"));
    all.push(Rule::glob(Level::Read, "**/*aword7xb*").at(-1));
    assert_eq!(lint(&all), [Lint::Shadowed { rule: 41, by: Some(7) }]);
}

#[test]
fn rules_are_checked_against_the_paths_there_are() {
    let policy = Policy::compile(rules(&[
        "read:**/*",
        "none:**/.env*@100",
        "read:/.env.d/x",
        "write:/output/**",
        "view:/src",
        "read:/src/a.c@-1",
    ]))
    .expect("well formed");
    let tree = paths(&["/.env.d/x", "/src/a.c", "/src/b.c"]);
    let expected = [
        Lint::NeverDecides { rule: 2 },
        Lint::MatchesNothing { rule: 3 },
        Lint::NeverDecides { rule: 5 },
    ];
    assert_eq!(lint_against(&policy, tree.iter()), expected);
}

#[test]
fn a_tree_without_files_uses_no_rule() {
    let policy = Policy::compile(rules(&["read:**"])).expect("well formed");
    let root = [WorkspacePath::root()];
    assert_eq!(lint_against(&policy, root.iter()), [Lint::MatchesNothing { rule: 0 }]);
}

const PATTERNS: &[&str] = &[
    "**", "**/*", "*", "/a", "/a/*", "/a/**", "/*/b", "/a/b", "**/b", "**/b/**", "a*", "{a,b}/*",
    "[ab]", "?", "a?", "/a/{b,c}", "/*/*", "/*/*/**", "/",
];

fn rule() -> impl Strategy<Value = Rule> {
    (select(PATTERNS), select(Level::ALL.to_vec()), -1..2)
        .prop_map(|(pattern, level, priority)| Rule::glob(level, pattern).at(priority))
}

fn path() -> impl Strategy<Value = WorkspacePath> {
    vec(select(vec!["a", "b", "c", "ab"]), 1..4)
        .prop_map(|names| WorkspacePath::parse(names.join("/")).expect("well formed"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_that_are_reported_can_be_removed(rules in vec(rule(), 1..10), paths in vec(path(), 20)) {
        let reported: Vec<usize> = lint(&rules).iter().map(Lint::rule).collect();
        let mut index = 0..;
        let mut kept = rules.clone();
        kept.retain(|_| !reported.contains(&index.next().expect("endless")));
        for path in &paths {
            prop_assert_eq!(oracle::decide(&rules, path).0, oracle::decide(&kept, path).0, "{}", path);
        }
    }
}
