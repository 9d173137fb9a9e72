//! A problem of the engine as a gRPC status and as an answer of REST.

use std::collections::HashMap;

use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
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
        | Problems::FileNotFound
        | Problems::RouteNotFound
        | Problems::TokenNotFound => (Code::NotFound, 404),
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

/// An answer to a request that does not get as far as a service, in the language it was asked in.
pub(crate) fn refuse(request: &Request, problem: Problem) -> Response {
    match is_grpc(request) {
        true => status_of(problem).into_http(),
        false => rest_refusal(&status_of(problem)),
    }
}

pub(crate) fn is_grpc(request: &Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/grpc"))
}

/// What REST says instead of a status: `{code, message, details}`.
pub(crate) fn rest_refusal(status: &Status) -> Response {
    let (http, body) = rest_error(status);
    (http, Json(body)).into_response()
}

pub(crate) fn rest_error(status: &Status) -> (StatusCode, serde_json::Value) {
    let info = status.get_details_error_info();
    let (name, details) = match info {
        Some(info) => (info.reason, info.metadata),
        // Not one of ours: a message that could not be taken apart, say.
        None => (plain_name(status.code()).to_owned(), HashMap::new()),
    };
    let known = Problems::ALL.into_iter().find(|code| code.name() == name);
    let http = known.map_or(500, |code| codes_of(code).1);
    let body = serde_json::json!({
        "code": name,
        "message": status.message(),
        "details": details,
    });
    (StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body)
}

fn plain_name(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument | Code::OutOfRange => "INVALID_ARGUMENT",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::ResourceExhausted => "RESOURCE_LIMIT_EXCEEDED",
        Code::PermissionDenied => "PERMISSION_DENIED",
        _ => "INTERNAL",
    }
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

    /// People look them up there, so what it says of a code must be what is sent.
    #[test]
    fn the_documentation_has_a_row_for_every_code_and_for_no_other() {
        let page = include_str!("../../../docs/api.md");
        let cells = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
        let rows: Vec<_> = page.lines().map(cells).filter(|row| is_row_of_a_code(row)).collect();
        assert_eq!(rows.len(), Problems::ALL.len());
        for code in Problems::ALL {
            let name = format!("`{}`", code.name());
            let row = rows.iter().find(|row| row[1] == name);
            let row = row.unwrap_or_else(|| panic!("{name} is not in docs/api.md"));
            let (grpc, http) = codes_of(code);
            assert_eq!(row[2].replace('_', ""), format!("{grpc:?}").to_uppercase(), "{name}");
            assert_eq!(row[3], http.to_string(), "{name}");
        }
    }

    /// A row of the table of errors: a code, the one of gRPC, a status of HTTP, what it means.
    fn is_row_of_a_code(cells: &[&str]) -> bool {
        cells.len() == 6 && cells[1].starts_with('`') && cells[3].parse::<u16>().is_ok()
    }
}
