//! The lines and files that make a shell run something.

use super::{Directory, ShellKind, Variable, file, quote};

/// A directory for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Where the call runs; relative to the directory of the session if it does not begin at the
    /// root.
    pub to: Vec<u8>,
    /// The directory of the session, as answered to [`ask_directory_line`].
    pub back: Vec<u8>,
}

/// What belongs to one call beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The status of the command before, which `$?` shows to this one.
    pub previous: u8,
    /// Set for this call only.
    pub environment: Vec<Variable>,
    /// Entered for this call only.
    pub visit: Option<Visit>,
    /// Whether [`file::STDIN`] holds input for the call; otherwise it reads `/dev/null`.
    pub stdin: bool,
}

/// What to hand over: first every file is written, then every line sent, each in its own write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    /// Names from [`file`] with their new contents.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Lines, newline included, none longer than [`MAX_LINE`].
    pub lines: Vec<Vec<u8>>,
}

/// Sent once, before the first status line: `source` for the shells that lack it, or lack it for a
/// file of the current directory, and the way to `cwd` for those that start elsewhere.
#[must_use]
pub fn setup(kind: ShellKind, directory: &Directory, cwd: &[u8]) -> Handover {
    let source: &[&str] = match kind {
        ShellKind::Bash => return Handover::default(),
        ShellKind::Dash => &["source() { ", SOURCE_BODY, " }\n"],
        // There it is a special builtin, which no function can replace but an alias can.
        ShellKind::Busybox => &["_source() { ", SOURCE_BODY, " }; alias source=_source\n"],
    };
    let leave = format!("{}; \\unset OLDPWD\n", directory.source(file::BACK));
    Handover {
        files: vec![(file::BACK, change_directory(cwd))],
        lines: vec![source.concat().into_bytes(), leave.into_bytes()],
    }
}

const SOURCE_BODY: &str = "case ${1-} in */*) . \"$1\" ;; *) \
    if [ -f \"./${1-}\" ]; then . \"./$1\"; else . \"$1\"; fi ;; esac;";

/// Makes the shell run the text in [`file::TEXT`]. A [`status_line`] has to follow in a line of
/// its own: an error in the text throws away the rest of the line it was started from.
#[must_use]
pub fn command(directory: &Directory, call: &Call) -> Handover {
    let plain = call.environment.is_empty() && call.visit.is_none();
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

/// Asks for [`Report::Finished`], then for the exported variables in [`file::ANSWER`], then for
/// [`Report::Idle`]. After a [`Visit`] the shell goes back in between.
#[must_use]
pub fn status_line(directory: &Directory, sequence: u64, visited: bool) -> Vec<u8> {
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

/// Asks an idle shell for its directory in [`file::ANSWER`], then for [`Report::Idle`].
#[must_use]
pub fn ask_directory_line(directory: &Directory, sequence: u64) -> Vec<u8> {
    let (path, status, answer) = (&directory.0, file::STATUS, file::ANSWER);
    format!("\\command pwd >{path}/{answer}; \\command printf '{sequence}.\\n' >{path}/{status}\n")
        .into_bytes()
}

