//! Ignore files with git's meaning, in bytes: git matches bytes, and a name need not be text.
//!
//! To be read in this order: [`line`] takes a line apart, [`glob`] (with [`bracket`]) understands its
//! pattern, [`gapped`] matches it, and [`rules`] puts the lines of a file together so that most names
//! are answered without a look at most lines.
//!
//! The text comes from files that nobody vouches for. Whatever it says, asking about a path takes at
//! most as many steps as the path has bytes, times the bytes of the file.

mod bracket;
mod gapped;
mod glob;
mod line;
mod rules;
#[cfg(test)]
mod tests;

pub(super) use rules::{Entry, Rules};

/// Why a pattern matches nothing, whatever it is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NeverMatches {
    #[error("a bracket is not closed")]
    OpenBracket,
    #[error("a bracket stands for no character")]
    EmptyBracket,
    #[error("it has a class of characters that does not exist")]
    UnknownClass,
    #[error("it ends with a backslash")]
    LastBackslash,
}

/// Whether the lines of `text` can match anything. In a file git passes over those that cannot.
pub(super) fn check(text: &[u8]) -> Result<(), NeverMatches> {
    line::lines(text).try_for_each(|line| glob::compile(&line).map(drop))
}
