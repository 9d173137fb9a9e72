//! What the tests share: a server, sandboxes on it, and ways to ask and to wait.

use std::process::{Command, Stdio};
use std::time::Duration;

use ringfence_wire::v1;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

#[path = "../../sandbox/support/host.rs"]
#[allow(dead_code)]
mod host;
pub(crate) mod owned;
mod sandbox;
mod server;

pub(crate) use host::{any_alive, is_alive, processes_with, unique_sleep};
pub(crate) use owned::Owned;
pub(crate) use sandbox::Sandbox;
pub(crate) use server::{Server, connect};

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

/// What a sandbox needs and this host does not have.
pub(crate) fn missing() -> Option<String> {
    if let Some(advice) = ringfence_sys::probe::fuse_device().advice() {
        return Some(format!("FUSE ({advice})"));
    }
    let found = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "bubblewrap".into())
}

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("not within a minute")
}

/// Waits for something that happens elsewhere.
pub(crate) async fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let look = async {
        while !happens() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, look).await.is_ok(), "not within a minute: {what}");
}

/// A text for a shell to wait until [`Sandbox::open_gate`].
pub(crate) fn gate(name: &str) -> String {
    format!("until [ -e /tmp/{name} ]; do sleep 0.01; done")
}

/// The next message of a stream that goes on.
pub(crate) async fn next<T>(stream: &mut Streaming<T>) -> T {
    within(stream.message()).await.unwrap().expect("the stream goes on")
}

/// All that is left of a stream that ends well.
pub(crate) async fn rest<T>(stream: &mut Streaming<T>) -> Vec<T> {
    let mut all = Vec::new();
    while let Some(message) = within(stream.message()).await.unwrap() {
        all.push(message);
    }
    all
}

/// The gRPC code of a refusal, its stable code, and a detail of it.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(
    result: Result<T, Status>,
    code: Code,
    reason: &str,
) -> std::collections::HashMap<String, String> {
    let status = result.expect_err("it should be refused");
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("{status:?}"));
    assert_eq!((status.code(), info.reason.as_str()), (code, reason), "{status:?}");
    assert!(!status.message().contains("/tmp/"), "a path of the host: {status:?}");
    info.metadata
}

pub(crate) fn seconds(seconds: i64) -> Option<pbjson_types::Duration> {
    Some(pbjson_types::Duration { seconds, nanos: 0 })
}

/// What the two streams of a log say, after checking that no byte is missing between its chunks.
#[track_caller]
pub(crate) fn both(chunks: &[v1::LogChunk]) -> (String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut next = chunks.first().map_or(0, |chunk| chunk.offset);
    for chunk in chunks {
        assert_eq!(chunk.offset, next, "chunks follow one another");
        next += chunk.data.len() as i64;
        match chunk.r#type() {
            v1::exec_output::OutputType::Stdout => out.extend_from_slice(&chunk.data),
            v1::exec_output::OutputType::Stderr => err.extend_from_slice(&chunk.data),
            _ => assert!(chunk.ended.is_some() && chunk.data.is_empty()),
        }
    }
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}
