//! A problem of the engine as a gRPC status and as an answer of REST.

use std::collections::HashMap;

use ringfence_engine::problem::{Code as Problems, Problem};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Who says so, in the details of a status.
const DOMAIN: &str = "ringfence";

/// The gRPC code and the HTTP status of a problem, as `api/errors.json` has them.
pub(crate) fn codes_of(code: Problems) -> (Code, u16) {
    match code {
        Problems::InvalidArgument => (Code::InvalidArgument, 400),
        Problems::Unauthenticated => (Code::Unauthenticated, 401),
        Problems::CodebaseNotFound
        | Problems::SandboxNotFound
        | Problems::SessionNotFound
        | Problems::ProcessNotFound
        | Problems::TerminalNotFound
        | Problems::SnapshotNotFound
        | Problems::FileNotFound => (Code::NotFound, 404),
        Problems::PermissionDenied => (Code::PermissionDenied, 403),
        Problems::SessionClosed => (Code::FailedPrecondition, 410),
        Problems::SandboxNotRunning
        | Problems::SandboxRunning
        | Problems::CodebaseInUse
        | Problems::SnapshotInUse
        | Problems::ApplyConflict
        | Problems::ProcessExited
        | Problems::Unsupported => (Code::FailedPrecondition, 409),
        Problems::SessionAlreadyExists
        | Problems::ProcessAlreadyExists
        | Problems::TerminalAlreadyExists
        | Problems::FileAlreadyExists => (Code::AlreadyExists, 409),
        Problems::CommandTimeout | Problems::WaitTimeout => (Code::DeadlineExceeded, 408),
        Problems::ResourceLimitExceeded => (Code::ResourceExhausted, 429),
        Problems::Internal => (Code::Internal, 500),
    }
}

/// With the stable code and the details, for programs.
pub(crate) fn status_of(problem: Problem) -> Status {
    let details: HashMap<String, String> = problem.details.into_iter().collect();
    let info = ErrorDetails::with_error_info(problem.code.name(), DOMAIN, details);
    Status::with_error_details(codes_of(problem.code).0, problem.message, info)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registry is what other languages are made from.
    #[test]
    fn every_code_is_in_the_registry_as_it_is_sent() {
        let registry = include_str!("../../../api/errors.json");
        let entries: Vec<serde_json::Value> = serde_json::from_str(registry).unwrap();
        assert_eq!(entries.len(), Problems::ALL.len());
        for code in Problems::ALL {
            let entry = entries.iter().find(|entry| entry["code"] == code.name());
            let entry = entry.unwrap_or_else(|| panic!("{} is not in the registry", code.name()));
            let (grpc, http) = codes_of(code);
            assert_eq!(entry["http"], http, "{}", code.name());
            let name = format!("{grpc:?}").to_uppercase();
            let listed = entry["grpc"].as_str().unwrap().replace('_', "");
            assert_eq!(listed, name, "{}", code.name());
        }
    }
}
