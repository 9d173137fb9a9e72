//! The shared vectors, `api/vectors/policy.json`; its README says what each section means.

use ringfence_policy::{
    CompileError, Level, PatternFault, PatternType, Policy, PresetError, Rule, WorkspacePath,
    extend_preset, preset, preset_names,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    version: u32,
    levels: Vec<Level>,
    paths: Vec<PathCase>,
    matches: Vec<MatchCase>,
    malformed: Vec<MalformedCase>,
    too_long: TooLongCase,
    decisions: Vec<PolicyCase<Decision>>,
    subtrees: Vec<PolicyCase<SubtreeCase>>,
    presets: Vec<PresetCase>,
    extend: Vec<ExtendCase>,
    cli: Vec<CliCase>,
}

#[derive(Deserialize, Debug)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Hex { hex: String },
}

#[derive(Deserialize)]
struct PathCase {
    path: Bytes,
    is: Option<Bytes>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatchCase {
    #[serde(default)]
    r#type: PatternType,
    pattern: String,
    yes: Vec<Bytes>,
    no: Vec<Bytes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MalformedCase {
    #[serde(default)]
    r#type: PatternType,
    pattern: String,
    error: String,
    column: usize,
}

#[derive(Deserialize)]
struct TooLongCase {
    repeat: String,
    allowed: usize,
    error: String,
    column: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyCase<T> {
    name: String,
    preset: Option<String>,
    #[serde(default)]
    rules: Vec<Rule>,
    paths: Vec<T>,
}

#[derive(Deserialize)]
struct Decision {
    path: Bytes,
    level: Level,
    rule: Option<u32>,
}

#[derive(Deserialize)]
struct SubtreeCase {
    path: Bytes,
    min: Level,
    max: Level,
}

#[derive(Deserialize)]
struct PresetCase {
    name: String,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtendCase {
    name: String,
    base: String,
    additions: Vec<Rule>,
    overrides: Vec<Rule>,
    #[serde(default)]
    added: Vec<Rule>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct CliCase {
    text: String,
    rule: Option<Rule>,
    error: Option<String>,
}

fn vectors() -> Vectors {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../../api/vectors/policy.json")).expect("valid");
    assert_eq!(vectors.version, 1);
    vectors
}

impl Bytes {
    fn to_vec(&self) -> Vec<u8> {
        match self {
            Bytes::Text(text) => text.clone().into_bytes(),
            Bytes::Hex { hex } => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits"))
                .collect(),
        }
    }

    fn to_path(&self) -> WorkspacePath {
        WorkspacePath::parse(self.to_vec()).expect("a valid path")
    }
}

impl<T> PolicyCase<T> {
    fn policy(&self) -> Policy {
        let preset = self.preset.iter().flat_map(|name| preset(name).expect("a known preset"));
        Policy::compile(preset.chain(self.rules.clone()).collect()).expect("well formed rules")
    }
}

/// What other languages can compare too: where a rule came from is not part of it.
fn plain(rules: &[Rule]) -> Vec<(&str, PatternType, Level, i32)> {
    rules
        .iter()
        .map(|rule| (&*rule.pattern, rule.pattern_type, rule.level, rule.priority))
        .collect()
}

fn refusal(rule: Rule) -> (PatternFault, usize) {
    match Policy::compile(vec![Rule::glob(Level::Read, "**"), rule.clone()]) {
        Err(CompileError::Pattern { index: 1, pattern, column, reason }) => {
            assert_eq!(pattern, rule.pattern);
            (reason, column)
        }
        other => panic!("{:?} must be refused, got {other:?}", rule.pattern),
    }
}

#[test]
fn levels_are_ordered() {
    let vectors = vectors();
    assert_eq!(vectors.levels, Level::ALL);
    assert!(vectors.levels.is_sorted());
}

#[test]
fn paths_are_normalised() {
    for case in vectors().paths {
        let found = WorkspacePath::parse(case.path.to_vec());
        match (case.is, case.error) {
            (Some(is), None) => {
                let found = found.expect("a valid path");
                assert_eq!(found.as_bytes(), is.to_vec(), "{:?}", case.path);
            }
            (None, Some(error)) => {
                assert_eq!(found.expect_err("refused").code(), error, "{:?}", case.path);
            }
            _ => panic!("{:?} needs either `is` or `error`", case.path),
        }
    }
}

#[test]
fn patterns_match_what_they_must() {
    for case in vectors().matches {
        let rule = Rule::glob(Level::Write, case.pattern.clone()).of_type(case.r#type);
        let policy = Policy::compile(vec![rule]).expect("a well formed pattern");
        let matched = |path: &Bytes| policy.level(&path.to_path()) == Level::Write;
        for path in &case.yes {
            assert!(matched(path), "{} must match {path:?}", case.pattern);
        }
        for path in &case.no {
            assert!(!matched(path), "{} must not match {path:?}", case.pattern);
        }
    }
}

#[test]
fn malformed_patterns_are_refused_with_the_place() {
    for case in vectors().malformed {
        let rule = Rule::glob(Level::None, case.pattern.clone()).of_type(case.r#type);
        let (reason, column) = refusal(rule);
        assert_eq!((reason.code(), column), (case.error.as_str(), case.column), "{}", case.pattern);
    }
}

#[test]
fn long_patterns_are_refused() {
    let case = vectors().too_long;
    let rule = |count| Rule::glob(Level::None, case.repeat.repeat(count));
    assert!(Policy::compile(vec![rule(case.allowed)]).is_ok());
    let (reason, column) = refusal(rule(case.allowed + 1));
    assert_eq!((reason.code(), column), (case.error.as_str(), case.column));
}

#[test]
fn rules_decide_as_they_must() {
    for case in vectors().decisions {
        let policy = case.policy();
        for Decision { path, level, rule } in &case.paths {
            let verdict = policy.verdict(&path.to_path());
            assert_eq!((verdict.level, verdict.rule), (*level, *rule), "{}: {path:?}", case.name);
        }
    }
}

#[test]
fn subtrees_are_bounded_as_they_must() {
    for case in vectors().subtrees {
        let policy = case.policy();
        for SubtreeCase { path, min, max } in &case.paths {
            let bounds = policy.subtree(&path.to_path());
            assert_eq!((bounds.min, bounds.max), (*min, *max), "{}: {path:?}", case.name);
        }
    }
}

#[test]
fn presets_are_exact() {
    let cases = vectors().presets;
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(preset_names().collect::<Vec<_>>(), names);
    for case in &cases {
        let rules = preset(&case.name).expect("a built-in preset");
        assert_eq!(plain(&rules), plain(&case.rules), "{}", case.name);
    }
}

#[test]
fn presets_extend_as_they_must() {
    for case in vectors().extend {
        let extended = extend_preset(&case.base, case.additions, case.overrides);
        if let Some(error) = case.error {
            assert_eq!(error, "unknown-preset", "{}", case.name);
            assert!(matches!(extended, Err(PresetError::Unknown { .. })), "{}", case.name);
            continue;
        }
        let mut expected = preset(&case.base).expect("a built-in preset");
        expected.extend(case.added);
        assert_eq!(plain(&extended.expect("a known base")), plain(&expected), "{}", case.name);
    }
}

#[test]
fn rules_on_the_command_line_read_as_they_must() {
    for case in vectors().cli {
        let found = Rule::parse_cli(&case.text);
        match case.error {
            None => assert_eq!(found.ok(), case.rule, "{}", case.text),
            Some(error) => assert_eq!(found.expect_err("refused").code(), error, "{}", case.text),
        }
    }
}
