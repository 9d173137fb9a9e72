//! Looking for a text or pattern in lines that come in pieces.

use std::time::{Duration, Instant};

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use ringfence_link::warden::{Failure, Until};

use crate::environment::invalid;
use crate::ring::Stream;

/// Of a line that does not end, this much is kept at least.
const LONGEST: usize = 64 * 1024;
/// How long a line that has begun is waited for to end before it is looked at as it is (a prompt
/// ends without). What is found may depend on the rest: `port \d+$`.
const PARTIAL: Duration = Duration::from_millis(50);
/// Room for the compiled form of a pattern.
const PATTERN_SIZE: usize = 8 * 1024 * 1024;

/// What is looked for in each line.
pub(super) struct Wanted(Box<Regex>);

impl Wanted {
    /// None if it is not for lines that is waited.
    pub(super) fn of(until: &Until) -> Result<Option<Self>, Failure> {
        let pattern = match until {
            Until::Exit | Until::Port { .. } => return Ok(None),
            Until::Text(text) if text.contains(&b'\n') => {
                return Err(invalid("a text with the end of a line in it is not in any line"));
            }
            Until::Text(text) => literal(text),
            Until::Pattern(pattern) => pattern.clone(),
        };
        let config = Regex::config().utf8_empty(false).nfa_size_limit(Some(PATTERN_SIZE));
        let syntax = syntax::Config::new().utf8(false);
        let built = Regex::builder().configure(config).syntax(syntax).build(&pattern);
        let regex = built.map_err(|error| invalid(said(&error)))?;
        Ok(Some(Self(Box::new(regex))))
    }

    fn is_in(&self, line: &[u8]) -> bool {
        self.0.is_match(line)
    }
}

/// A pattern for exactly these bytes.
fn literal(text: &[u8]) -> String {
    let bytes = text.iter().map(|byte| format!("\\x{byte:02x}"));
    format!("(?-u){}", bytes.collect::<String>())
}

fn said(error: &regex_automata::meta::BuildError) -> String {
    match error.syntax_error() {
        Some(syntax) => format!("the pattern cannot be read: {syntax}"),
        None => format!("the pattern is too large: {error}"),
    }
}

/// The lines of both streams, each by itself.
pub(super) struct Lines {
    wanted: Wanted,
    begun: [Vec<u8>; 2],
    /// When the begun lines are to be looked at.
    due: Option<Instant>,
}

impl Lines {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, begun: Default::default(), due: None }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Bytes are missing: what has begun does not go on.
    pub(super) fn interrupt(&mut self) {
        self.begun.iter_mut().for_each(Vec::clear);
    }

    /// The line in which it was found, without its end.
    pub(super) fn add(&mut self, stream: Stream, bytes: &[u8]) -> Option<Vec<u8>> {
        let begun = &mut self.begun[stream as usize];
        let mut pieces = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next_if(|piece| piece.ends_with(b"\n")) {
            begun.extend(&piece[..piece.len() - 1]);
            if self.wanted.is_in(begun) {
                return Some(std::mem::take(begun));
            }
            begun.clear();
        }
        let rest = pieces.next()?;
        begun.extend(rest);
        if begun.len() > 2 * LONGEST {
            let found = self.wanted.is_in(begun).then(|| begun.clone());
            begun.drain(..begun.len() - LONGEST);
            if found.is_some() {
                return found;
            }
        }
        self.due.get_or_insert_with(|| Instant::now() + PARTIAL);
        None
    }

    /// Looks at the lines that have begun.
    pub(super) fn look(&mut self) -> Option<Vec<u8>> {
        self.due = None;
        let wanted = &self.wanted;
        let found = self.begun.iter().find(|line| !line.is_empty() && wanted.is_in(line));
        found.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(until: &Until) -> Lines {
        Lines::new(Wanted::of(until).unwrap().unwrap())
    }

    #[test]
    fn a_line_split_over_pieces_is_found_whole_and_streams_do_not_mix() {
        let mut lines = lines(&Until::Text(b"listening".to_vec()));
        assert_eq!(lines.add(Stream::Output, b"x\nserver lis"), None);
        assert_eq!(lines.add(Stream::Error, b"tening\n"), None);
        assert_eq!(lines.add(Stream::Output, b"tening on 80"), None);
        let found = lines.add(Stream::Output, b"80\nmore");
        assert_eq!(found.as_deref(), Some(&b"server listening on 8080"[..]));
    }

    #[test]
    fn a_line_without_end_is_found_when_it_is_looked_at() {
        let mut lines = lines(&Until::Pattern(r"port \d+$".into()));
        assert_eq!(lines.add(Stream::Output, b"port 80"), None);
        assert!(lines.due().is_some());
        assert_eq!(lines.look().as_deref(), Some(&b"port 80"[..]));
    }

    #[test]
    fn patterns_are_for_bytes_and_bad_ones_are_refused() {
        let mut lines = lines(&Until::Pattern(r"(?-u)^\xff[0-9]+$".into()));
        assert_eq!(lines.add(Stream::Error, b"\xff12\n").as_deref(), Some(&b"\xff12"[..]));
        for bad in ["(", "a{1000000}{1000000}", "\\"] {
            assert!(Wanted::of(&Until::Pattern(bad.into())).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_that_never_ends_is_searched_in_bounded_memory() {
        let mut lines = lines(&Until::Text(b"needle".to_vec()));
        for _ in 0..1000 {
            assert_eq!(lines.add(Stream::Output, &[b'x'; 4096]), None);
        }
        assert!(lines.begun[0].len() <= 3 * LONGEST);
        assert_eq!(lines.add(Stream::Output, b"nee"), None);
        assert!(lines.add(Stream::Output, b"dle\n").is_some());
    }
}
