//! What a person sees on a terminal.

use std::process::Command;

use super::after;
use crate::support::{Mounted, require, require_fuse};

/// Runs a command on a terminal of its own.
fn on_terminal(ws: &Mounted, command: &str, no_color: bool) -> String {
    let ringfence = env!("CARGO_BIN_EXE_ringfence");
    let line = format!("{ringfence} layer {command} {}", ws.layer.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR");
    if no_color {
        script.env("NO_COLOR", "1");
    }
    String::from_utf8_lossy(&script.output().unwrap().stdout).replace("\r\n", "\n")
}

fn has_script() -> bool {
    Command::new("script").arg("--version").output().is_ok()
}

#[test]
fn changes_are_coloured_on_a_terminal_unless_no_color_is_set() {
    require_fuse!();
    require!(has_script(), "the program `script`");
    let ws = after(&[("a", "1")], "rm a; echo 1 > b");
    assert_eq!(on_terminal(&ws, "changes", false), "\x1b[31mD\x1b[0m a\n\x1b[32mA\x1b[0m b\n");
    assert_eq!(on_terminal(&ws, "changes", true), "D a\nA b\n");
}

#[test]
fn a_file_cannot_move_the_cursor_of_who_reads_its_diff() {
    require_fuse!();
    require!(has_script(), "the program `script`");
    let ws = after(&[], r"printf '\033[2Jhidden\033[8m\rover\n' > a");
    let shown = on_terminal(&ws, "diff", true);
    assert!(!shown.contains('\x1b') && !shown.contains('\r'), "{shown:?}");
    assert!(shown.contains(r"+\u{1b}[2Jhidden\u{1b}[8m\rover"), "{shown:?}");
}
