//! What the crate's types promise beyond the shared vectors.

use ringfence_policy::{
    Bounds, CompileError, Level, PatternType, Policy, PresetError, PresetRegistry, Rule, RuleError,
    RuleSource, Subtree, WorkspacePath, preset,
};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("well formed")
}

fn policy(texts: &[&str]) -> Policy {
    let rules = texts.iter().map(|text| Rule::parse_cli(text).expect("well formed"));
    Policy::compile(rules.collect()).expect("well formed")
}

#[test]
fn a_path_knows_its_place() {
    let deep = path("/a/b");
    assert_eq!(WorkspacePath::root().join(b"a").join(b"b"), deep);
    assert_eq!(deep.parent(), Some(path("/a")));
    assert_eq!(path("/a").parent(), Some(WorkspacePath::root()));
    assert_eq!(WorkspacePath::root().parent(), None);
    assert_eq!(deep.file_name(), Some(&b"b"[..]));
    assert_eq!(WorkspacePath::root().file_name(), None);
    assert_eq!(deep.components().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(WorkspacePath::root().components().count(), 0);
    assert_eq!(WorkspacePath::root().as_bytes(), b"/");
}

#[test]
fn a_prefix_is_a_prefix_of_components() {
    assert!(path("/a/b").starts_with(&path("/a")));
    assert!(path("/a").starts_with(&path("/a")));
    assert!(path("/a").starts_with(&WorkspacePath::root()));
    assert!(!path("/ab").starts_with(&path("/a")));
    assert!(!WorkspacePath::root().starts_with(&path("/a")));
}

#[test]
fn a_path_is_shown_without_harm() {
    let shown = |bytes: &[u8]| WorkspacePath::parse(bytes).expect("well formed").to_string();
    assert_eq!(shown("/café's \"x\"".as_bytes()), "/café's \"x\"");
    assert_eq!(shown(b"/a\nb\x1b[2J"), "/a\\nb\\u{1b}[2J");
    assert_eq!(shown(b"/caf\xe9\\x"), "/caf\\xe9\\\\x");
    assert_eq!(shown("/\u{202e}txt".as_bytes()), "/\\u{202e}txt");
}

#[test]
fn an_error_names_the_rule_the_place_and_the_reason() {
    let rules = vec![Rule::glob(Level::Read, "**"), Rule::glob(Level::None, "**/[ab")];
    let error = Policy::compile(rules).expect_err("the class is not closed");
    assert_eq!(error.index(), Some(1));
    assert_eq!(error.to_string(), "rule 1: pattern `**/[ab`: `[` has no closing `]` (column 4)");
}

#[test]
fn rules_that_are_too_large_together_are_refused() {
    let rules = vec![Rule::glob(Level::Read, "?".repeat(4096)); 5];
    let error = Policy::compile(rules).expect_err("too large");
    assert!(matches!(error, CompileError::TooLarge { index: 3, .. }), "{error}");
}

#[test]
fn an_error_shows_no_more_of_a_pattern_than_fits_a_line() {
    let error = Policy::compile(vec![Rule::glob(Level::None, "a\n".repeat(5000))]);
    let text = error.expect_err("too long").to_string();
    assert!(text.len() < 300 && !text.contains('\n'), "{text}");
    let text = Rule::parse_cli(&"x".repeat(5000)).expect_err("no level").to_string();
    assert!(text.len() < 300, "{text}");
}

#[test]
fn a_pattern_made_to_explode_is_still_decided() {
    let policy = policy(&["write:**", "none:**/*a????????????????????????????????"]);
    assert_eq!(policy.level(&path(&format!("/x/{}", "a".repeat(33)))), Level::None);
    assert_eq!(policy.level(&path(&format!("/x/{}", "a".repeat(32)))), Level::Write);
    let bounds = policy.subtree(&path("/x"));
    assert_eq!(bounds, Bounds { min: Level::None, max: Level::Write });
}

#[test]
fn a_verdict_of_another_policy_is_not_trusted() {
    let open = policy(&["write:**"]);
    let closed = policy(&["write:**", "none:/a@100"]);
    let (above, below) = (path("/a"), path("/a/b"));
    let foreign = open.verdict(&above);
    assert_eq!(closed.child_verdict(&foreign, &below), closed.verdict(&below));
    assert_eq!(closed.child_verdict(&foreign, &below).level, Level::None);
}

#[test]
fn a_policy_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Policy>();
}

#[test]
fn bounds_come_in_three_kinds() {
    let kind = |min, max| Bounds { min, max }.kind();
    assert_eq!(kind(Level::None, Level::None), Subtree::Nothing);
    assert_eq!(kind(Level::View, Level::View), Subtree::All(Level::View));
    assert_eq!(kind(Level::None, Level::View), Subtree::Mixed);
    assert_eq!(kind(Level::View, Level::Write), Subtree::Mixed);
}

#[test]
fn an_explanation_names_winner_source_and_runner_up() {
    let rules = preset("agent-safe").expect("built in");
    let policy = Policy::compile(rules).expect("well formed");
    let explanation = policy.explain(&path("/output/.env"));
    let winner = explanation.winner.expect("a rule decided");
    assert_eq!((explanation.level, winner.index), (Level::None, 3));
    assert_eq!(winner.rule.source, RuleSource::Preset("agent-safe".to_owned()));
    assert_eq!(explanation.runner_up.map(|rule| rule.index), Some(1));
    assert_eq!(explanation.hidden_by, None);
}

#[test]
fn an_explanation_names_the_directory_that_hides() {
    let policy = policy(&["read:**/*", "none:**/.env*@100", "write:/a/.env.d/x/ok@200"]);
    let hidden = policy.explain(&path("/a/.env.d/x/y"));
    assert_eq!(hidden.hidden_by, Some(path("/a/.env.d")));
    assert_eq!(hidden.winner.as_ref().map(|rule| rule.index), Some(1));
    assert_eq!(hidden.runner_up.as_ref().map(|rule| rule.index), Some(0));
    assert_eq!(
        hidden.to_string(),
        "/a/.env.d/x/y: none, by rule 1 `none:**/.env*@100` (user), which hides /a/.env.d; \
         next rule 0 `read:**/*@0` (user)"
    );
    let shown = policy.explain(&path("/a/.env.d/x/ok"));
    assert_eq!((shown.level, shown.hidden_by), (Level::Write, None));
    assert_eq!(shown.runner_up.map(|rule| rule.index), Some(1));
}

#[test]
fn an_explanation_says_when_no_rule_has_a_say() {
    let policy = policy(&["none:/a"]);
    assert_eq!(policy.explain(&path("/b")).to_string(), "/b: none, no rule matches");
    let root = policy.explain(&WorkspacePath::root());
    assert_eq!(root.to_string(), "/: view, the root is always visible");
}

#[test]
fn a_preset_name_cannot_be_taken_twice() {
    let mut presets = PresetRegistry::new();
    let rules = vec![Rule::glob(Level::Read, "/x")];
    let taken = presets.register("agent-safe", rules.clone());
    assert_eq!(taken, Err(PresetError::Exists { name: "agent-safe".to_owned() }));
    assert_eq!(presets.register("mine", rules.clone()), Ok(()));
    assert!(matches!(presets.register("mine", rules), Err(PresetError::Exists { .. })));
    assert_eq!(presets.names().last(), Some("mine"));
    assert_eq!(presets.get("mine").map(<[Rule]>::len), Some(1));
    let broken = presets.register("broken", vec![Rule::glob(Level::None, "[")]);
    assert!(matches!(broken, Err(PresetError::Rules { .. })));
    assert_eq!(presets.get("broken"), None);
}

#[test]
fn an_override_with_no_priority_left_is_refused() {
    let mut presets = PresetRegistry::new();
    let top = Rule::glob(Level::None, "/x").at(i32::MAX);
    presets.register("top", vec![top.clone()]).expect("the name is free");
    let extended = presets.extend("top", Vec::new(), vec![top]);
    assert_eq!(extended, Err(PresetError::Priority { name: "top".to_owned() }));
}

#[test]
fn a_rule_is_shown_as_it_is_written() {
    let rule = Rule::glob(Level::None, "**/*.key").at(100);
    assert_eq!(rule.to_string(), "none:**/*.key@100");
    assert_eq!(Rule::parse_cli(&rule.to_string()), Ok(rule.clone()));
    assert_eq!(rule.of_type(PatternType::File).to_string(), "none:**/*.key@100 (file)");
}

#[test]
fn names_of_levels_and_types_are_exact() {
    assert_eq!("write".parse(), Ok(Level::Write));
    assert_eq!("directory".parse(), Ok(PatternType::Directory));
    let unknown = RuleError::UnknownLevel { text: "Write".to_owned() };
    assert_eq!("Write".parse::<Level>(), Err(unknown));
    assert_eq!(format!("{:>6}", Level::View), "  view");
}

#[test]
fn callers_may_spell_a_path_with_or_without_the_place_programs_see_it_at() {
    for spelt in ["/workspace/a/b", "/a/b", "a/b", "//workspace/./a//b/", "./a/b"] {
        assert_eq!(WorkspacePath::from_caller(spelt), Ok(path("/a/b")), "{spelt}");
    }
    for spelt in ["/workspace", "/workspace/", "/", "", "."] {
        assert_eq!(WorkspacePath::from_caller(spelt), Ok(WorkspacePath::root()), "{spelt}");
    }
    for spelt in ["workspace/a", "/workspace/workspace/a"] {
        assert_eq!(WorkspacePath::from_caller(spelt), Ok(path("/workspace/a")), "{spelt}");
    }
    assert_eq!(WorkspacePath::from_caller("/workspaces/a"), Ok(path("/workspaces/a")));
    for spelt in ["..", "/workspace/../etc", "a/../b", "a/.."] {
        assert!(WorkspacePath::from_caller(spelt).is_err(), "{spelt}");
    }
}
