//! `ringfence completions`: what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::failure::Failure;
use crate::output;

/// Print what your shell needs to complete commands and options
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence completions bash > /etc/bash_completion.d/ringfence
  ringfence completions zsh > \"${fpath[1]}/_ringfence\"
  ringfence completions fish > ~/.config/fish/completions/ringfence.fish")]
pub(crate) struct CompletionsArgs {
    shell: Known,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> Result<ExitCode, Failure> {
    let shell = match args.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    generate(shell, &mut program, "ringfence", &mut text);
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
