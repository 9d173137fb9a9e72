//! What the tests share: sandboxes, questions to them and to the host, and ways to wait.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{Code, Reply};

mod host;
mod warden;

pub(crate) use host::{any_alive, is_alive, memory_of, processes_with, unique_sleep};
pub(crate) use warden::{Maker, Run, Sandbox};

/// Longer than anything takes on a busy machine: it finds what hangs, and nothing else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Skips a test where the kernel or the host lacks something; fails where that must not happen.
macro_rules! require_sandbox {
    () => {
        if let Some(missing) = crate::support::missing() {
            assert!(
                std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(),
                "required and missing: {missing}"
            );
            eprintln!("skipped: {missing}");
            return;
        }
    };
}
pub(crate) use require_sandbox;

/// A sandbox that runs, as usual or as a maker says; skips like [`require_sandbox`].
macro_rules! sandbox {
    () => {
        crate::support::sandbox!(crate::support::Maker::new())
    };
    ($maker:expr) => {{
        crate::support::require_sandbox!();
        $maker.start()
    }};
}
pub(crate) use sandbox;

/// What a sandbox needs and this host does not have.
pub(crate) fn missing() -> Option<String> {
    if let Some(advice) = ringfence_sys::probe::fuse_device().advice() {
        return Some(format!("FUSE ({advice})"));
    }
    let found = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "bubblewrap".into())
}

/// Waits for the first bytes that a command prints, and returns them.
pub(crate) fn first_output(call: &Ongoing) -> Vec<u8> {
    loop {
        match call.next().unwrap() {
            Event::Output(bytes) => return bytes,
            Event::Error(_) | Event::Reply(Reply::Started { .. }, _) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A text for a shell to wait until [`Sandbox::open_gate`].
pub(crate) fn gate(name: &str) -> String {
    format!("until [ -e /tmp/{name} ]; do sleep 0.01; done")
}

/// Follows a call to its outcome.
pub(crate) fn collect(call: &Ongoing) -> Result<Run, ClientError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reply = call.finish(|event| match event {
        Event::Output(bytes) => stdout.extend(bytes),
        Event::Error(bytes) => stderr.extend(bytes),
        Event::Reply(..) => {}
    })?;
    match reply {
        Reply::Done(outcome) => Ok(Run { stdout, stderr, outcome: *outcome }),
        other => panic!("{other:?}"),
    }
}

/// The code of an error that the warden reported.
pub(crate) fn code_of<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Code {
    match result {
        Err(ClientError::Refused(failure)) => failure.code,
        other => panic!("{other:?}"),
    }
}

/// Waits for something that happens elsewhere.
pub(crate) fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happens() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
