//! What a supervisor says to a long-lived shell, and what it hears back.
//!
//! A session's shell runs interactive with job control. A command is handed over as data: its text
//! lies in a file of a private directory, a short trigger line makes the shell source that file
//! with the call's own input and output, and a second line reports the status through a FIFO. This
//! module writes those lines and reads the reports. It opens nothing, starts nothing and knows no
//! descriptor; the caller owns the files named in [`file`].
//!
//! Start with [`ShellKind`], then [`command`] and [`status_line`], then [`StatusReader`].

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The files of a session's directory. FIFOs are read by the supervisor alone.
pub mod file {
    /// The text of the command.
    pub const TEXT: &str = "c";
    /// FIFO: standard output of the command.
    pub const STDOUT: &str = "o";
    /// FIFO: standard error of the command.
    pub const STDERR: &str = "e";
    /// What the command reads, if the call gave something: a fresh inode for each call.
    pub const STDIN: &str = "i";
    /// FIFO: reports.
    pub const STATUS: &str = "s";
    /// FIFO: what the shell was asked for, exported variables or its directory.
    pub const ANSWER: &str = "x";
    /// Gives `$?` the value it had after the previous command.
    pub const PREVIOUS: &str = "r";
    /// What goes before the text when the call has an environment or a directory of its own.
    pub const PRELUDE: &str = "l";
    /// Goes back to the directory of the session.
    pub const BACK: &str = "b";
}

/// The longest line, newline included, that reaches every shell whole: busybox reads 1023 bytes
/// at a time and loses the rest of a packet.
pub const MAX_LINE: usize = 1023;

/// The longest report that means anything: twenty digits of a sequence number, a separator, three
/// of a status.
pub const MAX_REPORT: usize = 24;

/// The shells whose behaviour under this protocol is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellKind {
    /// GNU bash, never under the name "sh".
    Bash,
    /// The Debian Almquist shell.
    Dash,
    /// The ash of busybox.
    Busybox,
}

/// How trigger lines reach a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// An ordinary pipe as standard input: the shell reads byte by byte and never too much.
    StdinPipe,
    /// A FIFO that is the shell's script, in packet mode (`O_DIRECT` by `fcntl`), one line a
    /// packet, held open for reading and writing by the supervisor. The shell reads whole blocks
    /// and forgets them after an error, so no block may hold two lines.
    PacketScript,
}

impl ShellKind {
    /// Tells the kind from the name of the program, for `/bin/sh` that of the file behind the link.
    #[must_use]
    pub fn detect(program: &Path) -> Option<Self> {
        match program.file_name()?.as_bytes() {
            b"bash" => Some(Self::Bash),
            b"dash" => Some(Self::Dash),
            b"ash" => Some(Self::Busybox),
            name if name.starts_with(b"busybox") => Some(Self::Busybox),
            _ => None,
        }
    }

    /// How trigger lines reach this shell.
    #[must_use]
    pub fn transport(self) -> Transport {
        match self {
            Self::Bash => Transport::StdinPipe,
            Self::Dash | Self::Busybox => Transport::PacketScript,
        }
    }

    /// The arguments to start with, the first one being the name.
    ///
    /// Under the name "sh" bash would be in POSIX mode, where a failing `.` ends the shell. The
    /// last argument of the others is the FIFO, by a relative name, so that `$0` and the messages
    /// say "sh": they start in the session's directory and [`setup`] leads them out of it.
    #[must_use]
    pub fn start_argv(self) -> &'static [&'static str] {
        const BASH: [&str; 11] = [
            "bash",
            "--norc",
            "--noprofile",
            "--noediting",
            "-i",
            "-m",
            "+o",
            "history",
            "+H",
            "-O",
            "expand_aliases",
        ];
        match self {
            Self::Bash => &BASH,
            Self::Dash | Self::Busybox => &["sh", "-i", "-m", "sh"],
        }
    }
}

/// The session's directory as the shell sees it: a name that needs no quoting and keeps every line
/// within [`MAX_LINE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(String);

impl Directory {
    const MAX: usize = 100;

    /// Refuses what is not absolute, too long, or has a character that means something to a shell.
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        let fits = path.starts_with('/') && path.len() <= Self::MAX && path.bytes().all(plain);
        fits.then(|| Self(path.trim_end_matches('/').to_owned()))
    }

    fn source(&self, file: &str) -> String {
        // The backslash keeps an alias away, "command" a function and, in dash and busybox, the
        // rule that assignments before a special builtin stay.
        format!("\\command . {}/{file}", self.0)
    }
}

/// A variable for one call: the name is a name, the value anything but NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    name: String,
    value: Vec<u8>,
}

impl Variable {
    /// Refuses a name the shell would not take as an assignment, and a value no process can have.
    #[must_use]
    pub fn new(name: &str, value: &[u8]) -> Option<Self> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = name.bytes().next().is_some_and(|byte| word(byte) && !byte.is_ascii_digit());
        let valid = starts && name.bytes().all(word) && !value.contains(&0);
        valid.then(|| Self { name: name.to_owned(), value: value.to_vec() })
    }

    fn assignment(&self) -> Vec<u8> {
        [self.name.as_bytes(), b"=", &quote(&self.value), b" "].concat()
    }
}

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

/// The directory in an answer to [`ask_directory_line`]. Newlines within the name are its own.
#[must_use]
pub fn parse_directory(answer: &[u8]) -> Option<&[u8]> {
    answer.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"))
}

/// One word of a shell, whatever the bytes.
#[must_use]
pub fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut word = vec![b'\''];
    for &byte in bytes {
        match byte {
            b'\'' => word.extend(b"'\\''"),
            other => word.push(other),
        }
    }
    word.push(b'\'');
    word
}

/// What a shell says about the line it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command ended with this status; its output is complete.
    Finished(u8),
    /// The shell waits for the next line, and the answer is complete.
    Idle,
}

/// Reads one line, without its newline, as a report about `sequence`.
///
/// Every process of the sandbox can write here. A line that is not exactly what the shell would
/// have written for this sequence number says nothing.
#[must_use]
pub fn parse_status(line: &[u8], sequence: u64) -> Option<Report> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.len() <= MAX_REPORT)?;
    let rest = text.strip_prefix(&sequence.to_string())?;
    if rest == "." {
        return Some(Report::Idle);
    }
    let digits = rest.strip_prefix(':')?;
    let status: u8 = digits.parse().ok()?;
    (status.to_string() == digits).then_some(Report::Finished(status))
}

/// Cuts the bytes of the status FIFO into lines and keeps a bounded rest.
#[derive(Clone, Debug, Default)]
pub struct StatusReader {
    rest: Vec<u8>,
    overlong: bool,
}

impl StatusReader {
    /// The reports about `sequence` that `bytes` completed.
    pub fn push(&mut self, bytes: &[u8], sequence: u64) -> Vec<Report> {
        let mut reports = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' => reports.extend(self.end_line(sequence)),
                _ if self.rest.len() == MAX_REPORT => self.overlong = true,
                other => self.rest.push(other),
            }
        }
        reports
    }

    fn end_line(&mut self, sequence: u64) -> Option<Report> {
        let line = std::mem::take(&mut self.rest);
        let overlong = std::mem::take(&mut self.overlong);
        if overlong { None } else { parse_status(&line, sequence) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> Directory {
        Directory::new("/run/ringfence/1").unwrap()
    }

    fn lines(handover: &Handover) -> Vec<&str> {
        handover.lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn a_shell_is_known_by_the_name_of_its_program() {
        let kind = |path: &str| ShellKind::detect(Path::new(path));
        assert_eq!(kind("/usr/bin/bash"), Some(ShellKind::Bash));
        assert_eq!(kind("/usr/bin/dash"), Some(ShellKind::Dash));
        assert_eq!(kind("/bin/busybox.static"), Some(ShellKind::Busybox));
        assert_eq!(kind("/bin/sh"), None);
        assert_eq!(kind("/"), None);
    }

    #[test]
    fn quoting_leaves_nothing_special() {
        assert_eq!(quote(b""), b"''");
        assert_eq!(quote(b"a'b\n$(x)\\\xff"), b"'a'\\''b\n$(x)\\\xff'");
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
        let call = Call { previous: 7, stdin: true, ..Call::default() };
        let handover = command(&directory(), &call);
        assert_eq!(handover.files, [(file::PREVIOUS, b"\\command return 7\n".to_vec())]);
        let line = lines(&handover)[1];
        assert!(line.starts_with("\\command . /run/ringfence/1/r || \\command . "), "{line}");
        assert!(line.contains("/c </run/ringfence/1/i >"), "{line}");
    }

    #[test]
    fn environment_and_directory_travel_as_data_in_the_prelude() {
        let call = Call {
            previous: 1,
            environment: vec![Variable::new("A", b"it's\n").unwrap()],
            visit: Some(Visit { to: b"sub".to_vec(), back: b"/a\nb".to_vec() }),
            stdin: false,
        };
        let handover = command(&directory(), &call);
        let prelude = "\\command cd -- './sub' || \\command return 1\n\
            \\command . /run/ringfence/1/r || A='it'\\''s\n' \\command . /run/ringfence/1/c\n";
        assert_eq!(handover.files[1], (file::PRELUDE, prelude.as_bytes().to_vec()));
        assert_eq!(handover.files[2], (file::BACK, b"\\command cd -- '/a\nb'\n".to_vec()));
        assert!(lines(&handover)[1].starts_with("OLDPWD= \\command . /run/ringfence/1/l <"));
    }

    #[test]
    fn variables_are_checked() {
        for bad in ["", "1A", "A-B", "A B", "A=", "Ä"] {
            assert_eq!(Variable::new(bad, b"x"), None, "{bad}");
        }
        assert_eq!(Variable::new("A", b"a\0b"), None);
        assert!(Variable::new("_a1", b"").is_some());
    }

    #[test]
    fn a_directory_needs_no_quoting() {
        let long = format!("/{}", "x".repeat(100));
        for bad in ["", "run", "/a b", "/a'", "/a\n", long.as_str()] {
            assert_eq!(Directory::new(bad), None, "{bad}");
        }
        assert_eq!(Directory::new("/run/x/"), Directory::new("/run/x"));
    }

    #[test]
    fn every_line_fits_into_one_packet() {
        let directory = Directory::new(&format!("/{}", "x".repeat(99))).unwrap();
        let long = vec![b'y'; 5000];
        let call = Call {
            previous: 255,
            environment: vec![Variable::new("A", &long).unwrap()],
            visit: Some(Visit { to: long.clone(), back: long.clone() }),
            stdin: true,
        };
        let plain = Call { previous: 255, stdin: true, ..Call::default() };
        for kind in [ShellKind::Bash, ShellKind::Dash, ShellKind::Busybox] {
            let mut all = setup(kind, &directory, &long).lines;
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
    fn only_the_own_sequence_number_counts() {
        assert_eq!(parse_status(b"12:0", 12), Some(Report::Finished(0)));
        assert_eq!(parse_status(b"12:255", 12), Some(Report::Finished(255)));
        assert_eq!(parse_status(b"12.", 12), Some(Report::Idle));
        for forged in ["11:0", "112:0", "12:256", "12:-1", "12:+1", "12:01", "12:", "12", ""] {
            assert_eq!(parse_status(forged.as_bytes(), 12), None, "{forged}");
        }
        assert_eq!(parse_status(b"12:\xff", 12), None);
        let longest = format!("{}:255", u64::MAX);
        assert_eq!(longest.len(), MAX_REPORT);
        assert_eq!(parse_status(longest.as_bytes(), u64::MAX), Some(Report::Finished(255)));
    }

    #[test]
    fn reports_survive_any_cut_and_any_noise() {
        let noise = [b"x".repeat(10_000), b"\n5:1\n7:3\n\0\n7.\n".to_vec()].concat();
        let mut reader = StatusReader::default();
        let one = |byte: &u8| reader.push(&[*byte], 7);
        let reports: Vec<Report> = noise.iter().flat_map(one).collect();
        assert_eq!(reports, [Report::Finished(3), Report::Idle]);
    }

    #[test]
    fn an_endless_line_is_kept_within_bounds() {
        let mut reader = StatusReader::default();
        assert_eq!(reader.push(&[b'7'; 100_000], 7), []);
        assert!(reader.rest.len() <= MAX_REPORT);
        assert_eq!(reader.push(b"\n7:0\n", 7), [Report::Finished(0)]);
    }

    #[test]
    fn an_answered_directory_keeps_its_newlines() {
        assert_eq!(parse_directory(b"/a\nb\n\n"), Some(b"/a\nb\n".as_slice()));
        assert_eq!(parse_directory(b"\n"), None);
        assert_eq!(parse_directory(b"/cut"), None);
    }
}
