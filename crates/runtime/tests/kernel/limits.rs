//! Limits hold, and are counted.

use ringfence_runtime::cgroup::{Cgroups, SandboxGroup};
use ringfence_runtime::{Limits, RuntimeError};

use crate::support::{directories_named, eventually, id, require_limit, shell, wait};

#[test]
fn a_memory_hog_is_killed_and_counted() {
    require_limit!(Memory);
    let limits = Limits { memory: Some(32 << 20), ..Limits::default() };
    let group = SandboxGroup::create(&id("hog"), &limits, None).unwrap();
    assert_eq!(group.oom_kills(), 0);
    // What has no line ends is kept in memory as a whole.
    let child = shell(&group, "exec tail /dev/zero");
    assert_eq!(wait(&child).terminating_signal(), Some(9));
    assert_eq!(group.oom_kills(), 1);
    let peak = group.memory_peak().unwrap();
    assert!((16 << 20..=32 << 20).contains(&peak), "{peak}");
}

#[test]
fn a_fork_storm_is_refused_and_counted() {
    require_limit!(Pids);
    let limits = Limits { pids: Some(10), ..Limits::default() };
    let group = SandboxGroup::create(&id("storm"), &limits, None).unwrap();
    let child = shell(&group, "while sleep 1000 & do :; done");
    assert_ne!(wait(&child).exit_status(), Some(0));
    assert!(group.pids_refused() > 0);
    // Ten of its own, and two that would be ours.
    assert!(group.pids().len() <= 12, "{:?}", group.pids());
}

#[test]
fn a_busy_loop_is_throttled_and_counted() {
    require_limit!(Cpu);
    let limits = Limits { cpu_quota: Some(5_000), cpu_shares: Some(512), ..Limits::default() };
    let group = SandboxGroup::create(&id("busy"), &limits, None).unwrap();
    let child = shell(&group, "while :; do :; done");
    eventually("throttled", || group.throttled() > 2);
    group.kill_all().unwrap();
    assert_eq!(wait(&child).terminating_signal(), Some(9));
}

#[test]
fn a_limit_the_kernel_refuses_is_an_error_that_names_it_and_leaves_nothing() {
    require_limit!(Cpu);
    let limits = Limits { cpu_quota: Some(1), ..Limits::default() };
    let error = SandboxGroup::create(&id("refused"), &limits, None).unwrap_err();
    assert!(matches!(error, RuntimeError::Unenforceable { limit: "cpu time", .. }), "{error}");
    assert!(error.hint().is_some());
    assert!(directories_named(&id("refused")).is_empty());
}

#[test]
fn a_parent_of_another_name_is_used_and_removed() {
    require_limit!(Pids);
    let parent = id("parent");
    let cgroups = Cgroups::of_this_host().unwrap().below(&parent);
    let group = cgroups.create("child", &Limits::default(), None).unwrap();
    assert!(!directories_named(&parent).is_empty());
    drop(group);
    assert!(directories_named(&parent).is_empty());
}
