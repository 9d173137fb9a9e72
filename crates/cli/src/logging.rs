//! What a server says while it runs, on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON object for each event
    Json,
}

pub(crate) fn start(level: Option<&str>, format: LogFormat) -> Result<(), Failure> {
    let level = level.unwrap_or("info");
    let filter = EnvFilter::try_new(level)
        .map_err(|e| Failure::bad_input(format!("{level:?} is not a level of logging: {e}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Only one can be installed, and this is the only place that installs one.
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}
