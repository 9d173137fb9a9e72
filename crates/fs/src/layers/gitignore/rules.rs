//! The lines of one file together: which of them has the last word about a name.
//!
//! Plain names, endings (`*.log`) and plain paths are looked up. Only what is left is tried one by
//! one, from the last line back to the one that was found before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::glob::{self, Glob, WildName, WildPath};
use super::line;

/// All lines of one ignore file.
#[derive(Debug, Default)]
pub(in crate::layers) struct Rules {
    names: Plain,
    paths: Plain,
    endings: Endings,
    wild_names: Wild<WildName>,
    wild_paths: Wild<WildPath>,
}

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub(in crate::layers) struct Entry<'a> {
    pub(in crate::layers) name: &'a [u8],
    /// From the directory of the ignore file on.
    pub(in crate::layers) path: &'a [u8],
    pub(in crate::layers) is_directory: bool,
}

/// What a line says. A later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    line: usize,
    leaves_out: bool,
    only_directories: bool,
}

impl Rules {
    /// Lines that can match nothing are passed over, as git does.
    pub(in crate::layers) fn of(text: &[u8]) -> Self {
        let mut rules = Self::default();
        for (number, line) in line::lines(text).enumerate() {
            let only_directories = line.only_directories;
            let word = Word { line: number, leaves_out: !line.negated, only_directories };
            if let Ok(glob) = glob::compile(&line) {
                rules.add(glob, word);
            }
        }
        rules
    }

    fn add(&mut self, glob: Glob, word: Word) {
        match glob {
            Glob::Name(name) => self.names.add(name, word),
            Glob::Path(path) => self.paths.add(path, word),
            Glob::Ending(ending) => self.endings.add(ending, word),
            Glob::WildName(name) => self.wild_names.add(name.first_byte(), name, word),
            Glob::WildPath(path) => self.wild_paths.add(path.first_byte(), path, word),
        }
    }

    pub(in crate::layers) fn is_empty(&self) -> bool {
        self.names.0.is_empty()
            && self.paths.0.is_empty()
            && self.endings.words.0.is_empty()
            && self.wild_names.is_empty()
            && self.wild_paths.is_empty()
    }

    /// Whether the entry is left out or kept; nothing if no line is about it.
    pub(in crate::layers) fn leave_out(&self, entry: Entry<'_>) -> Option<bool> {
        let Entry { name, path, is_directory } = entry;
        let plain = self.names.word(name, is_directory).max(self.paths.word(path, is_directory));
        let looked_up = plain.max(self.endings.word(name, is_directory));
        let takes = |glob: &WildName| glob.takes(name);
        let word = self.wild_names.later(looked_up, name, is_directory, takes);
        let takes = |glob: &WildPath| glob.takes(path);
        let word = self.wild_paths.later(word, path, is_directory, takes);
        word.map(|word| word.leaves_out)
    }
}

impl Word {
    fn is_about(self, is_directory: bool) -> bool {
        is_directory || !self.only_directories
    }
}

/// What is said of the same text last: of anything, and of directories.
#[derive(Debug, Default)]
struct Plain(HashMap<Box<[u8]>, [Option<Word>; 2]>);

impl Plain {
    fn add(&mut self, text: Box<[u8]>, word: Word) {
        self.0.entry(text).or_default()[usize::from(word.only_directories)] = Some(word);
    }

    fn word(&self, text: &[u8], is_directory: bool) -> Option<Word> {
        if self.0.is_empty() {
            return None;
        }
        let [anything, directories] = *self.0.get(text)?;
        if is_directory { anything.max(directories) } else { anything }
    }
}

/// However many endings there are, few of them have the same last byte and different lengths.
#[derive(Debug, Default)]
struct Endings {
    words: Plain,
    kinds: BTreeSet<(u8, usize)>,
}

impl Endings {
    fn add(&mut self, ending: Box<[u8]>, word: Word) {
        self.kinds.extend(ending.last().map(|last| (*last, ending.len())));
        self.words.add(ending, word);
    }

    fn word(&self, name: &[u8], is_directory: bool) -> Option<Word> {
        let last = *name.last()?;
        let like_this = self.kinds.range((last, 0)..=(last, name.len()));
        let words = like_this.map(|(_, length)| {
            let (_, ending) = name.split_at(name.len() - length);
            self.words.word(ending, is_directory)
        });
        words.max()?
    }
}

/// Patterns to be tried. Those that begin with a plain byte are asked only about what begins with it.
#[derive(Debug)]
struct Wild<G> {
    by_first_byte: BTreeMap<u8, Vec<(Word, G)>>,
    others: Vec<(Word, G)>,
}

impl<G> Default for Wild<G> {
    fn default() -> Self {
        Self { by_first_byte: BTreeMap::new(), others: Vec::new() }
    }
}

impl<G> Wild<G> {
    fn add(&mut self, first: Option<u8>, glob: G, word: Word) {
        match first {
            Some(byte) => self.by_first_byte.entry(byte).or_default().push((word, glob)),
            None => self.others.push((word, glob)),
        }
    }

    fn is_empty(&self) -> bool {
        self.by_first_byte.is_empty() && self.others.is_empty()
    }

    /// The last line that matches, or `found` if that is later.
    fn later(
        &self,
        found: Option<Word>,
        text: &[u8],
        is_directory: bool,
        takes: impl Fn(&G) -> bool,
    ) -> Option<Word> {
        let same_start = text.first().and_then(|byte| self.by_first_byte.get(byte));
        let lists = [&self.others[..], same_start.map_or(&[], Vec::as_slice)];
        lists.iter().fold(found, |found, list| {
            let later = list.iter().rev().take_while(|(word, _)| Some(*word) > found);
            let mut matching =
                later.filter(|(word, glob)| word.is_about(is_directory) && takes(glob));
            matching.next().map_or(found, |(word, _)| Some(*word))
        })
    }
}
