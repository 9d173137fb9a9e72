//! Groups find, stop and end processes, and are gone afterwards.

use std::fs;

use ringfence_runtime::Limits;
use ringfence_runtime::cgroup::{Cgroups, SandboxGroup};

use crate::support::{
    directories_named, eventually, id, is_root, require, require_groups, shell, wait,
};

const NO_LIMITS: Limits = Limits { memory: None, cpu_quota: None, cpu_shares: None, pids: None };

#[test]
fn everything_forked_is_inside_and_killed_together() {
    require_groups!();
    let group = SandboxGroup::create(&id("tree"), &NO_LIMITS, None).unwrap();
    let child = shell(&group, "(sleep 1000 & (setsid sleep 1000 &) & wait) & sleep 1000");
    eventually("four processes", || group.pids().len() >= 4);
    assert!(group.pids().contains(&child.pid.as_raw_pid()));
    group.kill_all().unwrap();
    assert_eq!(wait(&child).terminating_signal(), Some(9));
    eventually("all gone", || group.pids().is_empty());
}

#[test]
fn a_frozen_group_stands_still_and_can_be_killed() {
    require_groups!();
    let group = SandboxGroup::create(&id("frozen"), &NO_LIMITS, None).unwrap();
    let child = shell(&group, "while :; do :; done");
    group.freeze().unwrap();
    let pid = child.pid.as_raw_pid();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let before = stat();
    // Its time would be in there; this reads it for longer than a tick.
    (0..5_000).for_each(|_| assert_eq!(before, stat()));
    group.thaw().unwrap();
    eventually("running again", || stat() != before);
    group.freeze().unwrap();
    group.kill_all().unwrap();
    assert_eq!(wait(&child).terminating_signal(), Some(9));
}

#[test]
fn dropping_it_kills_what_is_inside_and_removes_all_directories() {
    require_groups!();
    let group = SandboxGroup::create(&id("drop"), &NO_LIMITS, None).unwrap();
    let command = group.command("c1").unwrap().unwrap();
    let child = shell(&group, "sleep 1000 & exec sleep 1000");
    command.move_in(child.pid.as_raw_pid()).unwrap();
    assert!(!directories_named(&id("drop")).is_empty());
    // The command outlives its sandbox here, as it may when a warden unwinds.
    drop(group);
    assert_eq!(wait(&child).terminating_signal(), Some(9));
    assert!(directories_named(&id("drop")).is_empty());
    assert!(command.is_empty() && command.remove().is_ok());
}

#[test]
fn leftovers_of_a_crash_are_removed_by_id_alone() {
    require_groups!();
    let group = SandboxGroup::create(&id("crash"), &NO_LIMITS, None).unwrap();
    let command = group.command("c1").unwrap().unwrap();
    let child = shell(&group, "sleep 1000 & exec sleep 1000");
    command.move_in(child.pid.as_raw_pid()).unwrap();
    std::mem::forget((group, command));
    let cgroups = Cgroups::of_this_host().unwrap();
    cgroups.remove_leftovers(&id("crash")).unwrap();
    assert_eq!(wait(&child).terminating_signal(), Some(9));
    assert!(directories_named(&id("crash")).is_empty());
    cgroups.remove_leftovers(&id("crash")).unwrap();
    assert!(cgroups.remove_leftovers("../x").is_err());
}

#[test]
fn many_come_and_go_at_once() {
    require_groups!();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..10 {
                    let name = id(&format!("many-{thread}-{round}"));
                    let group = SandboxGroup::create(&name, &NO_LIMITS, None).unwrap();
                    drop(shell(&group, "exit 0"));
                }
            });
        }
    });
}

#[test]
fn names_that_are_no_single_directory_are_refused() {
    require_groups!();
    for name in ["", "..", "a/b", "cgroup.procs"] {
        assert!(SandboxGroup::create(name, &NO_LIMITS, None).is_err(), "{name}");
    }
    let group = SandboxGroup::create(&id("names"), &NO_LIMITS, None).unwrap();
    for name in ["", "..", "a/b", "cgroup.procs"] {
        assert!(group.command(name).is_err(), "{name}");
    }
    let again = SandboxGroup::create(&id("names"), &NO_LIMITS, None);
    assert!(again.is_err(), "the same id twice");
    assert!(!directories_named(&id("names")).is_empty(), "the first is untouched");
}

#[test]
fn where_only_version_1_exists_the_freezer_ends_everything() {
    let cgroups = Cgroups::of_this_host().unwrap().without_unified();
    let freezer = std::path::Path::new("/sys/fs/cgroup/freezer/cgroup.procs").exists();
    require!(freezer && is_root(), "the freezer of cgroup version 1");
    let group = cgroups.create(&id("v1"), &NO_LIMITS, None).unwrap();
    assert!(group.command("c").unwrap().is_none());
    let child = shell(&group, "(sleep 1000 & (setsid sleep 1000 &) & wait) & sleep 1000");
    eventually("four processes", || group.pids().len() >= 4);
    group.freeze().unwrap();
    group.thaw().unwrap();
    group.kill_all().unwrap();
    assert_eq!(wait(&child).terminating_signal(), Some(9));
    drop(group);
    assert!(directories_named(&id("v1")).is_empty());
}
