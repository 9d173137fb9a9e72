//! What a server refuses, for the person who asked: a sentence, what to do, an exit code.

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::failure::{Failure, NO};

/// The refusal in the server's words, with what can be done about it.
pub(crate) fn told(status: Status) -> Failure {
    let details = status.get_error_details();
    let info = details.error_info();
    let reason = info.map_or("", |info| info.reason.as_str());
    let given = info.and_then(|info| info.metadata.get("hint").cloned());
    let failure = sort(&status, reason);
    match given.or_else(|| usual_hint(reason, status.code()).map(str::to_owned)) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The answer "no", something to do differently, or something that broke.
fn sort(status: &Status, reason: &str) -> Failure {
    let message = match status.message() {
        "" => status.code().description(),
        message => message,
    };
    match (status.code(), reason) {
        (_, "APPLY_CONFLICT" | "PROCESS_EXITED" | "WAIT_TIMEOUT") => {
            Failure::bad_input(message).with_code(NO)
        }
        (Code::Unimplemented, _) => Failure::bad_input("the server does not know this call"),
        (Code::Internal | Code::Unknown | Code::DataLoss | Code::Cancelled, _) => {
            Failure::broken(message)
        }
        (Code::Unavailable, _) => {
            Failure::broken(format!("the connection to the server was lost: {message}"))
        }
        _ => Failure::bad_input(message),
    }
}

fn usual_hint(reason: &str, code: Code) -> Option<&'static str> {
    Some(match reason {
        "CODEBASE_NOT_FOUND" => "`ringfence codebase ls` lists yours",
        "SANDBOX_NOT_FOUND" => "`ringfence sandbox ls` lists yours",
        "SESSION_NOT_FOUND" => "`ringfence session ls SANDBOX` lists those of a sandbox",
        "PROCESS_NOT_FOUND" => "`ringfence process ls SANDBOX` lists those of a sandbox",
        "SNAPSHOT_NOT_FOUND" => "`ringfence sandbox snapshot ls` lists yours",
        "SANDBOX_NOT_RUNNING" => "`ringfence sandbox start ID` starts it",
        "SESSION_CLOSED" => "--restart starts its shell again where it was",
        "CODEBASE_IN_USE" => "remove its sandboxes first: `ringfence sandbox ls --codebase ID`",
        "APPLY_CONFLICT" => "look with `ringfence sandbox diff ID`; --force writes all the same",
        "UNAUTHENTICATED" => "give a token with --token or RINGFENCE_TOKEN",
        "INTERNAL" => "the log of the server says more",
        _ if code == Code::Unimplemented => "it may be older than this program",
        _ if code == Code::Unauthenticated => "give a token with --token or RINGFENCE_TOKEN",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn shown(code: Code, reason: &str, details: &[(&str, &str)]) -> String {
        let metadata: HashMap<_, _> =
            details.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let info = ErrorDetails::with_error_info(reason, "ringfence", metadata);
        format!("{:?}", told(Status::with_error_details(code, "sentence", info)))
    }

    #[test]
    fn the_hint_of_the_server_comes_before_the_usual_one() {
        let text = shown(Code::NotFound, "SANDBOX_NOT_FOUND", &[("hint", "look there")]);
        assert!(text.contains("look there") && !text.contains("sandbox ls"), "{text}");
        let text = shown(Code::NotFound, "SANDBOX_NOT_FOUND", &[]);
        assert!(text.contains("sandbox ls") && text.contains("code: 2"), "{text}");
    }

    #[test]
    fn no_and_broken_have_codes_of_their_own() {
        assert!(shown(Code::FailedPrecondition, "APPLY_CONFLICT", &[]).contains("code: 1"));
        assert!(shown(Code::Internal, "INTERNAL", &[]).contains("code: 3"));
    }
}
