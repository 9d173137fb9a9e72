//! Pattern text to tokens and braces. Nothing is guessed here: what is not clearly well formed is
//! refused with the column where it starts.

use super::{Class, MAX_BRACE_DEPTH, Token};
use crate::error::{PatternError, PatternFault};

/// A token and the byte offset it was read at, or braces and what is in them.
#[derive(Debug)]
pub(super) enum Node {
    Token { token: Token, at: usize },
    Braces { alternatives: Vec<Vec<Node>>, at: usize },
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, PatternError> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
    parser.sequence()
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// Reads up to the end, or inside braces up to a `,` or `}` that is left for the caller.
    fn sequence(&mut self) -> Result<Vec<Node>, PatternError> {
        let mut nodes = Vec::new();
        while let Some(byte) = self.peek() {
            if self.depth > 0 && matches!(byte, b',' | b'}') {
                break;
            }
            nodes.push(self.node(byte)?);
        }
        Ok(nodes)
    }

    fn node(&mut self, byte: u8) -> Result<Node, PatternError> {
        let at = self.at;
        self.at += 1;
        let token = match byte {
            b'{' => return self.braces(at),
            b'}' => return Err(fault(at, PatternFault::UnopenedBrace)),
            b'[' => Token::Class(self.class(at)?),
            b'\\' => literal(self.escaped(at)?),
            b'*' => Token::Star,
            b'?' => Token::AnyChar,
            other => literal(other),
        };
        Ok(Node::Token { token, at })
    }

    fn braces(&mut self, at: usize) -> Result<Node, PatternError> {
        if self.depth == MAX_BRACE_DEPTH {
            return Err(fault(at, PatternFault::BracesTooDeep));
        }
        self.depth += 1;
        let mut alternatives = vec![self.sequence()?];
        while self.take(b',') {
            alternatives.push(self.sequence()?);
        }
        if !self.take(b'}') {
            return Err(fault(at, PatternFault::UnclosedBrace));
        }
        self.depth -= 1;
        Ok(Node::Braces { alternatives, at })
    }

    /// Reads behind `[`. As in a shell, a `]` that comes first is a character of the class, and so
    /// is a `-` at either end. `^` negates like `!`: read as a character it would turn the class of
    /// people used to regular expressions into nearly its opposite.
    fn class(&mut self, open: usize) -> Result<Class, PatternError> {
        let negated = self.take(b'!') || self.take(b'^');
        let mut ranges = Vec::new();
        loop {
            let at = self.at;
            if !ranges.is_empty() && self.take(b']') {
                return Ok(Class { negated, ranges });
            }
            let low = self.class_byte(open)?;
            let high = if self.at_range() {
                self.at += 1;
                self.class_byte(open)?
            } else {
                low
            };
            if low > high {
                return Err(fault(at, PatternFault::ReversedRange));
            }
            ranges.push((low, high));
        }
    }

    fn class_byte(&mut self, open: usize) -> Result<u8, PatternError> {
        let at = self.at;
        let byte = self.peek().ok_or(fault(open, PatternFault::UnclosedClass))?;
        self.at += 1;
        let next = self.peek();
        match byte {
            b'[' if matches!(next, Some(b':' | b'.' | b'=')) => {
                Err(fault(at, PatternFault::NamedClass))
            }
            b'\\' => self.escaped(at).and_then(|byte| class_member(byte, at)),
            other => class_member(other, at),
        }
    }

    /// Whether a `-` follows that is not the last character of the class.
    fn at_range(&self) -> bool {
        self.peek() == Some(b'-') && !matches!(self.text.get(self.at + 1), None | Some(b']'))
    }

    fn escaped(&mut self, at: usize) -> Result<u8, PatternError> {
        let byte = self.peek().ok_or(fault(at, PatternFault::TrailingBackslash))?;
        self.at += 1;
        Ok(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }
}

/// An escaped `/` is still a separator: no name contains one.
fn literal(byte: u8) -> Token {
    if byte == b'/' { Token::Slash } else { Token::Byte(byte) }
}

fn class_member(byte: u8, at: usize) -> Result<u8, PatternError> {
    match byte {
        b'/' => Err(fault(at, PatternFault::SlashInClass)),
        0x80.. => Err(fault(at, PatternFault::NonAsciiInClass)),
        other => Ok(other),
    }
}

pub(super) fn fault(at: usize, reason: PatternFault) -> PatternError {
    PatternError { column: at + 1, reason }
}
