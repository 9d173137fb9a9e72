//! What a pattern is made of. No wildcard but `**` stands for a slash, so a pattern for a path is a
//! row of patterns for names.

use super::NeverMatches;
use super::bracket::{self, Set};
use super::gapped::Gapped;
use super::line::Line;

/// A pattern, as simple as it can be had.
#[derive(Debug)]
pub(super) enum Glob {
    /// Exactly this name, in any directory.
    Name(Box<[u8]>),
    /// A name that ends like this, which is not empty.
    Ending(Box<[u8]>),
    /// Exactly this path.
    Path(Box<[u8]>),
    WildName(WildName),
    WildPath(WildPath),
}

/// One byte of a name.
#[derive(Debug)]
enum Atom {
    Byte(u8),
    Any,
    OneOf(Box<Set>),
}

/// A name. The gaps are its stars.
#[derive(Debug, Default)]
pub(super) struct WildName(Gapped<Atom>);

/// A path. The gaps of `names` are any number of whole names, none included.
#[derive(Debug)]
pub(super) struct WildPath {
    /// Compared by itself. The rest is a pattern of its own, for what is left of a path: in
    /// `foo**/bar` the stars count as being at the start.
    prefix: Box<[u8]>,
    names: Gapped<WildName>,
}

impl Atom {
    fn takes(&self, byte: &u8) -> bool {
        match self {
            Self::Byte(own) => own == byte,
            Self::Any => true,
            Self::OneOf(set) => set.has(*byte),
        }
    }
}

impl WildName {
    pub(super) fn takes(&self, name: &[u8]) -> bool {
        self.0.fits(name, Atom::takes)
    }

    /// What every name begins with that this takes, if that is one byte.
    pub(super) fn first_byte(&self) -> Option<u8> {
        match self.0.first()? {
            Atom::Byte(byte) => Some(*byte),
            _ => None,
        }
    }

    fn anything() -> Self {
        let mut all = Self::default();
        all.0.gap();
        all
    }

    fn simplest(self) -> Glob {
        let simple = match self.0.runs() {
            [all] => plain(all).map(Glob::Name),
            [start, end] if start.is_empty() && !end.is_empty() => plain(end).map(Glob::Ending),
            _ => None,
        };
        simple.unwrap_or(Glob::WildName(self))
    }
}

fn plain(run: &[Atom]) -> Option<Box<[u8]>> {
    let byte = |atom: &Atom| match atom {
        Atom::Byte(byte) => Some(*byte),
        _ => None,
    };
    run.iter().map(byte).collect()
}

impl WildPath {
    pub(super) fn takes(&self, path: &[u8]) -> bool {
        let Some(rest) = path.strip_prefix(&*self.prefix) else { return false };
        let names = || rest.split(|byte| *byte == b'/');
        // Most paths differ in their last name, which is found without taking the path apart.
        let last = names().next_back().unwrap_or_default();
        self.names.last().is_none_or(|own| own.takes(last))
            && self.names.fits(&names().collect::<Vec<_>>(), |own, name| own.takes(name))
    }

    pub(super) fn first_byte(&self) -> Option<u8> {
        self.prefix.first().copied()
    }
}

pub(super) fn compile(line: &Line<'_>) -> Result<Glob, NeverMatches> {
    let (glob, anchored) = (line.glob, line.anchored);
    let Some(start) = glob.iter().position(|byte| b"*?[\\".contains(byte)) else {
        return Ok(if anchored { Glob::Path(glob.into()) } else { Glob::Name(glob.into()) });
    };
    if !anchored {
        return Ok(name_at(glob, 0)?.0.simplest());
    }
    let (prefix, rest) = glob.split_at(start);
    let path = |names| Glob::WildPath(WildPath { prefix: prefix.into(), names });
    let names = names_of(rest)?;
    Ok(match start {
        // `**/name` is `name`, which means the same and need not look at paths.
        0 => names.one_after_gap().map_or_else(path, WildName::simplest),
        _ => path(names),
    })
}

fn names_of(glob: &[u8]) -> Result<Gapped<WildName>, NeverMatches> {
    let mut names = Gapped::default();
    let mut next = Some(0);
    while let Some(at) = next {
        next = match directories_at(glob, at) {
            Some(Directories { at_least_one, end }) => {
                if at_least_one {
                    names.push(WildName::anything());
                }
                names.gap();
                end
            }
            None => {
                let (name, end) = name_at(glob, at)?;
                names.push(name);
                end
            }
        };
    }
    Ok(names)
}

/// `**` in the place of a name.
struct Directories {
    at_least_one: bool,
    /// Where the next name begins.
    end: Option<usize>,
}

fn directories_at(glob: &[u8], at: usize) -> Option<Directories> {
    let stars = glob[at..].iter().take_while(|byte| **byte == b'*').count();
    let after = at + stars;
    match &glob[after..] {
        _ if stars < 2 => None,
        [] => Some(Directories { at_least_one: true, end: None }),
        [b'/', ..] => Some(Directories { at_least_one: false, end: Some(after + 1) }),
        // This slash is not part of the stars for git, and so there must be one.
        [b'\\', b'/', ..] => Some(Directories { at_least_one: true, end: Some(after + 2) }),
        _ => None,
    }
}

/// The name that begins at `at`, and where the next one does.
fn name_at(glob: &[u8], mut at: usize) -> Result<(WildName, Option<usize>), NeverMatches> {
    let mut name = Gapped::default();
    while let Some(byte) = glob.get(at) {
        at += 1;
        match byte {
            b'/' => return Ok((WildName(name), Some(at))),
            b'*' => name.gap(),
            b'?' => name.push(Atom::Any),
            b'[' => {
                let (set, end) = bracket::parse(glob, at)?;
                name.push(Atom::OneOf(Box::new(set)));
                at = end;
            }
            b'\\' => match glob.get(at).ok_or(NeverMatches::LastBackslash)? {
                // Is read next, as the slash it is.
                b'/' => {}
                escaped => {
                    name.push(Atom::Byte(*escaped));
                    at += 1;
                }
            },
            byte => name.push(Atom::Byte(*byte)),
        }
    }
    Ok((WildName(name), None))
}
