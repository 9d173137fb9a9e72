//! How results look: colours on a terminal, quoted names, JSON.

use std::io::{self, IsTerminal, Write};

use ringfence_fs::diff::quoted;
use ringfence_policy::{Level, WorkspacePath};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
    Grey,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
            Self::Grey => "90",
        }
    }

    pub(crate) fn of(level: Level) -> Self {
        match level {
            Level::None => Self::Red,
            Level::View => Self::Yellow,
            Level::Read => Self::Cyan,
            Level::Write => Self::Green,
        }
    }
}

/// Paints text if somebody looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// <https://no-color.org> is respected.
    pub(crate) fn for_stdout() -> Self {
        Self::if_seen(io::stdout().is_terminal())
    }

    pub(crate) fn for_stderr() -> Self {
        Self::if_seen(io::stderr().is_terminal())
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { on: false }
    }

    fn if_seen(seen: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { on: wanted && seen }
    }

    pub(crate) fn text(self, colour: Colour, text: &str) -> String {
        match self.on {
            true => format!("\x1b[{}m{text}\x1b[0m", colour.code()),
            false => text.to_owned(),
        }
    }
}

/// Collects what a command prints and writes it in one go. Somebody who stops reading (`| head`)
/// is no failure.
pub(crate) fn print(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::broken(format!("cannot print: {e}")))
        }
        _ => Ok(()),
    }
}

/// One value as one line.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::broken)?;
    print(format!("{text}\n").as_bytes())
}

/// A path of the workspace as people see it: relative, quoted where it must be. The root is `.`.
pub(crate) fn shown(path: &WorkspacePath) -> String {
    match path.is_root() {
        true => ".".into(),
        false => quoted(&path.as_bytes()[1..]).into_owned(),
    }
}

/// A path of the workspace for programs. A name that is not UTF-8 comes with its bytes.
pub(crate) fn path_fields(key: &str, path: &WorkspacePath) -> Vec<(String, Value)> {
    let bytes = path.as_bytes();
    let text = String::from_utf8_lossy(bytes);
    let mut fields = vec![(key.to_owned(), json!(text))];
    if matches!(text, std::borrow::Cow::Owned(_)) {
        fields.push((format!("{key}_bytes"), json!(bytes)));
    }
    fields
}

/// A patch on a terminal: lines coloured, and control characters of the files made visible, since
/// whoever wrote them must not be able to move the reader's cursor.
pub(crate) fn patch_for_terminal(patch: &[u8], paint: Paint) -> Vec<u8> {
    let mut out = Vec::with_capacity(patch.len());
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let text = visible(line.strip_suffix(b"\n").unwrap_or(line));
        out.extend_from_slice(paint_line(&text, paint).as_bytes());
        out.push(b'\n');
    }
    out
}

fn paint_line(text: &str, paint: Paint) -> String {
    let colour = match text.as_bytes().first() {
        Some(b'+') => Colour::Green,
        Some(b'-') => Colour::Red,
        Some(b'@') => Colour::Cyan,
        Some(b'd' | b'r' | b'n' | b'o') => Colour::Grey,
        _ => return text.to_owned(),
    };
    paint.text(colour, text)
}

fn visible(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let show = |char: char| match char {
        '\t' => "\t".to_owned(),
        char if char.is_control() || char.escape_debug().count() > 2 => {
            char.escape_default().to_string()
        }
        char => char.to_string(),
    };
    text.chars().map(show).collect()
}
