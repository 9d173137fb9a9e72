//! What the shells say when they are asked for what they export, as names and values.

use ringfence_link::warden::Variable;

/// The variables in a dump: `declare -x A="b"` or `declare -x A=$'b'` of bash, `export A='b'` of
/// dash and busybox, all of `export A=b`, `export -i A=1` and `export -T A a=( b c ) :` of zsh.
/// Names without a value are left out, and so is what is not understood: the dump comes from inside
/// and may be anything.
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
    match assignment(text) {
        Some((name, value, after)) => (Some((name, value)), after),
        None => (None, next_line(text)),
    }
}

type Assignment<'a> = (Vec<u8>, Vec<u8>, &'a [u8]);

fn assignment(text: &[u8]) -> Option<Assignment<'_>> {
    let (flags, rest) = declaration(text)?;
    let (name, rest) = split_name(rest);
    let (value, rest) = match flags.contains(&b'T') {
        true => joined(rest)?,
        false => word(rest.strip_prefix(b"=")?)?,
    };
    let after = match rest {
        [] => rest,
        [b'\n', after @ ..] => after,
        _ => return None,
    };
    (!name.is_empty() && !value.contains(&0)).then(|| (name.to_vec(), value, after))
}

/// The flags of a declaration that exports, and what comes after them.
fn declaration(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (text, exports) = match text.strip_prefix(b"export ") {
        Some(rest) => (rest, true),
        None => (text.strip_prefix(b"declare ")?, false),
    };
    let Some(rest) = text.strip_prefix(b"-") else { return exports.then_some((&[], text)) };
    let (flags, rest) = rest.split_at(count(rest, u8::is_ascii_alphanumeric));
    (exports || flags.contains(&b'x')).then_some((flags, rest.strip_prefix(b" ")?))
}

fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(count(text, |byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
}

fn count(text: &[u8], which: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| which(byte)).count()
}

fn next_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.map_or(&[], |end| &text[end + 1..])
}

/// The value of a variable that zsh has tied to an array: ` array=( word word )`, and the character
/// between the words unless it is the usual one.
fn joined(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (_, rest) = split_name(text.strip_prefix(b" ")?);
    let (mut words, mut rest) = (Vec::new(), rest.strip_prefix(b"=(")?.trim_ascii_start());
    while !rest.starts_with(b")") {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after.strip_prefix(b" ")?.trim_ascii_start();
    }
    let (between, rest) = match rest[1..].strip_prefix(b" ") {
        Some(rest) => word(rest)?,
        None => (b":".to_vec(), &rest[1..]),
    };
    Some((words.join(&between[..]), rest))
}

/// A word up to a blank or the end of its line; `None` if it is not one, or does not end.
fn word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut value, mut rest) = (Vec::new(), text);
    loop {
        rest = match rest {
            [] | [b' ' | b'\n', ..] => return Some((value, rest)),
            [b'\'', after @ ..] => plain(after, &mut value)?,
            [b'"', after @ ..] => double(after, &mut value)?,
            [b'$', b'\'', after @ ..] => escaped(after, &mut value)?,
            [b'\\', byte, after @ ..] => {
                value.push(*byte);
                after
            }
            [byte, after @ ..] if !SPECIAL.contains(byte) => {
                value.push(*byte);
                after
            }
            _ => return None,
        }
    }
}

/// What a shell would have quoted.
const SPECIAL: &[u8] = b"#$^*()=|{}[]`<>?~;&\t\\'\"\0";

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
            [b'\\', b'C', b'-', byte, after @ ..] => {
                value.push(if *byte == b'?' { 127 } else { byte & 31 });
                after
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

    use super::super::ShellKind;
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
        let zsh = "export A=b:/c.d-é\nexport B='it'\\''s'\nexport -i10 N=3\nexport C=''\n\
            export -UT P p=( /a '/b c' $'d\\n\\C-A\\C-?' )\nexport -T E e=(  )\n\
            export -T S s=( a '' b ) ,\ntypeset -ax L=( x )\nexport Z=z\n";
        assert_eq!(
            text(zsh),
            pairs(&[
                ("A", "b:/c.d-é"),
                ("B", "it's"),
                ("N", "3"),
                ("C", ""),
                ("P", "/a:/b c:d\n\u{1}\u{7f}"),
                ("E", ""),
                ("S", "a,,b"),
                ("Z", "z")
            ])
        );
    }

    #[test]
    fn anything_else_is_left_out() {
        for odd in [
            "",
            "\n\n",
            "export",
            "export A='open",
            "declare -x A=\"open\\",
            "rm -rf /\n",
            "declare A='1'\n",
            "export -T A a=( b\n",
            "export -T A a=( b ",
            "export -T A a=(b)c\n",
            "export A=b c\n",
            "export -",
        ] {
            assert_eq!(text(odd), [], "{odd:?}");
        }
        assert_eq!(text("noise\nexport A='1'\nexport B=$(x)\n"), pairs(&[("A", "1")]));
    }

    /// Against the shells themselves, where they are installed.
    #[test]
    fn what_a_shell_dumps_is_what_it_was_given() {
        let value: Vec<u8> = (1..=255).chain(*b"'\"'' $(x) \\ `y`\n\n").collect();
        use std::os::unix::ffi::OsStrExt;
        let (usual, zsh) = (ShellKind::Dash.dump(), ShellKind::Zsh.dump());
        for shell in [
            &["bash", "-c", usual][..],
            &["dash", "-c", usual],
            &["busybox", "sh", "-c", usual],
            &["zsh", "-f", "-o", "rcquotes", "-c", zsh],
        ] {
            let mut command = Command::new(shell[0]);
            command.args(&shell[1..]);
            command.env("V", std::ffi::OsStr::from_bytes(&value));
            let Ok(output) = command.output() else { continue };
            let found = parse(&output.stdout);
            let got = found.iter().find(|(name, _)| name == b"V").map(|(_, value)| value);
            assert_eq!(got, Some(&value), "{shell:?}");
        }
    }
}
