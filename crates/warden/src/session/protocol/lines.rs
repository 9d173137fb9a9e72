//! The lines and files that make a shell run something.

use super::{Directory, ShellKind, Variable, file, quote};

/// A directory for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Where the call runs; relative to the directory of the session if it does not begin at the
    /// root.
    pub(crate) to: Vec<u8>,
    /// The directory of the session, as answered to [`ask_directory_line`].
    pub(crate) back: Vec<u8>,
}

/// What belongs to one call beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) sequence: u64,
    /// The status of the command before, which `$?` shows to this one.
    pub(crate) previous: u8,
    /// Set for this call only.
    pub(crate) environment: Vec<Variable>,
    /// Entered for this call only.
    pub(crate) visit: Option<Visit>,
    /// Whether [`file::STDIN`] brings input for the call; otherwise it reads `/dev/null`.
    pub(crate) stdin: bool,
}

/// What to hand over: first every file is written, then every line sent, each in its own write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handover {
    /// Names from [`file`] with their new contents.
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    /// Lines, newline included, none longer than [`super::MAX_LINE`].
    pub(crate) lines: Vec<Vec<u8>>,
}

/// Sent once, before the first status line: `source` for the shells that lack it, or lack it for a
/// file of the current directory, and the way to `cwd` for those that start elsewhere. The status
/// says whether it led there. Then variables that could not be there from the start.
pub(crate) fn setup(
    kind: ShellKind,
    directory: &Directory,
    cwd: &[u8],
    late: &[(Vec<u8>, Vec<u8>)],
) -> Handover {
    let source: &[&str] = match kind {
        ShellKind::Bash => return Handover::default(),
        ShellKind::Dash => &["source() { ", SOURCE_BODY, " }\n"],
        // There it is a special builtin, which no function can replace but an alias can.
        ShellKind::Busybox => &["_source() { ", SOURCE_BODY, " }; alias source=_source\n"],
    };
    let leave = format!("{} && \\unset OLDPWD\n", directory.source(file::BACK));
    let mut enter = change_directory(cwd).trim_ascii_end().to_vec();
    enter.extend(b" || \\command return 1\n");
    for (name, value) in late {
        enter.extend([b"\\command export ", &name[..], b"=", &quote(value), b"\n"].concat());
    }
    Handover {
        files: vec![(file::BACK, enter)],
        lines: vec![source.concat().into_bytes(), leave.into_bytes()],
    }
}

const SOURCE_BODY: &str = "case ${1-} in */*) . \"$1\" ;; *) \
    if [ -f \"./${1-}\" ]; then . \"./$1\"; else . \"$1\"; fi ;; esac;";

/// Makes the shell run the text in [`file::TEXT`]. A [`status_line`] has to follow in a line of
/// its own: an error in the text throws away the rest of the line it was started from.
pub(crate) fn command(directory: &Directory, call: &Call) -> Handover {
    let plain = call.environment.is_empty() && call.visit.is_none() && !call.stdin;
    let mut handover = Handover::default();
    if call.previous != 0 {
        let restore = format!("\\command return {}\n", call.previous).into_bytes();
        handover.files.push((file::PREVIOUS, restore));
    }
    if !plain {
        handover.files.push((file::PRELUDE, prelude(directory, call)));
    }
    if let Some(visit) = &call.visit {
        handover.files.push((file::BACK, change_directory(&visit.back)));
    }
    // A shell announces finished jobs before it reads a line: after an empty one that goes to its
    // own stderr, within the sourced file it would be in the command's.
    handover.lines = vec![b"\n".to_vec(), trigger(directory, call, plain).into_bytes()];
    handover
}

fn trigger(directory: &Directory, call: &Call, plain: bool) -> String {
    let what = match plain {
        true => restore_status(directory, call) + &directory.source(file::TEXT),
        // The shell puts OLDPWD back when the scope of the assignment ends, unset or not.
        false if call.visit.is_some() => format!("OLDPWD= {}", directory.source(file::PRELUDE)),
        false => directory.source(file::PRELUDE),
    };
    let path = &directory.0;
    let stdin = if call.stdin { format!("{path}/{}", file::STDIN) } else { "/dev/null".into() };
    format!("{what} <{stdin} >{path}/{} 2>{path}/{}\n", file::STDOUT, file::STDERR)
}

/// In a file because its length has no bound.
fn prelude(directory: &Directory, call: &Call) -> Vec<u8> {
    let mut text = Vec::new();
    if call.stdin {
        // By now the FIFO is open on the shell's side, so its writer may end it.
        let (path, sequence) = (&directory.0, call.sequence);
        let opened = format!("\\command printf '{sequence}<\\n' >{path}/{}\n", file::STATUS);
        text.extend(opened.bytes());
    }
    if let Some(visit) = &call.visit {
        text.extend(change_directory(&visit.to).trim_ascii_end());
        text.extend(b" || \\command return 1\n");
    }
    text.extend(restore_status(directory, call).bytes());
    text.extend(call.environment.iter().flat_map(Variable::assignment));
    text.extend(directory.source(file::TEXT).bytes());
    text.push(b'\n');
    text
}

/// Costs no fork, and nothing at all after a success.
fn restore_status(directory: &Directory, call: &Call) -> String {
    match call.previous {
        0 => String::new(),
        _ => format!("{} || ", directory.source(file::PREVIOUS)),
    }
}

fn change_directory(path: &[u8]) -> Vec<u8> {
    // A bare name would be looked up in CDPATH, and "-" is the previous directory.
    let here: &[u8] = if path.starts_with(b"/") { b"" } else { b"./" };
    let path = quote(&[here, path].concat());
    [b"\\command cd -- ", path.as_slice(), b"\n"].concat()
}

/// Asks for [`super::report::Report::Finished`], then for the exported variables in
/// [`file::ANSWER`], then for [`super::report::Report::Idle`]. After a [`Visit`] the shell goes
/// back in between.
pub(crate) fn status_line(directory: &Directory, sequence: u64, visited: bool) -> Vec<u8> {
    let path = &directory.0;
    let (status, answer) = (file::STATUS, file::ANSWER);
    let back = match visited {
        // The alternative keeps `set -e` from ending the shell when the directory is gone.
        true => format!("OLDPWD= {} || \\command :; ", directory.source(file::BACK)),
        false => String::new(),
    };
    format!(
        "\\command printf '{sequence}:%s\\n' \"$?\" >{path}/{status}; {back}\
         \\command export -p >{path}/{answer}; \\command printf '{sequence}.\\n' >{path}/{status}\n"
    )
    .into_bytes()
}

/// Asks an idle shell for its directory in [`file::ANSWER`], then for
/// [`super::report::Report::Idle`].
pub(crate) fn ask_directory_line(directory: &Directory, sequence: u64) -> Vec<u8> {
    let (path, status, answer) = (&directory.0, file::STATUS, file::ANSWER);
    format!("\\command pwd >{path}/{answer}; \\command printf '{sequence}.\\n' >{path}/{status}\n")
        .into_bytes()
}

/// The directory in an answer to [`ask_directory_line`]. Newlines within the name are its own.
pub(crate) fn parse_directory(answer: &[u8]) -> Option<&[u8]> {
    answer.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::super::MAX_LINE;
    use super::*;

    fn directory() -> Directory {
        Directory::new("/run/ringfence/1").unwrap()
    }

    fn lines(handover: &Handover) -> Vec<&str> {
        handover.lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn a_plain_call_is_an_empty_line_and_a_trigger() {
        let handover = command(&directory(), &Call::default());
        assert!(handover.files.is_empty());
        let expected = "\\command . /run/ringfence/1/c </dev/null \
            >/run/ringfence/1/o 2>/run/ringfence/1/e\n";
        assert_eq!(lines(&handover), ["\n", expected]);
    }

    #[test]
    fn a_failure_before_is_shown_to_the_next_text() {
        let call = Call { previous: 7, ..Call::default() };
        let handover = command(&directory(), &call);
        assert_eq!(handover.files, [(file::PREVIOUS, b"\\command return 7\n".to_vec())]);
        let line = lines(&handover)[1];
        assert!(line.starts_with("\\command . /run/ringfence/1/r || \\command . "), "{line}");
    }

    #[test]
    fn input_is_announced_once_it_is_open() {
        let call = Call { sequence: 5, stdin: true, ..Call::default() };
        let handover = command(&directory(), &call);
        let prelude = "\\command printf '5<\\n' >/run/ringfence/1/s\n\
            \\command . /run/ringfence/1/c\n";
        assert_eq!(handover.files, [(file::PRELUDE, prelude.as_bytes().to_vec())]);
        let line = lines(&handover)[1];
        assert!(line.contains("/l </run/ringfence/1/i >"), "{line}");
    }

    #[test]
    fn environment_and_directory_travel_as_data_in_the_prelude() {
        let call = Call {
            previous: 1,
            environment: vec![Variable::new(b"A", b"it's\n").unwrap()],
            visit: Some(Visit { to: b"sub".to_vec(), back: b"/a\nb".to_vec() }),
            ..Call::default()
        };
        let handover = command(&directory(), &call);
        let prelude = "\\command cd -- './sub' || \\command return 1\n\
            \\command . /run/ringfence/1/r || A='it'\\''s\n' \\command . /run/ringfence/1/c\n";
        assert_eq!(handover.files[1], (file::PRELUDE, prelude.as_bytes().to_vec()));
        assert_eq!(handover.files[2], (file::BACK, b"\\command cd -- '/a\nb'\n".to_vec()));
        assert!(lines(&handover)[1].starts_with("OLDPWD= \\command . /run/ringfence/1/l <"));
    }

    #[test]
    fn every_line_fits_into_one_packet() {
        let directory = Directory::new(&format!("/{}", "x".repeat(99))).unwrap();
        let long = vec![b'y'; 5000];
        let call = Call {
            sequence: u64::MAX,
            previous: 255,
            environment: vec![Variable::new(b"A", &long).unwrap()],
            visit: Some(Visit { to: long.clone(), back: long.clone() }),
            stdin: true,
        };
        let plain = Call { previous: 255, ..Call::default() };
        for kind in [ShellKind::Bash, ShellKind::Dash, ShellKind::Busybox] {
            let mut all = setup(kind, &directory, &long, &[]).lines;
            all.extend(command(&directory, &call).lines);
            all.extend(command(&directory, &plain).lines);
            all.push(status_line(&directory, u64::MAX, true));
            all.push(ask_directory_line(&directory, u64::MAX));
            for line in all {
                assert!(line.len() <= MAX_LINE && line.ends_with(b"\n"));
                assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            }
        }
    }

    #[test]
    fn an_answered_directory_keeps_its_newlines() {
        assert_eq!(parse_directory(b"/a\nb\n\n"), Some(b"/a\nb\n".as_slice()));
        assert_eq!(parse_directory(b"\n"), None);
        assert_eq!(parse_directory(b"/cut"), None);
    }
}
