//! What a supervisor says to a long-lived shell, and what it hears back.
//!
//! A session's shell runs interactive with job control. A command is handed over as data: its text
//! lies in a file of a private directory, a short trigger line makes the shell source that file
//! with the call's own input and output, and a second line reports the status through a FIFO. This
//! module writes those lines and reads the reports. It opens nothing, starts nothing and knows no
//! descriptor; the caller owns the files named in [`file`].
//!
//! Start with [`ShellKind`], then [`lines`] for what is said and [`report`] for what is heard.

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

