//! One command in a fresh shell.

use ringfence_link::warden::{Command, Exec};

mod ends;
mod outcome;
mod start;
mod streams;

fn argv(words: &[&str]) -> Exec {
    Exec::new(Command::Argv(words.iter().map(|word| word.as_bytes().to_vec()).collect()))
}

/// A shell text with a time limit, in milliseconds. What it prints before is there for certain only
/// if the limit is longer than a busy machine takes to start it.
fn limited(text: impl Into<Vec<u8>>, timeout_ms: u64) -> Exec {
    Exec { timeout_ms: Some(timeout_ms), ..Exec::shell(text) }
}
