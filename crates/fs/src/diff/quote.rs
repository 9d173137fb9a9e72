//! Names as git writes them: plain where they are harmless, otherwise between quotes.

use std::borrow::Cow;
use std::fmt::Write;

/// A name for people and for `patch`: one that could move a cursor, break a line or be misread is
/// quoted, with the bytes in question in octal.
pub fn quoted(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if text.chars().all(is_harmless) => Cow::Borrowed(text),
        _ => Cow::Owned(quote(name)),
    }
}

fn is_harmless(char: char) -> bool {
    // Escaped by Rust for debugging: control characters, those without width, unassigned ones.
    char == '\'' || char.escape_debug().count() == 1
}

fn quote(name: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            push(&mut text, char);
        }
        push_octal(&mut text, chunk.invalid());
    }
    text.push('"');
    text
}

fn push(text: &mut String, char: char) {
    match char {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\t' => text.push_str("\\t"),
        '\r' => text.push_str("\\r"),
        _ if is_harmless(char) => text.push(char),
        _ => push_octal(text, char.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn push_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_harmless_name_is_shown_as_it_is() {
        assert_eq!(quoted("it's été.txt".as_bytes()), "it's été.txt");
    }

    #[test]
    fn a_name_that_could_be_misread_is_quoted_as_git_does() {
        assert_eq!(quoted(b"a\nb"), r#""a\nb""#);
        assert_eq!(quoted(b"a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(quoted(b"\x1b[2J"), r#""\033[2J""#);
        assert_eq!(quoted(b"\xff\xfe"), r#""\377\376""#);
        assert_eq!(quoted("\u{202e}fdp".as_bytes()), r#""\342\200\256fdp""#);
    }
}
