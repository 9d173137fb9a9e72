//! Tokens to a regular expression over bytes (flags: no Unicode, not limited to UTF-8).

use std::fmt::Write as _;

use super::{Class, Token};

/// One byte of a name that is not ASCII. A `?` takes a UTF-8 character or, so that names in other
/// encodings can be matched too, a single such byte.
const LONE_BYTE: &str = r"[\x80-\xFF]";

pub(super) fn translate(alternatives: &[Vec<Token>]) -> String {
    let mut regex = String::from("(?:");
    for (index, tokens) in alternatives.iter().enumerate() {
        if index > 0 {
            regex.push('|');
        }
        for token in tokens {
            push(&mut regex, token);
        }
    }
    regex.push(')');
    regex
}

fn push(regex: &mut String, token: &Token) {
    match token {
        Token::Byte(byte) => push_byte(regex, *byte),
        Token::Slash => regex.push('/'),
        Token::AnyChar => push_negated(regex, &[]),
        Token::Class(Class { negated: true, ranges }) => push_negated(regex, ranges),
        Token::Class(Class { negated: false, ranges }) => push_listed(regex, ranges),
        Token::Star => regex.push_str("[^/]*"),
        Token::Anything => regex.push_str(r"[\x00-\xFF]*"),
        Token::Components => regex.push_str("(?:/[^/]+)*"),
    }
}

/// One character that is neither `/` nor in `ranges`.
fn push_negated(regex: &mut String, ranges: &[(u8, u8)]) {
    regex.push_str("(?:(?u:[^/");
    for range in ranges {
        push_range(regex, *range);
    }
    regex.push_str("])|");
    regex.push_str(LONE_BYTE);
    regex.push(')');
}

/// One character of `ranges`, but never `/`, which a range such as `+-9` would include.
fn push_listed(regex: &mut String, ranges: &[(u8, u8)]) {
    regex.push('[');
    for (low, high) in ranges {
        if (*low..=*high).contains(&b'/') {
            push_range(regex, (*low, b'/' - 1));
            push_range(regex, (b'/' + 1, *high));
        } else {
            push_range(regex, (*low, *high));
        }
    }
    regex.push(']');
}

fn push_range(regex: &mut String, (low, high): (u8, u8)) {
    push_byte(regex, low);
    regex.push('-');
    push_byte(regex, high);
}

fn push_byte(regex: &mut String, byte: u8) {
    write!(regex, "\\x{byte:02X}").expect("writing to a string does not fail");
}
