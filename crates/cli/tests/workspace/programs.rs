//! Real programs at work in a mounted workspace, on a base that already has content, so that they
//! meet copy-up, whiteouts and redirects and not just new files.

use std::path::Path;
use std::process::{Command, Stdio};

/// Declares each promise twice: with the kernel serving files itself, and with us serving them.
macro_rules! in_both_modes {
    ($($promise:ident)*) => {
        mod with_passthrough {
            $(#[test] fn $promise() { super::$promise(crate::support::Workspace::new()) })*
        }
        mod without_passthrough {
            $(#[test] fn $promise() {
                super::$promise(crate::support::Workspace::new().no_passthrough())
            })*
        }
    };
}

/// Skips a test where a program it drives is not installed.
macro_rules! require_programs {
    ($($name:literal)*) => {
        $(crate::support::require!(super::is_installed($name), concat!("the program ", $name));)*
    };
}

mod archives;
mod builds;
mod databases;
mod editors;
mod git;
mod packages;
mod trees;

fn is_installed(name: &str) -> bool {
    let found = Command::new("sh").arg("-c").arg(format!("command -v {name}")).output();
    found.is_ok_and(|output| output.status.success())
}

/// Runs a shell command outside of the workspace; it must succeed.
fn outside(dir: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
