//! One line of an ignore file: what is about the line and not about names.

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line taken apart: `glob` has neither the `!` nor the slashes at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) glob: &'a [u8],
    pub(super) negated: bool,
    pub(super) only_directories: bool,
    /// Has a slash at its start or in its middle, and so holds for a path and not for any name.
    pub(super) anchored: bool,
}

/// All lines of a text that say something.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split(|byte| *byte == b'\n').filter_map(parse)
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    if line.starts_with(b"#") {
        return None;
    }
    let line = without_trailing_spaces(line.strip_suffix(b"\r").unwrap_or(line));
    let (glob, negated) = strip(line, |line| line.strip_prefix(b"!"));
    let (glob, only_directories) = strip(glob, |glob| glob.strip_suffix(b"/"));
    let anchored = glob.contains(&b'/');
    let (glob, _) = strip(glob, |glob| glob.strip_prefix(b"/"));
    (!glob.is_empty()).then_some(Line { glob, negated, only_directories, anchored })
}

fn strip(bytes: &[u8], by: impl Fn(&[u8]) -> Option<&[u8]>) -> (&[u8], bool) {
    by(bytes).map_or((bytes, false), |rest| (rest, true))
}

/// Cuts spaces off the end, up to one that a backslash keeps.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    // Git reads lines as C strings.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let spaces = trailing(line, b' ');
    let end = line.len() - spaces;
    let is_kept = spaces > 0 && trailing(&line[..end], b'\\') % 2 == 1;
    &line[..end + usize::from(is_kept)]
}

fn trailing(bytes: &[u8], wanted: u8) -> usize {
    bytes.iter().rev().take_while(|byte| **byte == wanted).count()
}
