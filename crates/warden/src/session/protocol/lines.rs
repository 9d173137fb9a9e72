//! The lines and files that make a shell run something.

use super::{Directory, ShellKind, Variable, file, quote};

/// A directory for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Where the call runs; relative to the directory of the session if it does not begin at the
    /// root.
    pub(crate) to: Vec<u8>,
    /// Where the session is, as answered to [`Speech::ask_directory_line`].
    pub(crate) from: Whereabouts,
}

/// The directory of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub(crate) here: Vec<u8>,
    /// Where it was before, if that is not brought back with a variable.
    pub(crate) before: Option<Vec<u8>>,
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

/// How to speak to a shell, and where its files are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speech<'a> {
    pub(crate) kind: ShellKind,
    pub(crate) directory: &'a Directory,
}

impl Speech<'_> {
    /// Sent once, before the first status line: `source` for the shells that lack it, or lack it
    /// for a file of the current directory, and the way to `cwd` for those that start elsewhere. The
    /// status says whether it led there. Then variables that could not be there from the start.
    pub(crate) fn setup(self, cwd: &[u8], late: &[(Vec<u8>, Vec<u8>)]) -> Handover {
        let source: &[&str] = match self.kind {
            ShellKind::Bash | ShellKind::Zsh => return Handover::default(),
            ShellKind::Dash => &["source() { ", SOURCE_BODY, " }\n"],
            // There it is a special builtin, which no function can replace but an alias can.
            ShellKind::Busybox => &["_source() { ", SOURCE_BODY, " }; alias source=_source\n"],
        };
        let leave = format!("{} && \\unset OLDPWD\n", self.source(file::BACK));
        let mut enter = self.enter(cwd);
        for (name, value) in late {
            let export = self.builtin("export ");
            enter.extend([export.as_bytes(), &name[..], b"=", &quote(value), b"\n"].concat());
        }
        Handover {
            files: vec![(file::BACK, enter)],
            lines: vec![source.concat().into_bytes(), leave.into_bytes()],
        }
    }

    /// Makes the shell run the text in [`file::TEXT`]. A [`Self::status_line`] has to follow in a
    /// line of its own: an error in the text throws away the rest of the line it was started from.
    pub(crate) fn command(self, call: &Call) -> Handover {
        let plain = call.environment.is_empty() && call.visit.is_none() && !call.stdin;
        let mut handover = Handover::default();
        if call.previous != 0 {
            let restore = self.builtin("return ") + &format!("{}\n", call.previous);
            handover.files.push((file::PREVIOUS, restore.into_bytes()));
        }
        if !plain {
            handover.files.push((file::PRELUDE, self.prelude(call)));
        }
        if let Some(visit) = &call.visit {
            handover.files.push((file::BACK, self.go_back(&visit.from)));
        }
        // A shell announces finished jobs before it reads a line: after an empty one that goes to
        // its own stderr, within the sourced file it would be in the command's.
        handover.lines = vec![b"\n".to_vec(), self.trigger(call, plain).into_bytes()];
        handover
    }

    fn trigger(self, call: &Call, plain: bool) -> String {
        let what = match plain {
            true => self.restore_status(call) + &self.run(file::TEXT),
            false if call.visit.is_some() => self.keep_previous() + &self.run(file::PRELUDE),
            false => self.run(file::PRELUDE),
        };
        let path = &self.directory.0;
        let stdin = if call.stdin { format!("{path}/{}", file::STDIN) } else { "/dev/null".into() };
        format!("{what} <{stdin} >{path}/{} 2>{path}/{}\n", file::STDOUT, file::STDERR)
    }

    /// In a file because its length has no bound.
    fn prelude(self, call: &Call) -> Vec<u8> {
        let mut text = Vec::new();
        if call.stdin {
            // By now the FIFO is open on the shell's side, so its writer may end it.
            text.extend(format!("{}\n", self.report(&format!("'{}<\\n'", call.sequence))).bytes());
        }
        if let Some(visit) = &call.visit {
            text.extend(self.enter(&visit.to));
        }
        match self.kind {
            ShellKind::Zsh if !call.environment.is_empty() => text.extend(self.exported(call)),
            _ => {
                text.extend(self.restore_status(call).bytes());
                text.extend(call.environment.iter().flat_map(Variable::assignment));
                text.extend(self.run(file::TEXT).bytes());
            }
        }
        text.push(b'\n');
        text
    }

    /// To zsh an assignment before a builtin is not an export, but it is undone as a whole.
    fn exported(self, call: &Call) -> Vec<u8> {
        let mut inner = self.builtin("export").into_bytes();
        inner.extend(
            call.environment.iter().flat_map(|variable| [b" ", &variable.name[..]].concat()),
        );
        inner.extend(format!("; {}{}", self.restore_status(call), self.run(file::TEXT)).bytes());
        let assignments = call.environment.iter().flat_map(Variable::assignment);
        let mut text: Vec<u8> = assignments.collect();
        text.extend(self.builtin("eval ").bytes());
        text.extend(quote(&inner));
        text
    }

    /// Costs no fork, and nothing at all after a success.
    fn restore_status(self, call: &Call) -> String {
        match call.previous {
            0 => String::new(),
            _ => format!("{} || ", self.source(file::PREVIOUS)),
        }
    }

    /// Asks for [`super::report::Report::Finished`], then for the exported variables in
    /// [`file::ANSWER`], then for [`super::report::Report::Idle`]. After a [`Visit`] the shell goes
    /// back in between.
    pub(crate) fn status_line(self, sequence: u64, visited: bool) -> Vec<u8> {
        let back = match visited {
            // The alternative keeps `set -e` from ending the shell when the directory is gone.
            true => {
                let (keep, back) = (self.keep_previous(), self.source(file::BACK));
                format!("{keep}{back} || {}; ", self.builtin(":"))
            }
            false => String::new(),
        };
        let finished = self.report(&format!("'{sequence}:%s\\n' \"$?\""));
        let idle = self.report(&format!("'{sequence}.\\n'"));
        let answer = format!("{} >{}/{}", self.kind.dump(), self.directory.0, file::ANSWER);
        format!("{finished}; {back}{answer}; {idle}\n").into_bytes()
    }

    /// Asks an idle shell for its directory in [`file::ANSWER`], then for
    /// [`super::report::Report::Idle`].
    pub(crate) fn ask_directory_line(self, sequence: u64) -> Vec<u8> {
        let answer = format!(">{}/{}", self.directory.0, file::ANSWER);
        let before = match self.kind {
            ShellKind::Zsh => {
                let print = self.builtin("printf");
                format!("{print} '\\0%s\\n' \"${{OLDPWD-}}\" {answer}; ")
            }
            _ => String::new(),
        };
        let (pwd, idle) = (self.builtin("pwd"), self.report(&format!("'{sequence}.\\n'")));
        format!("{pwd} {answer}; {before}{idle}\n").into_bytes()
    }

    fn report(self, words: &str) -> String {
        format!("{} {words} >{}/{}", self.builtin("printf"), self.directory.0, file::STATUS)
    }

    /// Goes to a directory, or has the file that says so end with a failure.
    fn enter(self, path: &[u8]) -> Vec<u8> {
        let mut text = self.change_directory(path).trim_ascii_end().to_vec();
        text.extend(format!(" || {} 1\n", self.builtin("return")).bytes());
        text
    }

    fn change_directory(self, path: &[u8]) -> Vec<u8> {
        // A bare name would be looked up in CDPATH, and "-" is the previous directory.
        let here: &[u8] = if path.starts_with(b"/") { b"" } else { b"./" };
        let path = quote(&[here, path].concat());
        let cd = match self.kind {
            // Not to be noticed by functions that wait for a change.
            ShellKind::Zsh => self.builtin("cd -q -- "),
            _ => self.builtin("cd -- "),
        };
        [cd.as_bytes(), path.as_slice(), b"\n"].concat()
    }

    fn go_back(self, to: &Whereabouts) -> Vec<u8> {
        let ways = to.before.iter().chain([&to.here]);
        ways.flat_map(|path| self.change_directory(path)).collect()
    }

    /// The shell puts OLDPWD back when the scope of the assignment ends, unset or not. Not so zsh,
    /// which remembers the directory elsewhere.
    fn keep_previous(self) -> String {
        match self.kind {
            ShellKind::Zsh => String::new(),
            _ => "OLDPWD= ".into(),
        }
    }

    /// Runs a file as if its text had been typed. In zsh a sourced file shows its name as `$0`, and
    /// any error in it is 126; `eval` has neither, and reads the file without a fork.
    fn run(self, file: &str) -> String {
        match self.kind {
            ShellKind::Zsh => {
                self.builtin("eval ") + &format!("\"$(<{}/{file})\"", self.directory.0)
            }
            _ => self.source(file),
        }
    }

    fn source(self, file: &str) -> String {
        self.builtin(". ") + &format!("{}/{file}", self.directory.0)
    }

    fn builtin(self, what: &str) -> String {
        format!("{}{what}", self.kind.builtin())
    }
}

const SOURCE_BODY: &str = "case ${1-} in */*) . \"$1\" ;; *) \
    if [ -f \"./${1-}\" ]; then . \"./$1\"; else . \"$1\"; fi ;; esac;";

/// What an answer to [`Speech::ask_directory_line`] says. Newlines within a name are its own.
pub(crate) fn parse_directory(answer: &[u8]) -> Option<Whereabouts> {
    let mut parts = answer.split(|byte| *byte == 0);
    let path = |part: &[u8]| {
        let path = part.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"));
        path.map(<[u8]>::to_vec)
    };
    Some(Whereabouts { here: path(parts.next()?)?, before: parts.next().and_then(path) })
}

#[cfg(test)]
mod tests {
    use super::super::MAX_LINE;
    use super::*;

    /// What a shell is handed for a call.
    fn command(kind: ShellKind, call: &Call) -> Handover {
        let directory = Directory::new("/run/ringfence/1").unwrap();
        Speech { kind, directory: &directory }.command(call)
    }

    fn at(here: &[u8]) -> Whereabouts {
        Whereabouts { here: here.to_vec(), before: None }
    }

    fn lines(handover: &Handover) -> Vec<&str> {
        handover.lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn a_plain_call_is_an_empty_line_and_a_trigger() {
        let handover = command(ShellKind::Dash, &Call::default());
        assert!(handover.files.is_empty());
        let expected = "\\command . /run/ringfence/1/c </dev/null \
            >/run/ringfence/1/o 2>/run/ringfence/1/e\n";
        assert_eq!(lines(&handover), ["\n", expected]);
    }

    #[test]
    fn zsh_is_spoken_to_in_words_of_its_own() {
        let environment = vec![Variable::new(b"A", b"it's").unwrap()];
        let from = Whereabouts { before: Some(b"/old".to_vec()), ..at(b"/now") };
        let visit = Some(Visit { to: b"/usr".to_vec(), from });
        let call = Call { previous: 7, environment, visit, ..Call::default() };
        let handover = command(ShellKind::Zsh, &call);
        let text = |name| {
            let (_, text) = handover.files.iter().find(|(known, _)| *known == name).unwrap();
            std::str::from_utf8(text).unwrap()
        };
        assert_eq!(text(file::PREVIOUS), "\\builtin \\return 7\n");
        let back = "\\builtin \\cd -q -- '/old'\n\\builtin \\cd -q -- '/now'\n";
        assert_eq!(text(file::BACK), back);
        let prelude = "\\builtin \\cd -q -- '/usr' || \\builtin \\return 1\n\
            A='it'\\''s' \\builtin \\eval '\\builtin \\export A; \
            \\builtin \\. /run/ringfence/1/r || \\builtin \\eval \"$(</run/ringfence/1/c)\"'\n";
        assert_eq!(text(file::PRELUDE), prelude);
        let line = lines(&handover)[1];
        assert!(
            line.starts_with("\\builtin \\eval \"$(</run/ringfence/1/l)\" </dev/null >"),
            "{line}"
        );
    }

    #[test]
    fn a_failure_before_is_shown_to_the_next_text() {
        let call = Call { previous: 7, ..Call::default() };
        let handover = command(ShellKind::Dash, &call);
        assert_eq!(handover.files, [(file::PREVIOUS, b"\\command return 7\n".to_vec())]);
        let line = lines(&handover)[1];
        assert!(line.starts_with("\\command . /run/ringfence/1/r || \\command . "), "{line}");
    }

    #[test]
    fn input_is_announced_once_it_is_open() {
        let call = Call { sequence: 5, stdin: true, ..Call::default() };
        let handover = command(ShellKind::Dash, &call);
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
            visit: Some(Visit { to: b"sub".to_vec(), from: at(b"/a\nb") }),
            ..Call::default()
        };
        let handover = command(ShellKind::Dash, &call);
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
            visit: Some(Visit { to: long.clone(), from: at(&long) }),
            stdin: true,
        };
        let plain = Call { previous: 255, ..Call::default() };
        for kind in [ShellKind::Bash, ShellKind::Dash, ShellKind::Busybox, ShellKind::Zsh] {
            let speech = Speech { kind, directory: &directory };
            let mut all = speech.setup(&long, &[]).lines;
            all.extend(speech.command(&call).lines);
            all.extend(speech.command(&plain).lines);
            all.push(speech.status_line(u64::MAX, true));
            all.push(speech.ask_directory_line(u64::MAX));
            for line in all {
                assert!(line.len() <= MAX_LINE && line.ends_with(b"\n"));
                assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            }
        }
    }

    #[test]
    fn an_answered_directory_keeps_its_newlines() {
        assert_eq!(parse_directory(b"/a\nb\n\n"), Some(at(b"/a\nb\n")));
        let both = Whereabouts { before: Some(b"/c\n".to_vec()), ..at(b"/a") };
        assert_eq!(parse_directory(b"/a\n\0/c\n\n"), Some(both));
        assert_eq!(parse_directory(b"/a\n\0\n"), Some(at(b"/a")));
        assert_eq!(parse_directory(b"\n"), None);
        assert_eq!(parse_directory(b"/cut"), None);
    }
}
