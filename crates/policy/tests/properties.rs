//! Random rules, random paths: the fast policy says what the slow one says.

mod oracle;

use oracle::fuzz::{check, check_path};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use ringfence_policy::{Level, PatternType, Policy, Rule, WorkspacePath};

/// Few distinct names, so that rules and paths meet often.
const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"ab",
    b"ba",
    b"aab",
    b"x.md",
    b".env",
    b".env.d",
    b"secrets",
    b"*",
    b"[a]",
    b"-",
    "é".as_bytes(),
    "aé".as_bytes(),
    b"\xff",
    b"a\xe9",
    b"a\nb",
    b"...",
];

const PARTS: &[&str] = &[
    "a",
    "b",
    "ab",
    "*",
    "*",
    "**",
    "**",
    "?",
    "??",
    "a*",
    "*b",
    "*a*",
    "a?",
    "[ab]",
    "[!a]*",
    "[^b]",
    "[a-c]b",
    "[]a]",
    "[!-a]",
    "{a,b}",
    "{a,b}*",
    "{,a}b",
    "{a/b,**}",
    "{a,{b,ab}/*}",
    "a**",
    "**b",
    "a**b",
    "***",
    "{*,a}*",
    ".env*",
    "*.md",
    "secrets",
    "\\*",
    "\\[a\\]",
    "é",
    "?é",
    ".",
    "",
    "...",
];

fn path() -> impl Strategy<Value = WorkspacePath> {
    vec(select(NAMES), 0..5)
        .prop_map(|names| WorkspacePath::parse(names.join(&b'/')).expect("made of valid names"))
}

fn rule() -> impl Strategy<Value = Rule> {
    let kinds =
        vec![PatternType::Glob; 4].into_iter().chain([PatternType::Directory, PatternType::File]);
    (
        (any::<bool>(), vec(select(PARTS), 1..5)),
        select(kinds.collect::<Vec<_>>()),
        select(Level::ALL.to_vec()),
        select(vec![0, 0, 0, 10, -1, 100]),
    )
        .prop_map(|((slash, parts), kind, level, priority)| {
            let lead = if slash { "/" } else { "" };
            let pattern = format!("{lead}{}", parts.join("/"));
            Rule::glob(level, pattern).of_type(kind).at(priority)
        })
        .prop_filter("not empty", |rule| !rule.pattern.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_rules_decide_like_the_naive_matcher(rules in vec(rule(), 0..12), paths in vec(path(), 1..12)) {
        let policy = Policy::compile(rules).expect("every part is well formed");
        for path in &paths {
            check_path(&policy, path);
        }
    }

    #[test]
    fn one_rule_matches_like_the_naive_matcher(rule in rule(), paths in vec(path(), 1..30)) {
        let rule = Rule { level: Level::Write, ..rule };
        let policy = Policy::compile(vec![rule.clone()]).expect("every part is well formed");
        for path in paths.iter().filter(|path| !path.is_root()) {
            prop_assert_eq!(policy.level(path) == Level::Write, oracle::matches(&rule, path), "{} {}", rule, path);
        }
    }

    #[test]
    fn any_text_compiles_or_is_refused(data in vec(select(b"\0\n\n\n/**?[]{},!^-\\.ab\xc3\xa9\xff".to_vec()), 0..60)) {
        check(&data);
    }

    #[test]
    fn a_path_has_one_spelling(names in vec(select(NAMES), 0..5), noise in vec(select(vec!["/", "//", "/./", "/.//"]), 6)) {
        let plain = WorkspacePath::parse(names.join(&b'/')).expect("made of valid names");
        let mut noisy = noise[5].as_bytes().to_vec();
        for (name, noise) in names.iter().zip(&noise) {
            noisy.extend_from_slice(name);
            noisy.extend_from_slice(noise.as_bytes());
        }
        prop_assert_eq!(WorkspacePath::parse(&noisy).expect("only spelt differently"), plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hundred_rules_decide_like_the_naive_matcher(rules in vec(rule(), 100), paths in vec(path(), 40)) {
        let policy = Policy::compile(rules).expect("every part is well formed");
        for path in &paths {
            check_path(&policy, path);
        }
    }
}

/// The fuzz target over a few thousand inputs that are half structure, half noise, so that it is
/// exercised where no fuzzer is installed.
#[test]
fn the_fuzz_target_finds_nothing_in_pseudo_random_input() {
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for _ in 0..6000 {
        check(&random.input());
    }
}

struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn input(&mut self) -> Vec<u8> {
        let mut data = Vec::new();
        for _ in 0..self.below(6) {
            data.push(self.below(256) as u8);
            for _ in 0..self.below(6) {
                self.push_part(&mut data);
            }
            data.push(b'\n');
        }
        for _ in 0..self.below(5) {
            data.push(b'/');
            data.extend_from_slice(NAMES[self.below(NAMES.len())]);
        }
        data
    }

    fn push_part(&mut self, data: &mut Vec<u8>) {
        match self.below(8) {
            0 => data.push(self.below(256) as u8),
            1 => data.push(b"/*?[]{},!^-\\."[self.below(13)]),
            _ => data.extend_from_slice(PARTS[self.below(PARTS.len())].as_bytes()),
        }
        if self.below(2) == 0 {
            data.push(b'/');
        }
    }
}
