//! What needs no server.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{ringfence, text};

#[test]
fn a_shell_accepts_the_completions_made_for_it() {
    for (shell, name) in [("bash", "sandbox"), ("zsh", "sandbox"), ("fish", "sandbox")] {
        let output = ringfence(&["completions", shell]).output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains(name), "{shell}");
        let Ok(mut child) = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn() else {
            assert_ne!(shell, "bash", "bash is needed to check");
            continue;
        };
        child.stdin.take().unwrap().write_all(&output.stdout).unwrap();
        assert!(child.wait().unwrap().success(), "{shell}");
    }
}

#[test]
fn every_group_of_commands_has_examples_in_its_help() {
    for group in ["codebase", "sandbox", "session", "process", "token"] {
        let help = text(&ringfence(&[group, "--help"]).output().unwrap().stdout);
        assert!(help.contains("Examples:") && help.contains("--endpoint"), "{group}: {help}");
    }
}
