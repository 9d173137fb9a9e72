//! Programs that need a terminal.

use ringfence_link::warden::ProcessStatus;

use super::on;
use crate::support::{Maker, sandbox};

#[test]
fn a_debugger_is_driven_over_several_attachments() {
    let program = "total = 0\nfor n in range(5):\n    total += n\nprint('total', total)\n";
    let sandbox = sandbox!(Maker::new().file("sum.py", program));
    let mut first = sandbox.on_terminal(on(&["python3", "-m", "pdb", "sum.py"]));
    first.expect("(Pdb) ");
    first.type_in("break 3\n");
    assert!(first.expect("(Pdb) ").contains("Breakpoint 1 at /workspace/sum.py:3"));
    let id = first.id.clone();
    drop(first);
    let mut second = sandbox.attach(&id);
    second.live();
    second.type_in("continue\n");
    second.expect("(Pdb) ");
    second.type_in("continue 1\np (n, total)\n");
    second.expect("(1, 0)");
    drop(second);
    let mut third = sandbox.attach(&id);
    third.live();
    third.type_in("clear 1\n");
    third.expect("Deleted breakpoint 1");
    third.type_in("continue\n");
    third.expect("total 10");
    third.type_in("quit\n");
    assert_eq!(third.ended().unwrap(), ProcessStatus::Exited(0));
}

#[test]
fn full_screen_programs_start_draw_and_quit() {
    let lines: String = (1..=200).map(|n| format!("line number {n}\n")).collect();
    let sandbox = sandbox!(Maker::new().file("long.txt", lines));
    let mut less = sandbox.on_terminal(on(&["less", "long.txt"]));
    less.expect("line number 23");
    less.type_in("G");
    less.expect("line number 200");
    less.type_in("g/number 77\n");
    less.expect("line number 99");
    less.type_in("q");
    assert_eq!(less.ended().unwrap(), ProcessStatus::Exited(0));
    let mut top = sandbox.on_terminal(on(&["top"]));
    top.expect("PID");
    sandbox.resize(&top.id, 30, 100).unwrap();
    top.expect("top");
    top.type_in("q");
    assert_eq!(top.ended().unwrap(), ProcessStatus::Exited(0));
    let mut vim = sandbox.on_terminal(on(&["vim", "-u", "NONE", "new.txt"]));
    vim.expect("~");
    vim.type_in("ihello from vim\x1b:wq\n");
    assert_eq!(vim.ended().unwrap(), ProcessStatus::Exited(0));
    assert_eq!(sandbox.ok("cat new.txt"), "hello from vim\n");
}
