//! One command in a fresh shell.

use ringfence_link::warden::{Code, Command, Exec};

use crate::support::{Maker, Sandbox, code_of, require_sandbox};

#[test]
fn streams_are_apart_and_the_exit_code_is_the_commands() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let run = sandbox.sh("echo out; echo err >&2; exit 42");
    assert_eq!((run.out().as_str(), run.err().as_str(), run.code()), ("out\n", "err\n", 42));
}
