//! An automaton as a plain table of all its states, for questions that are not about one path but
//! about every path there could be.

use std::collections::HashMap;

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton as _, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;

use crate::matcher::{NO_RULE, Rank, complete};

/// States are numbered from 0, the start: the root of the workspace.
pub(crate) struct Table {
    /// Byte to column. Bytes no state tells apart share one; `/` has one of its own.
    columns: Box<[u8; 256]>,
    /// One byte of each column.
    bytes: Vec<u8>,
    /// `next[state * bytes.len() + column]`
    next: Vec<u32>,
    /// The strongest pattern that matches a path ending in this state, or `NO_RULE`.
    strongest: Vec<Rank>,
}

pub(crate) const START: usize = 0;

impl Table {
    /// Builds from regular expressions in order of rank. `None` if it would take more than `bytes`.
    pub(crate) fn build(regexes: &[&str], bytes: usize) -> Option<Self> {
        Self::copy(&complete(regexes, bytes)?)
    }

    /// Numbers the states in the order they are met and copies what is needed of them.
    fn copy(dfa: &dense::DFA<Vec<u32>>) -> Option<Self> {
        let config = start::Config::new().anchored(Anchored::Yes);
        let (columns, bytes) = columns(dfa);
        let mut states = Numbering::new(dfa.start_state(&config).ok()?);
        let mut next = Vec::new();
        let mut strongest = Vec::new();
        while let Some(state) = states.met.get(strongest.len()).copied() {
            next.extend(bytes.iter().map(|byte| states.number(dfa.next_state(state, *byte))));
            strongest.push(strongest_at(dfa, state));
        }
        Some(Table { columns, bytes, next, strongest })
    }

    pub(crate) fn len(&self) -> usize {
        self.strongest.len()
    }

    pub(crate) fn strongest(&self, state: usize) -> Rank {
        self.strongest[state]
    }

    pub(crate) fn accepts(&self, state: usize) -> bool {
        self.strongest[state] != NO_RULE
    }

    pub(crate) fn column(&self, byte: u8) -> u8 {
        self.columns[usize::from(byte)]
    }

    pub(crate) fn step(&self, state: usize, byte: u8) -> usize {
        self.next[state * self.bytes.len() + usize::from(self.column(byte))] as usize
    }

    pub(crate) fn walk(&self, path: &[u8]) -> usize {
        path.iter().fold(START, |state, byte| self.step(state, *byte))
    }

    /// Where one byte of a name leads from here.
    pub(crate) fn name_steps(&self, state: usize) -> impl Iterator<Item = usize> + '_ {
        let name_bytes = self.bytes.iter().filter(|byte| **byte != b'/');
        name_bytes.map(move |byte| self.step(state, *byte))
    }

    /// For each state taken as the end of a path: can a strict descendant end in a state that is
    /// `wanted`? A descendant is one or more `/name`, a name one or more bytes other than `/`.
    pub(crate) fn can_reach_below(&self, wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        // Seen from inside a name: the path may end here, the name go on, or another one follow.
        let mut in_name: Vec<bool> = (0..self.len()).map(wanted).collect();
        let leads = |marked: &[bool], state| self.name_steps(state).any(|next| marked[next]);
        let mut changed = true;
        while changed {
            changed = false;
            for state in (0..self.len()).rev().filter(|state| !in_name[*state]).collect::<Vec<_>>()
            {
                in_name[state] = leads(&in_name, state) || leads(&in_name, self.step(state, b'/'));
                changed |= in_name[state];
            }
        }
        (0..self.len()).map(|state| leads(&in_name, self.step(state, b'/'))).collect()
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({} states)", self.len())
    }
}

/// Numbers given out in the order states are met.
struct Numbering {
    met: Vec<StateID>,
    numbers: HashMap<StateID, u32>,
}

impl Numbering {
    fn new(start: StateID) -> Self {
        Numbering { met: vec![start], numbers: HashMap::from([(start, START as u32)]) }
    }

    fn number(&mut self, state: StateID) -> u32 {
        *self.numbers.entry(state).or_insert_with(|| {
            self.met.push(state);
            self.met.len() as u32 - 1
        })
    }
}

fn strongest_at(dfa: &dense::DFA<Vec<u32>>, state: StateID) -> Rank {
    let end = dfa.next_eoi_state(state);
    let count = if dfa.is_match_state(end) { dfa.match_len(end) } else { 0 };
    let ranks = (0..count).map(|index| dfa.match_pattern(end, index).as_u32());
    ranks.min().unwrap_or(NO_RULE)
}

fn columns(dfa: &dense::DFA<Vec<u32>>) -> (Box<[u8; 256]>, Vec<u8>) {
    let classes = dfa.byte_classes();
    let mut columns = Box::new([0; 256]);
    let mut bytes: Vec<u8> = Vec::new();
    for byte in 0..=255u8 {
        let alike = |known: &u8| {
            classes.get(*known) == classes.get(byte) && (*known == b'/') == (byte == b'/')
        };
        let column = bytes.iter().position(alike).unwrap_or_else(|| {
            bytes.push(byte);
            bytes.len() - 1
        });
        columns[usize::from(byte)] = column as u8;
    }
    (columns, bytes)
}
