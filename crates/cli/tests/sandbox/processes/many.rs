//! Many at once, and many one after the other.

use ringfence_link::client::ClientError;
use ringfence_link::warden::{Code, ProcessInfo, ProcessStatus};

use super::{argv, named, shell};
use crate::support::{code_of, eventually, sandbox};

fn is_not_found(result: &Result<ProcessInfo, ClientError>) -> bool {
    matches!(result, Err(ClientError::Refused(failure)) if failure.code == Code::ProcessNotFound)
}

#[test]
fn twenty_at_once_do_not_mix() {
    let sandbox = sandbox!();
    std::thread::scope(|scope| {
        for n in 0..20 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let text = format!(
                    "for i in $(seq 1 500); do echo {n}-$i; echo e{n}-$i >&2; done; exit {n}"
                );
                let process = sandbox.start(&text);
                let log = sandbox.log(&process.id);
                let lines = |mark: &str| -> String {
                    (1..=500).map(|i| format!("{mark}{n}-{i}\n")).collect()
                };
                assert_eq!(log.out(), lines(""));
                assert_eq!(log.err(), lines("e"));
                assert_eq!(log.status, Some(ProcessStatus::Exited(n)));
            });
        }
    });
    assert_eq!(sandbox.processes().len(), 20);
}

#[test]
fn the_list_is_oldest_first_and_remembers_the_last_256_that_ended() {
    let sandbox = sandbox!();
    let first = sandbox.start("sleep 1000");
    let ids: Vec<String> = (0..260)
        .map(|n| {
            let id = sandbox.try_start(named(&format!("p{n}"), "true")).unwrap().id;
            sandbox.ended(&id);
            id
        })
        .collect();
    eventually("the oldest are forgotten", || is_not_found(&sandbox.process(&ids[3])));
    let listed: Vec<String> = sandbox.processes().into_iter().map(|info| info.id).collect();
    assert_eq!(listed[0], first.id, "one that runs is not forgotten");
    assert_eq!(listed[1..], ids[4..]);
}

#[test]
fn more_than_256_at_once_are_refused() {
    let sandbox = sandbox!();
    for _ in 0..256 {
        let process = sandbox.try_start(argv(&["sleep", "1000"])).unwrap();
        assert_eq!(process.status, ProcessStatus::Running);
    }
    assert_eq!(code_of(sandbox.try_start(shell("true"))), Code::LimitReached);
    assert_eq!(sandbox.ok("echo still"), "still\n");
    assert_eq!(sandbox.kill_all(), 256);
    let live = |info: &ProcessInfo| info.status == ProcessStatus::Running;
    eventually("all end", || !sandbox.processes().iter().any(live));
    sandbox.start("true");
}
