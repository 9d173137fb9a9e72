//! Braces written out, and the result normalised the way paths are.

use super::parse::{Node, fault};
use super::{MAX_ALTERNATIVES, MAX_TOKENS, Token};
use crate::error::{PatternError, PatternFault};

/// A token and the byte offset it was read at.
type Located = (Token, usize);

/// Every pattern the nodes stand for. `{a,b}` means exactly "the pattern with `a` written in its
/// place, or the one with `b`", so this is the definition and not an approximation of it.
pub(super) fn alternatives(nodes: &[Node]) -> Result<Vec<Vec<Token>>, PatternError> {
    let size = Size::of(nodes);
    if size.count > MAX_ALTERNATIVES || size.tokens > MAX_TOKENS {
        let at = nodes.iter().find_map(Node::brace_offset).unwrap_or(0);
        return Err(fault(at, PatternFault::TooManyAlternatives));
    }
    expand(nodes).into_iter().map(normalise).collect()
}

/// The tokens of a pattern without wildcards (types file and directory).
pub(super) fn literal(text: &str) -> Result<Vec<Token>, PatternError> {
    let token = |byte| if byte == b'/' { Token::Slash } else { Token::Byte(byte) };
    normalise(text.bytes().enumerate().map(|(at, byte)| (token(byte), at)).collect())
}

/// How much an expansion would produce, known without producing it.
#[derive(Clone, Copy)]
struct Size {
    count: usize,
    tokens: usize,
}

impl Size {
    fn of(nodes: &[Node]) -> Size {
        nodes
            .iter()
            .fold(Size { count: 1, tokens: 0 }, |size, node| size.followed_by(Size::of_node(node)))
    }

    fn of_node(node: &Node) -> Size {
        match node {
            Node::Token { .. } => Size { count: 1, tokens: 1 },
            Node::Braces { alternatives, .. } => alternatives
                .iter()
                .map(|nodes| Size::of(nodes))
                .fold(Size { count: 0, tokens: 0 }, Size::or),
        }
    }

    fn or(self, other: Size) -> Size {
        Size {
            count: self.count.saturating_add(other.count),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn followed_by(self, next: Size) -> Size {
        let before = self.tokens.saturating_mul(next.count);
        let after = next.tokens.saturating_mul(self.count);
        Size { count: self.count.saturating_mul(next.count), tokens: before.saturating_add(after) }
    }
}

impl Node {
    fn brace_offset(&self) -> Option<usize> {
        match self {
            Node::Token { .. } => None,
            Node::Braces { at, .. } => Some(*at),
        }
    }
}

fn expand(nodes: &[Node]) -> Vec<Vec<Located>> {
    let mut results = vec![Vec::new()];
    for node in nodes {
        match node {
            Node::Token { token, at } => {
                for result in &mut results {
                    result.push((token.clone(), *at));
                }
            }
            Node::Braces { alternatives, .. } => {
                let choices: Vec<_> = alternatives.iter().flat_map(|nodes| expand(nodes)).collect();
                results = combine(&results, &choices);
            }
        }
    }
    results
}

fn combine(heads: &[Vec<Located>], tails: &[Vec<Located>]) -> Vec<Vec<Located>> {
    heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| [head.as_slice(), tail.as_slice()].concat()))
        .collect()
}

/// Drops empty components and `.`, refuses `..`, and tells the two kinds of `**` apart.
fn normalise(tokens: Vec<Located>) -> Result<Vec<Token>, PatternError> {
    let mut normal = Vec::with_capacity(tokens.len() + 1);
    for component in tokens.split(|(token, _)| *token == Token::Slash) {
        if is_literal(component, b"..") {
            return Err(fault(component[0].1, PatternFault::ParentComponent));
        }
        if component.is_empty() || is_literal(component, b".") {
            continue;
        }
        push_component(&mut normal, merge_stars(component));
    }
    Ok(normal)
}

fn is_literal(component: &[Located], text: &[u8]) -> bool {
    let bytes = text.iter().map(|byte| Token::Byte(*byte));
    component.iter().map(|(token, _)| token).eq(bytes.collect::<Vec<_>>().iter())
}

fn push_component(normal: &mut Vec<Token>, component: Vec<Token>) {
    if component != [Token::Anything] {
        normal.push(Token::Slash);
        normal.extend(component);
    } else if normal.last() != Some(&Token::Components) {
        normal.push(Token::Components);
    }
}

/// Two or more `*` in a row are `**`. Done after braces are written out, so that `{*,a}*` means
/// what `**` and `a*` mean.
fn merge_stars(component: &[Located]) -> Vec<Token> {
    let mut merged: Vec<Token> = Vec::with_capacity(component.len());
    for (token, _) in component {
        match (merged.last_mut(), token) {
            (Some(last @ (Token::Star | Token::Anything)), Token::Star) => *last = Token::Anything,
            _ => merged.push(token.clone()),
        }
    }
    merged
}
