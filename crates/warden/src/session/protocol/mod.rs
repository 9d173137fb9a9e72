//! What a supervisor says to a long-lived shell, and what it hears back.
//!
//! A session's shell runs interactive with job control. A command is handed over as data: its text
//! lies in a file of a private directory, a short trigger line makes the shell run that file with
//! the call's own input and output, and a second line reports the status through a FIFO. These
//! modules write those lines and read the reports. They open nothing, start nothing and know no
//! descriptor; the caller owns the files named in [`file`].
//!
//! Start with [`ShellKind`], then [`lines`] for what is said and [`report`] for what is heard.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) mod exports;
pub(crate) mod lines;
pub(crate) mod report;

/// The files of a session's directory. FIFOs are read by the supervisor alone.
pub(crate) mod file {
    /// The text of the command.
    pub(crate) const TEXT: &str = "c";
    /// FIFO: standard output of the command.
    pub(crate) const STDOUT: &str = "o";
    /// FIFO: standard error of the command.
    pub(crate) const STDERR: &str = "e";
    /// FIFO: what the command reads, if the call gives something. A fresh one for each call.
    pub(crate) const STDIN: &str = "i";
    /// FIFO: reports.
    pub(crate) const STATUS: &str = "s";
    /// FIFO: what the shell was asked for, exported variables or its directory.
    pub(crate) const ANSWER: &str = "x";
    /// Gives `$?` the value it had after the previous command.
    pub(crate) const PREVIOUS: &str = "r";
    /// What goes before the text when the call has an environment, a directory or input.
    pub(crate) const PRELUDE: &str = "l";
    /// Goes back to the directory of the session.
    pub(crate) const BACK: &str = "b";
    /// FIFO: the script of a shell that is driven by [`super::Transport::PacketScript`].
    pub(crate) const SCRIPT: &str = "sh";
}

/// The longest line, newline included, that reaches every shell whole: busybox reads 1023 bytes
/// at a time and loses the rest of a packet.
#[cfg(test)]
pub(crate) const MAX_LINE: usize = 1023;

/// The shells whose behaviour under this protocol is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellKind {
    /// GNU bash, never under the name "sh".
    Bash,
    /// The Debian Almquist shell.
    Dash,
    /// The ash of busybox.
    Busybox,
    /// The Z shell, under its own name.
    Zsh,
}

/// How trigger lines reach a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// An ordinary pipe as standard input: the shell reads byte by byte and never too much.
    StdinPipe,
    /// A FIFO that is the shell's script, in packet mode (`O_DIRECT` by `fcntl`), one line a
    /// packet, held open for reading and writing by the supervisor. The shell reads whole blocks
    /// and forgets them after an error, so no block may hold two lines.
    PacketScript,
}

impl ShellKind {
    /// Tells the kind from the file of the program, links followed. A file that is really called
    /// "sh" is taken for one that behaves as dash does.
    pub(crate) fn detect(program: &Path) -> Option<Self> {
        match program.file_name()?.as_bytes() {
            b"bash" => Some(Self::Bash),
            b"dash" | b"sh" => Some(Self::Dash),
            b"ash" => Some(Self::Busybox),
            b"zsh" => Some(Self::Zsh),
            name if name.starts_with(b"busybox") => Some(Self::Busybox),
            _ => None,
        }
    }

    /// How trigger lines reach this shell.
    pub(crate) fn transport(self) -> Transport {
        match self {
            Self::Bash | Self::Zsh => Transport::StdinPipe,
            Self::Dash | Self::Busybox => Transport::PacketScript,
        }
    }

    /// The arguments to start with, the first one being the name.
    ///
    /// Under the name "sh" bash would be in POSIX mode, where a failing `.` ends the shell. The
    /// last argument of the others is the FIFO, by a relative name, so that `$0` and the messages
    /// say "sh": they start in the session's directory and [`lines::Speech::setup`] leads them
    /// out of it.
    pub(crate) fn start_argv(self) -> &'static [&'static str] {
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
        // It would read a line from the terminal, ask there whether `rm *` was meant, refuse to exit
        // because of jobs, run those with less priority, and take what follows a `#` as words.
        const ZSH: [&str; 16] = [
            "zsh",
            "-f",
            "-i",
            "-m",
            "+o",
            "zle",
            "+o",
            "banghist",
            "+o",
            "checkjobs",
            "+o",
            "bgnice",
            "-o",
            "rmstarsilent",
            "-o",
            "interactivecomments",
        ];
        match self {
            Self::Bash => &BASH,
            Self::Zsh => &ZSH,
            Self::Dash | Self::Busybox => &["sh", "-i", "-m", file::SCRIPT],
        }
    }

    /// What goes before the name of a builtin, so that it is nothing else. The backslash keeps an
    /// alias away, the word a function and, in dash and busybox, the rule that assignments before a
    /// special builtin stay. To zsh "command" means a program, and an alias may be for any word.
    fn builtin(self) -> &'static str {
        match self {
            Self::Zsh => "\\builtin \\",
            _ => "\\command ",
        }
    }

    /// A command that prints what the shell exports.
    fn dump(self) -> &'static str {
        match self {
            // How values are quoted depends on its options.
            Self::Zsh => {
                "() { \\builtin \\emulate -L zsh; \\builtin \\setopt printeightbit; \
                 \\builtin \\export -p; }"
            }
            _ => "\\command export -p",
        }
    }
}

/// The session's directory as the shell sees it: a name that needs no quoting and keeps every line
/// within 1023 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory(String);

impl Directory {
    const MAX: usize = 100;

    /// Refuses what is not absolute, too long, or has a character that means something to a shell.
    pub(crate) fn new(path: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        let fits = path.starts_with('/') && path.len() <= Self::MAX && path.bytes().all(plain);
        fits.then(|| Self(path.trim_end_matches('/').to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A variable for one call: the name is a name, the value anything but NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Variable {
    /// Refuses a name the shell would not take as an assignment, and a value no process can have.
    pub(crate) fn new(name: &[u8], value: &[u8]) -> Option<Self> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = name.first().is_some_and(|byte| word(*byte) && !byte.is_ascii_digit());
        let valid = starts && name.iter().all(|byte| word(*byte)) && !value.contains(&0);
        valid.then(|| Self { name: name.to_vec(), value: value.to_vec() })
    }

    fn assignment(&self) -> Vec<u8> {
        [&self.name[..], b"=", &quote(&self.value), b" "].concat()
    }
}

/// One word of a shell, whatever the bytes.
pub(crate) fn quote(bytes: &[u8]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_known_by_the_name_of_its_program() {
        let kind = |path: &str| ShellKind::detect(Path::new(path));
        assert_eq!(kind("/usr/bin/bash"), Some(ShellKind::Bash));
        assert_eq!(kind("/usr/bin/dash"), Some(ShellKind::Dash));
        assert_eq!(kind("/bin/busybox.static"), Some(ShellKind::Busybox));
        assert_eq!(kind("/bin/sh"), Some(ShellKind::Dash));
        assert_eq!(kind("/usr/bin/zsh"), Some(ShellKind::Zsh));
        assert_eq!(kind("/bin/fish"), None);
        assert_eq!(kind("/"), None);
    }

    #[test]
    fn quoting_leaves_nothing_special() {
        assert_eq!(quote(b""), b"''");
        assert_eq!(quote(b"a'b\n$(x)\\\xff"), b"'a'\\''b\n$(x)\\\xff'");
    }

    #[test]
    fn variables_are_checked() {
        for bad in ["", "1A", "A-B", "A B", "A=", "Ä"] {
            assert_eq!(Variable::new(bad.as_bytes(), b"x"), None, "{bad}");
        }
        assert_eq!(Variable::new(b"A", b"a\0b"), None);
        assert!(Variable::new(b"_a1", b"").is_some());
    }

    #[test]
    fn a_directory_needs_no_quoting() {
        let long = format!("/{}", "x".repeat(100));
        for bad in ["", "run", "/a b", "/a'", "/a\n", long.as_str()] {
            assert_eq!(Directory::new(bad), None, "{bad}");
        }
        assert_eq!(Directory::new("/run/x/"), Directory::new("/run/x"));
    }
}
