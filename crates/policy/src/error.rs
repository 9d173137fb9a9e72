//! Everything this crate can refuse, in one place.
//!
//! ```text
//! PathError            a path that names no place in the workspace
//! PatternError         a malformed pattern: where in its text, and why
//!   RuleError          a rule that cannot be read            (LEVEL:PATTERN@PRIORITY)
//!   CompileError       a rule that cannot be compiled        (names the rule)
//!   PolicyFileError    a file that cannot be read            (names line and column)
//! PresetError          a preset that is unknown, or known already
//! ```

use std::fmt;

use thiserror::Error;

/// Why bytes are not a [`WorkspacePath`](crate::WorkspacePath).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    #[error("a path in the workspace cannot contain `..`")]
    ParentComponent,
    #[error("a path cannot contain a NUL byte (offset {offset})")]
    Nul { offset: usize },
}

impl PathError {
    /// A name that does not change, for test vectors and for other languages.
    pub fn code(&self) -> &'static str {
        match self {
            PathError::ParentComponent => "parent-component",
            PathError::Nul { .. } => "nul",
        }
    }
}

/// A malformed pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason} (column {column})")]
pub struct PatternError {
    /// Byte position in the pattern, counted from 1.
    pub column: usize,
    pub reason: PatternFault,
}

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PatternFault {
    #[error("the pattern is empty")]
    Empty,
    #[error("the pattern is longer than {max} bytes", max = crate::glob::MAX_PATTERN_BYTES)]
    TooLong,
    #[error("a pattern cannot contain a NUL byte")]
    Nul,
    #[error("a pattern cannot contain `..`")]
    ParentComponent,
    #[error("`\\` at the end escapes nothing")]
    TrailingBackslash,
    #[error("`[` has no closing `]`")]
    UnclosedClass,
    #[error("a `[…]` never matches `/`, so it cannot list it")]
    SlashInClass,
    #[error("a `[…]` lists ASCII characters only; write alternatives as `{{é,è}}`")]
    NonAsciiInClass,
    #[error("named classes such as `[:alpha:]` are not supported")]
    NamedClass,
    #[error("a range must go from low to high")]
    ReversedRange,
    #[error("`{{` has no closing `}}`")]
    UnclosedBrace,
    #[error("`}}` has no opening `{{`; write `\\}}` for the character")]
    UnopenedBrace,
    #[error("braces are nested deeper than {max}", max = crate::glob::MAX_BRACE_DEPTH)]
    BracesTooDeep,
    #[error(
        "the braces stand for more than {max} patterns, or for too much text",
        max = crate::glob::MAX_ALTERNATIVES
    )]
    TooManyAlternatives,
}

impl PatternFault {
    /// A name that does not change, for test vectors and for other languages.
    pub fn code(self) -> &'static str {
        match self {
            PatternFault::Empty => "empty",
            PatternFault::TooLong => "too-long",
            PatternFault::Nul => "nul",
            PatternFault::ParentComponent => "parent-component",
            PatternFault::TrailingBackslash => "trailing-backslash",
            PatternFault::UnclosedClass => "unclosed-class",
            PatternFault::SlashInClass => "slash-in-class",
            PatternFault::NonAsciiInClass => "non-ascii-in-class",
            PatternFault::NamedClass => "named-class",
            PatternFault::ReversedRange => "reversed-range",
            PatternFault::UnclosedBrace => "unclosed-brace",
            PatternFault::UnopenedBrace => "unopened-brace",
            PatternFault::BracesTooDeep => "braces-too-deep",
            PatternFault::TooManyAlternatives => "too-many-alternatives",
        }
    }
}

/// Why text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    #[error("`{}` is not a rule; write LEVEL:PATTERN or LEVEL:PATTERN@PRIORITY", Excerpt(text))]
    NoLevel { text: String },
    #[error("`{}` is not a level; use none, view, read or write", Excerpt(text))]
    UnknownLevel { text: String },
    #[error("`{}` is not a pattern type; use glob, directory or file", Excerpt(text))]
    UnknownType { text: String },
    #[error(
        "priority `{}` is not a whole number in range (the character itself is written `\\@`)",
        Excerpt(text)
    )]
    Priority { text: String },
    #[error("pattern `{}`: {source}", Excerpt(pattern))]
    Pattern { pattern: String, source: PatternError },
}

impl RuleError {
    /// A name that does not change, for test vectors and for other languages.
    pub fn code(&self) -> &'static str {
        match self {
            RuleError::NoLevel { .. } => "no-level",
            RuleError::UnknownLevel { .. } => "unknown-level",
            RuleError::UnknownType { .. } => "unknown-type",
            RuleError::Priority { .. } => "priority",
            RuleError::Pattern { source, .. } => source.reason.code(),
        }
    }
}

/// Why rules are not a policy. Nothing is compiled then: a deny rule that were left out would fail
/// open.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    #[error("rule {index}: pattern `{}`: {reason} (column {column})", Excerpt(pattern))]
    Pattern {
        /// Position in the list of rules, counted from 0.
        index: usize,
        pattern: String,
        /// Byte position in the pattern, counted from 1.
        column: usize,
        reason: PatternFault,
    },
    #[error(
        "rule {index}: pattern `{}`: the rules up to here are too large together",
        Excerpt(pattern)
    )]
    TooLarge { index: usize, pattern: String },
    #[error("the matcher refuses the rules: {reason}")]
    Matcher { reason: String },
}

impl CompileError {
    /// The rule to look at, counted from 0, where one rule is to blame.
    pub fn index(&self) -> Option<usize> {
        match self {
            CompileError::Pattern { index, .. } | CompileError::TooLarge { index, .. } => {
                Some(*index)
            }
            CompileError::Matcher { .. } => None,
        }
    }
}

/// Why a preset cannot be used or added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PresetError {
    #[error("there is no preset `{}`", Excerpt(name))]
    Unknown { name: String },
    #[error("a preset `{}` exists already", Excerpt(name))]
    Exists { name: String },
    #[error("preset `{name}`: {source}")]
    Rules { name: String, source: CompileError },
    #[error("preset `{name}` leaves no priority above its rules for an override")]
    Priority { name: String },
}

/// Why text is not a policy file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct PolicyFileError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1. For a malformed pattern, where the pattern starts.
    pub column: usize,
    pub reason: PolicyFileFault,
}

/// What is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyFileFault {
    #[error("{reason}")]
    Syntax { reason: String },
    #[error(transparent)]
    Preset(#[from] PresetError),
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// What a message shows of somebody's text: one line, not longer than a line.
struct Excerpt<'a>(&'a str);

const EXCERPT_CHARS: usize = 100;

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars().take(EXCERPT_CHARS) {
            match char.is_control() {
                true => write!(f, "{}", char.escape_default())?,
                false => write!(f, "{char}")?,
            }
        }
        let whole = self.0.chars().nth(EXCERPT_CHARS).is_none();
        f.write_str(if whole { "" } else { "…" })
    }
}
