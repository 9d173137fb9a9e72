//! How a command ends when it cannot do what was asked: one sentence, a hint, an exit code.

use std::fmt::Display;
use std::process::ExitCode;

/// A finding that answers the question with "no".
pub(crate) const NO: u8 = 1;
/// `run` could not start the command, as opposed to any code of the command itself.
pub(crate) const NOT_RUN: u8 = 125;
const BAD_INPUT: u8 = 2;
const BROKEN: u8 = 3;

#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// What was asked for cannot be done as it was asked.
    pub(crate) fn bad_input(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None, code: BAD_INPUT }
    }

    /// Something went wrong while doing it.
    pub(crate) fn broken(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None, code: BROKEN }
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Ends with this code instead of the usual one.
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn report(self) -> ExitCode {
        eprintln!("error: {}", self.message);
        if let Some(hint) = self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}
