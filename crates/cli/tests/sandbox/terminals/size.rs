//! How large a terminal is.

use ringfence_link::warden::{Code, Control, OpenTerminal};

use super::{PROMPT, bash};
use crate::support::{code_of, eventually, sandbox};

#[test]
fn a_resize_changes_the_size_and_is_signalled() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.on_terminal(OpenTerminal { rows: 33, columns: 111, ..bash() });
    terminal.expect(PROMPT);
    assert_eq!(terminal.run("stty size"), "33 111\n");
    sandbox.resize(&terminal.id, 40, 100).unwrap();
    assert_eq!(terminal.run("stty size"), "40 100\n");
    terminal.type_in("trap 'echo new size $(stty size)' WINCH; echo set\\ up; read x\n");
    terminal.expect("set up");
    terminal.control(Control::Resize { rows: 50, columns: 120 });
    eventually("the size is known", || sandbox.terminals()[0].columns == 120);
    terminal.type_in("\n");
    terminal.expect("new size 50 120");
}

#[test]
fn a_size_of_nothing_is_refused_and_the_terminal_lives() {
    let sandbox = sandbox!();
    let none = OpenTerminal { rows: 0, ..bash() };
    assert_eq!(code_of(sandbox.try_open_terminal(none)), Code::InvalidArgument);
    let mut terminal = sandbox.at_prompt();
    for (rows, columns) in [(0, 80), (24, 0), (0, 0)] {
        let refused = sandbox.resize(&terminal.id, rows, columns);
        assert_eq!(code_of(refused), Code::InvalidArgument);
        terminal.control(Control::Resize { rows, columns });
    }
    assert_eq!(terminal.run("stty size"), "24 80\n");
}
