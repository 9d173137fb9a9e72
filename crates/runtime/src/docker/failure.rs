//! What an engine's complaints mean, and what a person can do about them.

use std::error::Error as _;
use std::io::ErrorKind;

use bollard::errors::Error;

use crate::RuntimeError;

/// Nobody answers at the address.
pub(super) fn no_engine(address: &str, error: &Error) -> RuntimeError {
    let (why, hint) = match cause(error) {
        Some(ErrorKind::PermissionDenied) => (
            "this user may not use its socket".to_owned(),
            "run as root, or as a member of the group that owns the socket",
        ),
        Some(ErrorKind::NotFound) => ("there is no such socket".to_owned(), START),
        Some(ErrorKind::ConnectionRefused) => ("nobody listens there".to_owned(), START),
        _ => (said(error), START),
    };
    RuntimeError::Unsupported {
        message: format!("no container engine answers at {address}: {why}"),
        hint: hint.to_owned(),
    }
}

const START: &str = "start one (`systemctl start docker`), or name it in DOCKER_HOST";

/// The image is not here and cannot be had.
pub(super) fn not_pulled(image: &str, error: &Error) -> RuntimeError {
    RuntimeError::Unsupported {
        message: format!(
            "there is no image {image} here, and it cannot be pulled: {}",
            said(error)
        ),
        hint: format!("check the name, or bring it here with `docker pull {image}`"),
    }
}

/// The engine has refused to do something.
pub(super) fn failed(step: impl std::fmt::Display, error: &Error) -> RuntimeError {
    match error {
        Error::DockerResponseServerError { .. } => RuntimeError::Unsupported {
            message: format!("the container engine could not {step}: {}", said(error)),
            hint: "`ringfence doctor` says whether the engine answers".to_owned(),
        },
        _ => RuntimeError::Unsupported {
            message: format!("the container engine does not answer: {}", said(error)),
            hint: START.to_owned(),
        },
    }
}

/// In the engine's own words, in one line.
fn said(error: &Error) -> String {
    let text = match error {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
        other => deepest(other),
    };
    in_one_line(&text)
}

/// Registries and images have a say in what an engine says, and it ends on somebody's terminal.
pub(super) fn in_one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn deepest(error: &Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// What the system said, below all that was wrapped around it.
fn cause(error: &Error) -> Option<ErrorKind> {
    // One that cannot be looked at is not found either.
    if let Error::SocketNotFoundError(address) = error {
        let path = address.trim_start_matches("unix://");
        return Some(std::fs::metadata(path).err().map_or(ErrorKind::NotFound, |e| e.kind()));
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.raw_os_error().is_some()
        {
            return Some(io.kind());
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_passed_on() {
        assert_eq!(in_one_line("denied:\r\n \x1b[2Jgone\u{9b}31m\0"), "denied: [2Jgone 31m");
    }
}
