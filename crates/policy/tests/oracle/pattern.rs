//! Does this pattern match this path? By trying everything.

use std::collections::HashMap;

use ringfence_policy::{PatternType, Rule, WorkspacePath};

/// What one piece of a pattern asks for.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Slash,
    Byte(u8),
    One(Option<Set>),
    InName,
    Across,
    Names,
}

#[derive(Clone, Debug, PartialEq)]
struct Set {
    negated: bool,
    members: Vec<u8>,
}

pub(crate) fn matches(rule: &Rule, path: &WorkspacePath) -> bool {
    let path = if path.is_root() { b"" } else { path.as_bytes() };
    written_out(rule).iter().any(|pieces| fits(pieces, path, &mut HashMap::new()))
}

/// Without wildcards? And how many literal bytes, at least?
pub(crate) fn specificity(rule: &Rule) -> (bool, usize) {
    let all = written_out(rule);
    let literal =
        |pieces: &Vec<Piece>| pieces.iter().filter(|piece| matches!(piece, Piece::Byte(_))).count();
    let plain = |piece: &Piece| matches!(piece, Piece::Byte(_) | Piece::Slash);
    let exact = all.len() == 1 && all[0].iter().all(plain);
    (exact, all.iter().map(literal).min().unwrap_or(0))
}

fn written_out(rule: &Rule) -> Vec<Vec<Piece>> {
    let text = rule.pattern.as_bytes();
    match rule.pattern_type {
        PatternType::Glob => without_braces(text).iter().map(|text| pieces(text)).collect(),
        PatternType::File => vec![literal_pieces(text)],
        PatternType::Directory => vec![[literal_pieces(text), vec![Piece::Names]].concat()],
    }
}

fn literal_pieces(text: &[u8]) -> Vec<Piece> {
    let names = text.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let mut pieces = Vec::new();
    for name in names {
        pieces.push(Piece::Slash);
        pieces.extend(name.iter().map(|byte| Piece::Byte(*byte)));
    }
    pieces
}

/// Replaces the first pair of braces by each of its alternatives, and again.
fn without_braces(text: &[u8]) -> Vec<Vec<u8>> {
    let Some((open, commas, close)) = first_braces(text) else {
        return vec![text.to_vec()];
    };
    let mut from = open + 1;
    let mut results = Vec::new();
    for to in commas.into_iter().chain([close]) {
        let with = [&text[..open], &text[from..to], &text[close + 1..]].concat();
        results.extend(without_braces(&with));
        from = to + 1;
    }
    results
}

fn first_braces(text: &[u8]) -> Option<(usize, Vec<usize>, usize)> {
    let mut open = None;
    let mut commas = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'[' => at = class_end(text, at),
            b'{' => {
                depth += 1;
                open = open.or(Some(at));
            }
            b',' if depth == 1 => commas.push(at),
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((open?, commas, at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The index of the `]` that closes the class opened at `open`.
fn class_end(text: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    if matches!(text[at], b'!' | b'^') {
        at += 1;
    }
    let first = at;
    while text[at] != b']' || at == first {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// Reads a pattern without braces, name by name.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut name = Vec::new();
    let mut at = 0;
    while at <= text.len() {
        match text.get(at) {
            None | Some(b'/') => finish_name(&mut all, std::mem::take(&mut name)),
            Some(b'\\') if text[at + 1] == b'/' => {
                at += 1;
                finish_name(&mut all, std::mem::take(&mut name));
            }
            Some(b'\\') => {
                at += 1;
                name.push(Piece::Byte(text[at]));
            }
            Some(b'[') => {
                let end = class_end(text, at);
                name.push(Piece::One(Some(set(&text[at + 1..end]))));
                at = end;
            }
            Some(b'?') => name.push(Piece::One(None)),
            Some(b'*') => {
                let stars = text[at..].iter().take_while(|byte| **byte == b'*').count();
                name.push(if stars == 1 { Piece::InName } else { Piece::Across });
                at += stars - 1;
            }
            Some(byte) => name.push(Piece::Byte(*byte)),
        }
        at += 1;
    }
    all
}

fn finish_name(all: &mut Vec<Piece>, name: Vec<Piece>) {
    if name.is_empty() || name == [Piece::Byte(b'.')] {
        return;
    }
    if name == [Piece::Across] {
        return all.push(Piece::Names);
    }
    all.push(Piece::Slash);
    all.extend(name);
}

fn set(text: &[u8]) -> Set {
    let negated = matches!(text[0], b'!' | b'^');
    let mut members = Vec::new();
    let mut at = usize::from(negated);
    let take = |at: &mut usize| {
        *at += usize::from(text[*at] == b'\\');
        *at += 1;
        text[*at - 1]
    };
    while at < text.len() {
        let low = take(&mut at);
        if at + 1 < text.len() && text[at] == b'-' {
            at += 1;
            let high = take(&mut at);
            members.extend(low..=high);
        } else {
            members.push(low);
        }
    }
    Set { negated, members }
}

/// Remembers dead ends, otherwise many stars would take forever.
type Seen = HashMap<(usize, usize), bool>;

fn fits(pieces: &[Piece], path: &[u8], seen: &mut Seen) -> bool {
    if let Some(known) = seen.get(&(pieces.len(), path.len())) {
        return *known;
    }
    let result = fits_now(pieces, path, seen);
    seen.insert((pieces.len(), path.len()), result);
    result
}

fn fits_now(pieces: &[Piece], path: &[u8], seen: &mut Seen) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return path.is_empty();
    };
    match piece {
        Piece::Slash => path.first() == Some(&b'/') && fits(rest, &path[1..], seen),
        Piece::Byte(byte) => path.first() == Some(byte) && fits(rest, &path[1..], seen),
        Piece::One(set) => characters(path, set.as_ref()).any(|len| fits(rest, &path[len..], seen)),
        Piece::InName => {
            let name = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=name).any(|len| fits(rest, &path[len..], seen))
        }
        Piece::Across => (0..=path.len()).any(|len| fits(rest, &path[len..], seen)),
        Piece::Names => (0..=path.len())
            .filter(|len| *len == 0 || path[0] == b'/')
            .filter(|len| *len == path.len() || path[*len] == b'/')
            .any(|len| fits(rest, &path[len..], seen)),
    }
}

/// The lengths of the characters that could be read here.
fn characters<'a>(path: &'a [u8], set: Option<&'a Set>) -> impl Iterator<Item = usize> + 'a {
    (1..=path.len().min(4)).filter(move |len| {
        let bytes = &path[..*len];
        let character = std::str::from_utf8(bytes).is_ok_and(|text| text.chars().count() == 1);
        match bytes {
            [b'/'] => false,
            [byte] if byte.is_ascii() => {
                set.is_none_or(|set| set.members.contains(byte) != set.negated)
            }
            [_] => set.is_none_or(|set| set.negated),
            _ => character && set.is_none_or(|set| set.negated),
        }
    })
}
