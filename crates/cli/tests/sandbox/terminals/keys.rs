//! What is typed, and what it does.

use ringfence_link::warden::{Exec, ProcessStatus};

use super::{PROMPT, bash, on, text};
use crate::support::{eventually, processes_with, sandbox, unique_sleep};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// Whether keys pressed on its terminal are for this program.
fn is_in_front(program: &str) -> bool {
    let [pid] = processes_with(program)[..] else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let (group, group_in_front) = (fields[2], fields[5]);
    group == group_in_front
}

#[test]
fn what_is_typed_is_echoed_and_run() {
    let sandbox = sandbox!();
    let info = sandbox.terminal(bash());
    assert!(info.id.starts_with("term_") && info.pid > 1 && !info.attached, "{info:?}");
    assert_eq!((info.rows, info.columns, info.watchers), (24, 80, 0));
    let mut terminal = sandbox.attach(&info.id);
    terminal.expect(PROMPT);
    terminal.type_in("echo sum $((40+2))\n");
    assert!(terminal.expect("sum 42").contains("echo sum $((40+2))"));
    assert_eq!(sandbox.terminals()[0].watchers, 1);
}

#[test]
fn ctrl_c_stops_the_command_and_the_prompt_returns() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.at_prompt();
    // The program itself says so: while a shell forks, an interrupt may be its own.
    terminal.type_in("sh -c 'echo run\"\"ning; exec sleep 1000'\n");
    terminal.expect("running\r\n");
    terminal.type_in(CTRL_C);
    terminal.expect("^C");
    terminal.expect(PROMPT);
    assert_eq!(terminal.run("echo $?"), "130\n");
}

#[test]
fn job_control_works() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let mut terminal = sandbox.on_terminal(bash());
    let greeting = terminal.expect(PROMPT);
    assert!(!greeting.contains("no job control"), "{greeting}");
    terminal.type_in(&format!("sh -c 'echo run\"\"ning; exec sleep {time}'\n"));
    terminal.expect("running\r\n");
    terminal.type_in(CTRL_Z);
    terminal.expect("Stopped");
    terminal.expect(PROMPT);
    assert!(terminal.run("jobs").contains("Stopped"));
    terminal.run("bg");
    assert!(terminal.run("jobs").contains("Running"));
    terminal.type_in("fg\n");
    terminal.expect(&format!("sleep {time}'\r\n"));
    // The shell says which it is before that has the terminal.
    eventually("it is in front", || is_in_front(&format!("sleep\0{time}")));
    terminal.type_in(CTRL_C);
    terminal.expect(PROMPT);
    assert_eq!(terminal.run("jobs"), "");
}

#[test]
fn ctrl_d_ends_the_shell_and_a_signal_is_told() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.at_prompt();
    terminal.run("true");
    terminal.type_in(CTRL_D);
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
    let mut terminal = sandbox.at_prompt();
    terminal.type_in("kill -9 $$\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Killed(9));
}

#[test]
fn programs_find_their_controlling_terminal() {
    let sandbox = sandbox!();
    let ask = "import getpass; print('got', getpass.getpass('secret? ')[::-1])";
    let mut terminal = sandbox.on_terminal(on(&["python3", "-c", ask]));
    terminal.expect("secret? ");
    terminal.type_in("abc\n");
    let shown = terminal.expect("got cba");
    assert!(!shown.contains("abc"), "it is not echoed: {shown:?}");
}

#[test]
fn typing_to_one_who_does_not_read_is_bounded_and_a_signal_still_ends_it() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.on_terminal(text("stty raw -echo; echo up; sleep 1000"));
    terminal.expect("up");
    let typist = terminal.call.try_clone().unwrap();
    let typing = std::thread::spawn(move || while typist.input(&[b'x'; 64 * 1024]).is_ok() {});
    assert_eq!(sandbox.ok("echo others go on"), "others go on\n");
    sandbox.close_terminal(&terminal.id).unwrap();
    terminal.ended().unwrap();
    drop(terminal);
    typing.join().unwrap();
}

#[test]
fn a_long_paste_arrives_whole() {
    let sandbox = sandbox!();
    let mut terminal =
        sandbox.on_terminal(text("stty raw -echo; echo up; head -c 1000000 | cksum; read x"));
    terminal.expect("up");
    let paste: String = (0..100_000).map(|n| format!("{n:09} ")).collect();
    let sum = sandbox.exec_with_input(Exec::shell("cksum"), paste.as_bytes());
    terminal.type_in(&paste);
    terminal.expect(sum.unwrap().out().trim());
}
