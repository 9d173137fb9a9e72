//! What the policy says and what the filesystem does are the same, for every path of random trees
//! under random rules.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ringfence_policy::{Level, Policy, Rule, WorkspacePath};

use crate::support::{Mounted, Workspace, require_fuse};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn rule(&mut self) -> String {
        let level = self.pick(&["none", "view", "read", "write"]);
        let pattern = match self.below(6) {
            0 => "**/*".to_owned(),
            1 => format!("**/{}", self.pick(&["a", "b", "*.k", "c*"])),
            2 => format!("**/{}/**", self.pick(&["a", "b", "c"])),
            3 => format!("/{}/**", self.pick(&["a", "b", "c"])),
            4 => format!("/{}/{}", self.pick(&["a", "b", "*"]), self.pick(&["a", "c", "x.k"])),
            _ => format!("/{}", self.pick(&["a", "b", "c", "x.k"])),
        };
        format!("{level}:{pattern}@{}", self.below(3))
    }
}

/// Every directory and file of the tree, parents first.
fn tree() -> Vec<(PathBuf, bool)> {
    let mut all = Vec::new();
    for first in ["a", "b", "c"] {
        all.push((first.into(), true));
        for second in ["a", "b", "c"] {
            let dir = Path::new(first).join(second);
            all.push((dir.clone(), true));
            for file in ["a", "x.k", "c1"] {
                all.push((dir.join(file), false));
            }
        }
        all.push((Path::new(first).join("x.k"), false));
    }
    all.push(("x.k".into(), false));
    all
}

fn level(policy: &Policy, path: &Path) -> Level {
    policy.level(&WorkspacePath::parse(path.as_os_str().as_encoded_bytes()).unwrap())
}

/// What programs find: the level of a file by what may be done with it.
fn found(ws: &Mounted, path: &Path) -> Level {
    let path = ws.path(path);
    if fs::symlink_metadata(&path).is_err() {
        return Level::None;
    }
    match (File::open(&path).is_ok(), File::options().append(true).open(&path).is_ok()) {
        (_, true) => Level::Write,
        (true, false) => Level::Read,
        (false, false) => Level::View,
    }
}

#[test]
fn the_filesystem_does_what_the_policy_says_about_every_path() {
    require_fuse!();
    let tree = tree();
    for seed in 1..=25 {
        let mut random = Random(seed);
        let rules: Vec<_> = (0..2 + random.below(6)).map(|_| random.rule()).collect();
        let compiled = rules.iter().map(|rule| Rule::parse_cli(rule).unwrap()).collect();
        let policy = Policy::compile(compiled).unwrap();
        let mut ws = Workspace::new();
        for (path, is_dir) in &tree {
            ws = if *is_dir { ws.dir(path.to_str().unwrap()) } else { ws.file(path, "x") };
        }
        let ws = rules.iter().fold(ws, |ws, rule| ws.rule(rule)).mount();
        for (path, is_dir) in &tree {
            let says = level(&policy, path);
            if !is_dir {
                assert_eq!(found(&ws, path), says, "{} under {rules:?}", path.display());
                continue;
            }
            let shows = |(below, _): &(PathBuf, bool)| {
                below.starts_with(path) && below != path && level(&policy, below) > Level::None
            };
            let expected = says > Level::None || tree.iter().any(shows);
            let there = ws.path(path).is_dir();
            assert_eq!(there, expected, "{} under {rules:?}", path.display());
        }
    }
}
