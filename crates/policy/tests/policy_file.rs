//! Policy files: what is read, and how precisely the rest is refused.

use ringfence_policy::{
    Level, PatternFault, PatternType, PolicyFile, PolicyFileFault, PresetRegistry, Rule, RuleError,
    RuleSource, preset,
};

fn refused(text: &str) -> (usize, usize, String) {
    let error = PolicyFile::parse(text).expect_err("the file must be refused");
    (error.line, error.column, error.reason.to_string())
}

#[test]
fn rules_follow_the_preset_in_order() {
    let text = r#"
preset = "agent-safe"

[[rule]]
pattern = "/build/**"
level = "write"
priority = 10

[[rule]]
pattern = "/notes"
level = "none"
type = "directory"
"#;
    let rules = PolicyFile::parse(text).expect("well formed").into_rules();
    let agent_safe = preset("agent-safe").expect("built in");
    assert_eq!(rules[..agent_safe.len()], agent_safe);
    let own = [
        Rule::glob(Level::Write, "/build/**").at(10),
        Rule::glob(Level::None, "/notes").of_type(PatternType::Directory),
    ];
    assert_eq!(rules[agent_safe.len()..], own);
}

#[test]
fn an_empty_file_has_no_rules() {
    assert_eq!(PolicyFile::parse("").expect("well formed").into_rules(), []);
}

#[test]
fn unknown_keys_are_refused_where_they_stand() {
    let (line, column, reason) = refused("preset = \"read-only\"\n  colour = 3\n");
    assert_eq!((line, column), (2, 3), "{reason}");
    let (line, column, reason) =
        refused("[[rule]]\npattern = \"a\"\nlevel = \"read\"\npriorty = 100\n");
    assert_eq!((line, column), (4, 1), "{reason}");
    assert!(reason.contains("priorty"), "{reason}");
}

#[test]
fn a_malformed_pattern_is_reported_where_it_stands() {
    let text = "# é\n[[rule]]\nlevel = \"none\"\npattern = \"**/[ab\"\n";
    let error = PolicyFile::parse(text).expect_err("the class is not closed");
    assert_eq!((error.line, error.column), (4, 11));
    let PolicyFileFault::Rule(RuleError::Pattern { pattern, source }) = &error.reason else {
        panic!("not about the pattern: {error}");
    };
    assert_eq!((pattern.as_str(), source.column), ("**/[ab", 4));
    assert_eq!(source.reason, PatternFault::UnclosedClass);
    assert_eq!(
        error.to_string(),
        "line 4, column 11: pattern `**/[ab`: `[` has no closing `]` (column 4)"
    );
}

#[test]
fn wrong_values_are_reported_where_they_stand() {
    let rule = |key: &str| format!("[[rule]]\npattern = \"a\"\n{key}\n");
    let cases = [
        (rule("level = \"reed\""), (3, 9), "not a level"),
        (rule("level = \"read\"\ntype = \"regex\""), (4, 8), "not a pattern type"),
        (rule("level = \"read\"\npriority = 3000000000"), (4, 12), "i32"),
        (rule("level = \"read\"\npriority = \"high\""), (4, 12), "i32"),
        ("preset = \"agent-save\"".to_owned(), (1, 10), "no preset"),
        ("é = 1\n".to_owned(), (1, 1), ""),
        ("[[rule]]\npattern = \"a\"\n".to_owned(), (1, 1), "level"),
        ("x = 'é' ]".to_owned(), (1, 9), ""),
        ("rule = 3".to_owned(), (1, 8), ""),
    ];
    for (text, position, reason) in cases {
        let (line, column, found) = refused(&text);
        assert_eq!((line, column), position, "{text}: {found}");
        assert!(found.contains(reason), "{text}: {found}");
    }
}

#[test]
fn registered_presets_can_be_built_on() {
    let mut presets = PresetRegistry::new();
    presets.register("team", vec![Rule::glob(Level::Read, "/team/**")]).expect("the name is free");
    let file = PolicyFile::parse_with("preset = \"team\"", &presets).expect("well formed");
    let source = RuleSource::Preset("team".to_owned());
    assert_eq!(file.into_rules(), [Rule { source, ..Rule::glob(Level::Read, "/team/**") }]);
}
