//! What the tests share: a server of their own, clients of it, and short ways to ask.

mod ask;
mod server;

pub(crate) use ask::{rule, said};
pub(crate) use server::Server;

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
    let mut bwrap = std::process::Command::new("bwrap");
    let found = bwrap.arg("--version").stdout(std::process::Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "bubblewrap".into())
}
