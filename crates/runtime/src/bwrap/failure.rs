//! What bwrap's complaints mean, and what a person can do about them.

use std::os::fd::OwnedFd;

use crate::RuntimeError;

pub(crate) const INSTALL: &str =
    "install bubblewrap 0.8 or newer, for example with `apt install bubblewrap`";

/// More than this of a complaint helps nobody.
const LONGEST: usize = 4096;

/// What was written to a file in memory, from its beginning.
pub(crate) fn complaint(stderr: &OwnedFd) -> String {
    let mut text = vec![0; LONGEST];
    let length = rustix::io::pread(stderr, &mut text, 0).unwrap_or(0);
    text.truncate(length);
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// A part of the complaint, what it means, what to do. The first that fits is taken.
const MEANINGS: [(&str, &str, &str); 9] = [
    ("Unknown option", "the installed bubblewrap is too old", INSTALL),
    (
        "No permissions to create new namespace",
        "this kernel does not let users make user namespaces",
        "allow them with `sysctl -w user.max_user_namespaces=10000` and, on Debian, `sysctl -w kernel.unprivileged_userns_clone=1`",
    ),
    ("loopback: Failed RTM_NEWADDR", APPARMOR, APPARMOR_HINT),
    ("setting up uid map: Permission denied", APPARMOR, APPARMOR_HINT),
    ("setting up uid map", "the user namespace cannot be given its user", NESTED_HINT),
    (
        "Creating new namespace failed: No space left on device",
        "the limit of user namespaces is reached",
        "raise it with `sysctl -w user.max_user_namespaces=10000`",
    ),
    ("Creating new namespace failed", "namespaces cannot be made here", NESTED_HINT),
    ("Can't mount proc", "a new /proc cannot be mounted here", NESTED_HINT),
    (
        "cannot open /proc/sys/user/max_user_namespaces",
        "nested user namespaces cannot be switched off here",
        NESTED_HINT,
    ),
];

const APPARMOR: &str = "AppArmor restricts user namespaces";
const APPARMOR_HINT: &str = "allow bubblewrap with an AppArmor profile that has `userns,`, or switch the restriction off with `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";
const NESTED_HINT: &str = "inside a container, run it with `--privileged`, or with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`";

/// Why a bwrap that said this did not start init.
pub(crate) fn failure(complaint: &str) -> RuntimeError {
    let known = MEANINGS.iter().find(|(part, ..)| complaint.contains(part));
    let said = if complaint.is_empty() { "it said nothing" } else { complaint };
    match known {
        Some((_, meaning, hint)) => RuntimeError::Unsupported {
            message: format!("{meaning} ({said})"),
            hint: (*hint).to_owned(),
        },
        None => RuntimeError::Unsupported {
            message: format!("bubblewrap could not start the sandbox: {said}"),
            hint: "`ringfence doctor` checks what this host can do".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_complaints_say_what_to_do() {
        for (said, meaning, hint) in [
            ("bwrap: Unknown option --disable-userns", "too old", "apt install"),
            (
                "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
                "does not let users",
                "unprivileged_userns_clone",
            ),
            ("bwrap: setting up uid map: Permission denied", "AppArmor", "userns"),
            ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor", "userns"),
            (
                "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
                "/proc",
                "systempaths",
            ),
            (
                "bwrap: Creating new namespace failed: Operation not permitted",
                "cannot be made",
                "--privileged",
            ),
        ] {
            let error = failure(said);
            assert!(error.to_string().contains(meaning), "{error}");
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error:?}");
        }
    }

    #[test]
    fn an_unknown_complaint_is_passed_on() {
        assert!(failure("bwrap: something new").to_string().ends_with("bwrap: something new"));
        assert!(failure("").to_string().contains("said nothing"));
    }
}
