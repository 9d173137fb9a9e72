//! Patterns: what their text means, and how specific they are.
//!
//! `parse.rs` turns text into tokens and braces, `expand.rs` writes the braces out and normalises
//! what comes of it, `regex.rs` translates the result for the matcher. The meaning of a glob is its
//! list of alternatives; everything else follows from that.

mod expand;
mod parse;
mod regex;

use crate::error::{PatternError, PatternFault};
use crate::rule::{PatternType, Rule};

/// Longer patterns are refused. Linux refuses longer paths, so nothing is lost.
pub(crate) const MAX_PATTERN_BYTES: usize = 4096;
/// `{a,b}{c,d}` stands for four patterns; a rule may stand for this many.
pub(crate) const MAX_ALTERNATIVES: usize = 1024;
/// All alternatives of a rule together may have this many tokens.
pub(crate) const MAX_TOKENS: usize = 1 << 16;
/// Braces within braces. Deeper is a mistake or an attack on the parser's stack.
pub(crate) const MAX_BRACE_DEPTH: usize = 16;

/// One thing a pattern asks of a path, in normalised order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Byte(u8),
    Slash,
    /// `?`
    AnyChar,
    /// `[…]`, `[!…]`
    Class(Class),
    /// `*`
    Star,
    /// `**` inside a component: any bytes, `/` included.
    Anything,
    /// `**` as a whole component: zero or more components, the `/` before each included.
    Components,
}

/// ASCII ranges, ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) negated: bool,
    pub(crate) ranges: Vec<(u8, u8)>,
}

/// A pattern that was understood: it matches what one of its alternatives matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    alternatives: Vec<Vec<Token>>,
}

/// The third key of the order among rules; greater wins. Derived order is the rule: a pattern
/// without wildcards beats one with, then more literal bytes win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Specificity {
    exact: bool,
    literal_bytes: usize,
}

impl Glob {
    /// Reads a rule's pattern according to its type.
    pub(crate) fn parse(rule: &Rule) -> Result<Self, PatternError> {
        check_text(&rule.pattern)?;
        let alternatives = match rule.pattern_type {
            PatternType::Glob => expand::alternatives(&parse::parse(&rule.pattern)?)?,
            PatternType::File => vec![expand::literal(&rule.pattern)?],
            PatternType::Directory => {
                let mut tokens = expand::literal(&rule.pattern)?;
                tokens.push(Token::Components);
                vec![tokens]
            }
        };
        Ok(Glob { alternatives })
    }

    /// Separators are not counted, so that `/*` and `**/*` tie and the later one wins. Where braces
    /// give a choice the poorest alternative counts: adding one must not make a rule stronger.
    pub(crate) fn specificity(&self) -> Specificity {
        let literal =
            |tokens: &Vec<Token>| tokens.iter().filter(|t| matches!(t, Token::Byte(_))).count();
        Specificity {
            exact: self.is_exact(),
            literal_bytes: self.alternatives.iter().map(literal).min().unwrap_or(0),
        }
    }

    /// How much automaton this pattern may need, roughly in states.
    pub(crate) fn weight(&self) -> usize {
        self.alternatives.iter().flatten().map(Token::weight).sum()
    }

    /// The language of this pattern, over [`WorkspacePath::below_root`](crate::WorkspacePath).
    pub(crate) fn to_regex(&self) -> String {
        regex::translate(&self.alternatives)
    }

    fn is_exact(&self) -> bool {
        let literal = |token: &Token| matches!(token, Token::Byte(_) | Token::Slash);
        self.alternatives.len() == 1 && self.alternatives[0].iter().all(literal)
    }
}

impl Token {
    fn weight(&self) -> usize {
        match self {
            // One character is a small automaton of UTF-8 sequences.
            Token::AnyChar | Token::Class(_) => 16,
            Token::Components => 3,
            _ => 1,
        }
    }
}

fn check_text(text: &str) -> Result<(), PatternError> {
    let fault = |column, reason| Err(PatternError { column, reason });
    if text.is_empty() {
        return fault(1, PatternFault::Empty);
    }
    if text.len() > MAX_PATTERN_BYTES {
        return fault(MAX_PATTERN_BYTES + 1, PatternFault::TooLong);
    }
    match text.bytes().position(|byte| byte == 0) {
        Some(offset) => fault(offset + 1, PatternFault::Nul),
        None => Ok(()),
    }
}
