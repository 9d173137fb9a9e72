//! Those who watch a terminal: coming back, several, hanging up, not reading.

use ringfence_link::client::Event;
use ringfence_link::warden::{OpenTerminal, ProcessStatus, Reply, Request};

use super::{PROMPT, bash, text};
use crate::support::{eventually, memory_of, sandbox};

/// How much of what was shown is shown again.
const SCROLLBACK: usize = 256 * 1024;

#[test]
fn who_comes_back_is_shown_what_was_shown_before_it_is_live() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.at_prompt();
    terminal.run("cd /tmp; X=kept; echo earlier words");
    let id = terminal.id.clone();
    drop(terminal);
    let mut again = sandbox.attach(&id);
    let replayed = String::from_utf8(again.live()).unwrap();
    assert!(replayed.contains("earlier words") && replayed.ends_with(PROMPT), "{replayed:?}");
    assert_eq!(again.run("echo $X $PWD"), "kept /tmp\n");
}

#[test]
fn the_replay_is_the_last_256_kib() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.on_terminal(text("seq 1 100000; echo the end; read x"));
    terminal.expect("the end\r\n");
    let mut late = sandbox.attach(&terminal.id);
    let replayed = late.live();
    assert_eq!(replayed.len(), SCROLLBACK);
    assert!(replayed.ends_with(b"100000\r\nthe end\r\n"));
}

#[test]
fn all_who_watch_see_everything_and_each_may_type() {
    let sandbox = sandbox!();
    let mut one = sandbox.at_prompt();
    let mut two = sandbox.attach(&one.id);
    two.expect(PROMPT);
    assert_eq!(sandbox.terminals()[0].watchers, 2);
    one.type_in("echo from-$((1))\n");
    two.expect("from-1");
    two.type_in("echo from-$((2))\n");
    assert!(one.expect("from-2").contains("from-1"));
    two.expect("from-2");
    drop(one);
    eventually("one is gone", || sandbox.terminals()[0].watchers == 1);
    two.expect(PROMPT);
    assert_eq!(two.run("echo still here"), "still here\n");
}

#[test]
fn the_exit_code_is_told_to_all_who_watch_and_to_who_comes_later() {
    let sandbox = sandbox!();
    let mut one = sandbox.at_prompt();
    let mut two = sandbox.attach(&one.id);
    two.expect(PROMPT);
    one.type_in("exit 5\n");
    for watcher in [&mut one, &mut two] {
        assert_eq!(watcher.ended().unwrap(), ProcessStatus::Exited(5));
    }
    let mut late = sandbox.attach(&one.id);
    assert_eq!(late.ended().unwrap(), ProcessStatus::Exited(5));
    assert!(String::from_utf8_lossy(&late.shown).contains("exit 5"));
    assert_eq!(sandbox.terminals()[0].status, ProcessStatus::Exited(5));
    // What can be done to it has no effect.
    sandbox.close_terminal(&one.id).unwrap();
    sandbox.resize(&one.id, 10, 10).unwrap();
}

#[test]
fn hanging_up_leaves_it_running_unless_it_is_to_end_when_left() {
    let sandbox = sandbox!();
    let mut stays = sandbox.on_terminal(bash());
    let mut goes = sandbox.on_terminal(OpenTerminal { end_when_left: true, ..bash() });
    let mut second = sandbox.attach(&goes.id);
    for terminal in [&mut stays, &mut goes, &mut second] {
        terminal.expect(PROMPT);
    }
    drop((stays, goes));
    eventually("one is left", || sandbox.terminals()[1].watchers == 1);
    assert_eq!(second.run("echo alive"), "alive\n");
    drop(second);
    eventually("it ends", || sandbox.terminals()[1].status != ProcessStatus::Running);
    assert_eq!(sandbox.terminals()[0].status, ProcessStatus::Running);
}

#[test]
fn a_watcher_that_does_not_read_loses_bytes_but_not_the_end() {
    let sandbox = sandbox!();
    let info = sandbox.terminal(text("stty raw; yes flood | head -c 64M; echo the end; exit 6"));
    let stalled = sandbox.client.call(Request::Attach { id: info.id.clone() }).unwrap();
    eventually("it ends", || sandbox.terminals()[0].status == ProcessStatus::Exited(6));
    let memory = memory_of(sandbox.warden.id());
    assert!(memory < 64 * 1024 * 1024, "{memory}");
    let (mut shown, mut skipped) = (Vec::new(), 0);
    let last = stalled.finish(|event| match event {
        Event::Output(bytes) => shown.extend(bytes),
        Event::Reply(Reply::Log { .. }, _) => skipped += 1,
        _ => {}
    });
    assert!(matches!(last.unwrap(), Reply::LogEnd { status: Some(ProcessStatus::Exited(6)), .. }));
    assert!(skipped > 0 && shown.len() < 8 * 1024 * 1024, "{skipped} {}", shown.len());
    assert!(String::from_utf8_lossy(&shown).ends_with("the end\n"));
}
