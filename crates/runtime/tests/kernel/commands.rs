//! The group of one command beside others of the same sandbox.

use std::time::Duration;

use ringfence_runtime::Limits;
use ringfence_runtime::cgroup::SandboxGroup;

use crate::support::{eventually, id, require_groups, shell, wait};

fn pair(name: &str) -> SandboxGroup {
    SandboxGroup::create(&id(name), &Limits::default(), None).unwrap()
}

#[test]
fn killing_one_command_leaves_the_other() {
    require_groups!();
    let group = pair("one");
    let (a, b) = (group.command("a").unwrap().unwrap(), group.command("b").unwrap().unwrap());
    let (first, second) = (shell(&group, "exec sleep 1000"), shell(&group, "exec sleep 1000"));
    a.move_in(first.pid.as_raw_pid()).unwrap();
    b.move_in(second.pid.as_raw_pid()).unwrap();
    a.kill().unwrap();
    assert_eq!(wait(&first).terminating_signal(), Some(9));
    eventually("empty", || a.is_empty());
    a.remove().unwrap();
    assert_eq!(b.pids(), [second.pid.as_raw_pid()]);
    b.kill().unwrap();
    wait(&second);
}

#[test]
fn a_signal_reaches_every_member_except_those_named() {
    require_groups!();
    let group = pair("signal");
    let command = group.command("c").unwrap().unwrap();
    let children: Vec<_> = (0..3).map(|_| shell(&group, "exec sleep 1000")).collect();
    let pids: Vec<i32> = children.iter().map(|child| child.pid.as_raw_pid()).collect();
    pids.iter().for_each(|pid| command.move_in(*pid).unwrap());
    command.signal(15, &pids[..1]).unwrap();
    assert_eq!(wait(&children[1]).terminating_signal(), Some(15));
    assert_eq!(wait(&children[2]).terminating_signal(), Some(15));
    assert_eq!(command.pids(), &pids[..1]);
    assert!(command.signal(0, &[]).is_err() && command.signal(999, &[]).is_err());
    command.kill().unwrap();
    assert_eq!(wait(&children[0]).terminating_signal(), Some(9));
}

#[test]
fn time_is_counted_for_members_that_have_ended() {
    require_groups!();
    let group = pair("time");
    let command = group.command("c").unwrap().unwrap();
    let script = "read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let child = shell(&group, &script.replace("read go;", "sleep 0.2;"));
    command.move_in(child.pid.as_raw_pid()).unwrap();
    assert_eq!(wait(&child).exit_status(), Some(0));
    assert!(command.cpu_time().unwrap() > Duration::from_millis(1));
    eventually("empty", || command.is_empty());
    command.remove().unwrap();
    assert!(command.cpu_time().is_none());
}
