//! `ringfence policy`: what a policy says about paths, trees and itself.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{Workspace, binary, names_in, os, require_fuse};
use serde_json::Value;

fn policy(args: &[&str]) -> Output {
    binary().arg("policy").args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let output = policy(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn fails(args: &[&str], code: i32) -> String {
    let output = policy(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn json_lines(args: &[&str]) -> Vec<Value> {
    ok(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn policy_file(dir: &Path, text: &str) -> String {
    let path = dir.join("policy.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn explain_names_the_level_the_rule_its_source_and_the_runner_up() {
    let text = ok(&["explain", "config/.env", "src/main.py"]);
    let expected = "/config/.env: none\n\
        \x20 decided by none:**/.env*@100 (rule 3, preset agent-safe)\n\
        \x20 runner-up  read:**/*@0 (rule 0, preset agent-safe)\n\
        /src/main.py: read\n\
        \x20 decided by read:**/*@0 (rule 0, preset agent-safe)\n";
    assert_eq!(text, expected);
}

#[test]
fn explain_names_the_directory_that_hides_a_path() {
    let text = ok(&["explain", "/.env.d/x/y"]);
    assert!(text.contains("hidden by  /.env.d and all below it"), "{text}");
    let value = &json_lines(&["explain", "--json", "/.env.d/x/y"])[0];
    assert_eq!(value["level"], "none");
    assert_eq!(value["hidden_by"], "/.env.d");
    assert_eq!(value["decided_by"]["source"], "preset agent-safe");
    assert_eq!(value["runner_up"]["pattern"], "**/*");
}

#[test]
fn explain_says_when_no_rule_matches() {
    let text = ok(&["explain", "--rule", "read:/docs/**", "src"]);
    assert_eq!(text, "/src: none\n  because    no rule matches\n");
}

#[test]
fn explain_takes_names_that_are_not_text() {
    let output = binary().args(["policy", "explain", "--json"]).arg(os(b"a\xff.key")).output();
    let value: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(value["level"], "none");
    assert_eq!(value["path_bytes"], serde_json::json!([47, 97, 255, 46, 107, 101, 121]));
}

#[test]
fn a_path_with_a_parent_component_is_refused() {
    let error = fails(&["explain", "a/../b"], 2);
    assert!(error.contains("cannot contain `..`"), "{error}");
}

#[test]
fn malformed_rules_and_unknown_presets_are_refused_with_exit_code_2() {
    for rule in ["read", "often:/x", "none:/[a", "read:/x@99999999999"] {
        fails(&["explain", "--rule", rule, "x"], 2);
    }
    let error = fails(&["explain", "--preset", "nothing", "x"], 2);
    assert!(error.contains("hint: the presets are view-only"), "{error}");
}

const TREE: &[&str] = &[
    ".env",
    ".env.d/x",
    ".git/config",
    "a/.env.local",
    "a/b/secrets/d/k",
    "credentials.json",
    "output/y",
    "secrets/k",
    "secrets/public.txt",
    "src/main.py",
    "x.key",
];

fn example() -> Workspace {
    TREE.iter().fold(Workspace::new(), |ws, path| ws.file(path, "1"))
}

#[test]
fn tree_marks_each_entry_with_its_level() {
    let ws = example();
    let text = ok(&[
        "tree",
        "--rule",
        "read:/secrets/public.txt@200",
        "--preset",
        "agent-safe",
        ws.base().to_str().unwrap(),
    ]);
    let expected = "- .env\n- .env.d/\n- .git/\nr a/\n-   .env.local\nr   b/\n-     secrets/\n\
        - credentials.json\nw output/\nw   y\np secrets/\n-   k\nr   public.txt\nr src/\n\
        r   main.py\n- x.key\n";
    assert_eq!(text, expected);
}

#[test]
fn tree_can_leave_out_what_is_hidden() {
    let ws = example();
    let text = ok(&["tree", "--visible", ws.base().to_str().unwrap()]);
    assert_eq!(text, "r a/\nr   b/\nw output/\nw   y\nr src/\nr   main.py\n");
}

/// Paths below a directory as the filesystem lists them.
fn listed(root: &Path, below: &str, found: &mut Vec<String>) {
    for name in names_in(&root.join(below)) {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if fs::symlink_metadata(root.join(&path)).unwrap().is_dir() {
            listed(root, &path, found);
        }
        found.push(path);
    }
}

#[test]
fn tree_agrees_with_the_mounted_filesystem() {
    require_fuse!();
    let policies: &[&[&str]] = &[
        &["--preset", "agent-safe"],
        &["--preset", "agent-safe", "--rule", "read:/secrets/public.txt@200"],
        &["--rule", "read:/a/b/secrets/d/k", "--rule", "view:/src"],
        &["--rule", "none:/**", "--rule", "write:**/*.json"],
        &["--rule", "read:**/k", "--rule", "none:/secrets/**@5"],
    ];
    for args in policies {
        let ws = args.iter().fold(example(), |ws, arg| ws.arg(*arg)).mount();
        let base = ws.base();
        let mut tree = vec!["tree", "--json", "--visible", base.to_str().unwrap()];
        tree.extend(*args);
        let value = &json_lines(&tree)[0];
        let entries = value["entries"].as_array().unwrap().iter();
        let mut said: Vec<String> =
            entries.map(|entry| entry["path"].as_str().unwrap()[1..].to_owned()).collect();
        said.sort();
        let mut seen = Vec::new();
        listed(&ws.root(), "", &mut seen);
        seen.sort();
        assert_eq!(said, seen, "{args:?}");
    }
}

#[test]
fn tree_follows_no_symlink_and_quotes_names() {
    let ws = Workspace::new();
    std::os::unix::fs::symlink("/etc", ws.base().join("link")).unwrap();
    fs::write(ws.base().join(os(b"\x1b[2J")), "1").unwrap();
    let text = ok(&["tree", ws.base().to_str().unwrap()]);
    assert_eq!(text, "r \"\\033[2J\"\nr link\n");
}

#[test]
fn tree_of_what_is_not_a_directory_is_refused() {
    let ws = Workspace::new().file("f", "1");
    fails(&["tree", ws.base().join("f").to_str().unwrap()], 2);
    fails(&["tree", ws.base().join("missing").to_str().unwrap()], 2);
}

#[test]
fn check_accepts_a_clean_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = "preset = \"agent-safe\"\n[[rule]]\npattern = \"/build/**\"\nlevel = \"write\"\n";
    let file = policy_file(dir.path(), text);
    assert!(ok(&["check", &file]).contains("nothing to report"));
}

#[test]
fn check_names_line_and_column_of_a_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[rule]]\npattern = \"/a\"\nlevel = \"write\"\n\n[[rule]]\npattern = \"/[b\"\n\
                level = \"none\"\n";
    let file = policy_file(dir.path(), text);
    let error = fails(&["check", &file], 2);
    assert!(error.contains("line 6, column 11"), "{error}");
    let output = policy(&["check", "--json", &file]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["error"]["line"], &value["error"]["column"]), (&6.into(), &11.into()));
    assert_eq!(output.status.code(), Some(2));
    for bad in [
        "level = ",
        "[[rule]]\npattern = \"a\"\nlevel = \"rw\"",
        "preset = \"nope\"",
        "[[rule]]\npattern = \"a\"\nlevel = \"read\"\npriorty = 5",
    ] {
        let error = fails(&["check", &policy_file(dir.path(), bad)], 2);
        assert!(error.contains("line "), "{bad}: {error}");
    }
    fails(&["check", dir.path().join("missing").to_str().unwrap()], 2);
}

#[test]
fn check_reports_rules_that_never_win_with_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[[rule]]\npattern = \"/a/**\"\nlevel = \"read\"\n\n\
                [[rule]]\npattern = \"**/*\"\nlevel = \"write\"\npriority = 5\n";
    let file = policy_file(dir.path(), text);
    let report = fails(&["check", &file], 1);
    assert!(report.contains("rule 0: never wins"), "{report}");
    let value: Value = serde_json::from_slice(&policy(&["check", "--json", &file]).stdout).unwrap();
    assert_eq!(value["findings"][0]["pattern"], "/a/**");
}

#[test]
fn check_against_a_directory_reports_own_rules_that_do_nothing_there() {
    let ws = example();
    let text = "preset = \"agent-safe\"\n[[rule]]\npattern = \"/src/**\"\nlevel = \"write\"\n\n\
                [[rule]]\npattern = \"/srx/**\"\nlevel = \"write\"\n";
    let dir = tempfile::tempdir().unwrap();
    let file = policy_file(dir.path(), text);
    ok(&["check", &file]);
    let report = fails(&["check", &file, "--against", ws.base().to_str().unwrap()], 1);
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(report.contains("matches nothing here: `write:/srx/**@0`"), "{report}");
}

#[test]
fn presets_are_listed_with_their_rules() {
    let values = json_lines(&["presets", "--json"]);
    let names: Vec<_> = values.iter().map(|value| value["preset"].as_str().unwrap()).collect();
    assert_eq!(names, ["view-only", "read-only", "agent-safe", "development", "full-access"]);
    assert!(ok(&["presets"]).contains("agent-safe\n  read:**/*@0\n  write:/output/**@10\n"));
}

#[test]
fn every_command_has_examples_in_its_help() {
    let commands = [
        "policy explain",
        "policy tree",
        "policy check",
        "layer changes",
        "layer diff",
        "layer apply",
        "layer freeze",
        "layer fork",
        "layer rm",
        "layer show",
    ];
    for command in commands {
        let words = command.split(' ').map(OsStr::new);
        let output = binary().args(words).arg("--help").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Examples:") && text.contains("Exit codes"), "{command}: {text}");
    }
}
