//! Brackets: one byte out of a set.

use super::NeverMatches;

/// A set of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    fn turn_around(&mut self) {
        self.0.iter_mut().for_each(|word| *word = !*word);
    }
}

/// The bracket whose inside begins at `at`, and where what follows it is.
pub(super) fn parse(glob: &[u8], at: usize) -> Result<(Set, usize), NeverMatches> {
    let negated = matches!(glob.get(at), Some(b'!' | b'^'));
    let mut reader =
        Reader { glob, at: at + usize::from(negated), set: Set::default(), before: None };
    // A closing bracket that comes first is one of the characters.
    reader.item()?;
    while reader.glob.get(reader.at) != Some(&b']') {
        reader.item()?;
    }
    let Reader { mut set, at, .. } = reader;
    if negated {
        set.turn_around();
    }
    // A bracket never stands for a slash.
    set.remove(b'/');
    if set == Set::default() {
        return Err(NeverMatches::EmptyBracket);
    }
    Ok((set, at + 1))
}

struct Reader<'a> {
    glob: &'a [u8],
    at: usize,
    set: Set,
    /// What a range may start from.
    before: Option<u8>,
}

impl Reader<'_> {
    /// One character, range or named class.
    fn item(&mut self) -> Result<(), NeverMatches> {
        if let Some(end) = self.named_class()? {
            (self.before, self.at) = (None, end);
            return Ok(());
        }
        if let (Some(first), true) = (self.before, self.is_at_range()) {
            self.at += 1;
            let last = self.character()?;
            (first..=last).for_each(|byte| self.set.add(byte));
            self.before = None;
            return Ok(());
        }
        let byte = self.character()?;
        self.set.add(byte);
        self.before = Some(byte);
        Ok(())
    }

    fn is_at_range(&self) -> bool {
        let rest = &self.glob[self.at.min(self.glob.len())..];
        matches!(rest, [b'-', next, ..] if *next != b']')
    }

    fn character(&mut self) -> Result<u8, NeverMatches> {
        if self.glob.get(self.at) == Some(&b'\\') {
            self.at += 1;
        }
        self.at += 1;
        self.glob.get(self.at - 1).copied().ok_or(NeverMatches::OpenBracket)
    }

    /// Adds a named class if there is one, and says where it ends. What begins like one and does not
    /// end with a colon is made of plain characters.
    fn named_class(&mut self) -> Result<Option<usize>, NeverMatches> {
        let Some(rest) = self.glob.get(self.at..).and_then(|rest| rest.strip_prefix(b"[:")) else {
            return Ok(None);
        };
        let end = rest.iter().position(|byte| *byte == b']').ok_or(NeverMatches::OpenBracket)?;
        let Some(name) = rest[..end].strip_suffix(b":") else { return Ok(None) };
        let is_in = class(name).ok_or(NeverMatches::UnknownClass)?;
        (0..=127).filter(is_in).for_each(|byte| self.set.add(byte));
        Ok(Some(self.at + 2 + end + 1))
    }
}

fn class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        // Git's own idea of white space has neither vertical tabs nor form feeds.
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
