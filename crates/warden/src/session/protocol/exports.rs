//! What `export -p` of the three shells says, as names and values.

use ringfence_link::warden::Variable;

/// The variables in a dump: `declare -x A="b"` or `declare -x A=$'b'` of bash, `export A='b'` of
/// the others. Names without a value are left out, and so is what is not understood: the dump
/// comes from inside and may be anything.
pub(crate) fn parse(dump: &[u8]) -> Vec<Variable> {
    let mut rest = dump;
    let mut variables: Vec<Variable> = Vec::new();
    while !rest.is_empty() {
        let (found, after) = statement(rest);
        if let Some((name, value)) = found {
            variables.retain(|(known, _)| *known != name);
            variables.push((name, value));
        }
        rest = after;
    }
    variables
}

/// One statement, if it is an assignment, and what comes after it.
fn statement(text: &[u8]) -> (Option<Variable>, &[u8]) {
    let Some(name_and_more) = strip_declaration(text) else { return (None, next_line(text)) };
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = name_and_more.iter().take_while(|byte| word(byte)).count();
    let (name, more) = name_and_more.split_at(length);
    match more.strip_prefix(b"=").and_then(value) {
        Some((value, after)) if !name.is_empty() && !value.contains(&0) => {
            (Some((name.to_vec(), value)), after)
        }
        _ => (None, next_line(text)),
    }
}

fn strip_declaration(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"export ") {
        return Some(rest);
    }
    let rest = text.strip_prefix(b"declare -")?;
    let flags = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    rest[..flags].contains(&b'x').then_some(())?;
    rest[flags..].strip_prefix(b" ")
}

fn next_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.map_or(&[], |end| &text[end + 1..])
}

/// A quoted word up to the end of its line; `None` if it does not end.
fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut value, mut rest) = (Vec::new(), text);
    loop {
        rest = match rest {
            [] => return Some((value, rest)),
            [b'\n', after @ ..] => return Some((value, after)),
            [b'\'', after @ ..] => plain(after, &mut value)?,
            [b'"', after @ ..] => double(after, &mut value)?,
            [b'$', b'\'', after @ ..] => escaped(after, &mut value)?,
            _ => return None,
        }
    }
}

fn plain<'a>(text: &'a [u8], value: &mut Vec<u8>) -> Option<&'a [u8]> {
    let end = text.iter().position(|byte| *byte == b'\'')?;
    value.extend(&text[..end]);
    Some(&text[end + 1..])
}

fn double<'a>(mut text: &'a [u8], value: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        text = match text {
            [b'"', after @ ..] => return Some(after),
            [b'\\', byte @ (b'"' | b'\\' | b'$' | b'`'), after @ ..] => {
                value.push(*byte);
                after
            }
            [byte, after @ ..] => {
                value.push(*byte);
                after
            }
            [] => return None,
        }
    }
}

fn escaped<'a>(mut text: &'a [u8], value: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        text = match text {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', digits @ ..] if digits.first().is_some_and(|d| (b'0'..=b'7').contains(d)) => {
                let octal = |byte: &&u8| (b'0'..=b'7').contains(byte);
                let length = digits.iter().take(3).take_while(octal).count();
                let number = digits[..length].iter().fold(0u32, |n, d| n * 8 + u32::from(d - b'0'));
                value.push(number as u8);
                &digits[length..]
            }
            [b'\\', byte, after @ ..] => {
                value.push(control(*byte));
                after
            }
            [byte, after @ ..] => {
                value.push(*byte);
                after
            }
            [] => return None,
        }
    }
}

fn control(letter: u8) -> u8 {
    match letter {
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn text(dump: &str) -> Vec<(String, String)> {
        let each = parse(dump.as_bytes()).into_iter();
        let string = |bytes| String::from_utf8(bytes).unwrap();
        each.map(|(name, value)| (string(name), string(value))).collect()
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn the_forms_of_all_shells_are_read() {
        let bash = "declare -x A=\"a\\\"\\$\\`\\\\b\nc\"\ndeclare -x OLDPWD\ndeclare -rx E=\"\"\n\
            declare -x N=$'x\\ny\\001\\E\\''\ndeclare -ax L=([0]=\"1\")\n";
        assert_eq!(
            text(bash),
            pairs(&[("A", "a\"$`\\b\nc"), ("E", ""), ("N", "x\ny\u{1}\u{1b}'")])
        );
        let dash = "export A='a'\"'\"'b\nc'\nexport B\nexport C=''\nexport A='2'\n";
        assert_eq!(text(dash), pairs(&[("C", ""), ("A", "2")]));
    }

    #[test]
    fn anything_else_is_left_out() {
        for odd in ["", "\n\n", "export", "export A='open", "declare -x A=\"open\\", "rm -rf /\n"] {
            assert_eq!(text(odd), [], "{odd:?}");
        }
        assert_eq!(text("noise\nexport A='1'\nexport B=$(x)\n"), pairs(&[("A", "1")]));
    }

    /// Against the shells themselves, where they are installed.
    #[test]
    fn what_a_shell_dumps_is_what_it_was_given() {
        let value: Vec<u8> = (1..=255).chain(*b"'\"'' $(x) \\ `y`\n\n").collect();
        use std::os::unix::ffi::OsStrExt;
        for shell in [&["bash"][..], &["dash"], &["busybox", "sh"]] {
            let mut command = Command::new(shell[0]);
            command.args(&shell[1..]).args(["-c", "export -p"]);
            command.env("V", std::ffi::OsStr::from_bytes(&value));
            let Ok(output) = command.output() else { continue };
            let found = parse(&output.stdout);
            let got = found.iter().find(|(name, _)| name == b"V").map(|(_, value)| value);
            assert_eq!(got, Some(&value), "{shell:?}");
        }
    }
}
