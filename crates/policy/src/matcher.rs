//! All patterns of a policy as one automaton: one pass over a path says which of them match.
//!
//! The automaton is filled in as paths come by. Built ahead of time it would be faster by some tens
//! of nanoseconds per path, but rules multiply each other's states: nine rules can cost
//! milliseconds before the first path is looked at, and a dozen like `**/*word*` need more states
//! than there is memory. Paths that really occur need few.

use regex_automata::dfa::{StartKind, dense};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

/// Position of a pattern in the order of strength: 0 is the strongest.
pub(crate) type Rank = u32;

/// Weaker than every rule: "no rule".
pub(crate) const NO_RULE: Rank = u32::MAX;

/// What one thread may remember of the automaton before it starts anew.
const CACHE_BYTES: usize = 1 << 20;

pub(crate) struct Matcher {
    dfa: DFA,
    /// One per thread that matches at the same time.
    caches: Pool<Cache, NewCache>,
}

type NewCache = Box<dyn Fn() -> Cache + Send + Sync>;

impl Matcher {
    /// Builds from regular expressions in order of rank, strongest first.
    pub(crate) fn build(regexes: &[&str]) -> Result<Self, String> {
        Self::build_within(regexes, CACHE_BYTES)
    }

    fn build_within(regexes: &[&str], cache_bytes: usize) -> Result<Self, String> {
        // `All` keeps every pattern alive to the end of the path; the usual kind would drop the
        // others at the first match.
        let config = Config::new()
            .match_kind(MatchKind::All)
            .cache_capacity(cache_bytes)
            .skip_cache_capacity_check(true);
        let dfa = Builder::new()
            .configure(config)
            .build_from_nfa(build_nfa(regexes)?)
            .map_err(|error| error.to_string())?;
        let blank = dfa.create_cache();
        let new_cache: NewCache = Box::new(move || blank.clone());
        Ok(Matcher { dfa, caches: Pool::new(new_cache) })
    }

    /// The strongest pattern that matches `path`, or `NO_RULE`.
    pub(crate) fn strongest(&self, path: &[u8]) -> Rank {
        let mut cache = self.caches.get();
        let mut walk = Walk::start(&self.dfa, &mut cache);
        path.iter().for_each(|byte| walk.step(*byte));
        walk.end();
        walk.strongest()
    }

    /// The strongest pattern for each path from the first component of `path` down to the whole,
    /// handed to `visit` in that order.
    pub(crate) fn strongest_along(&self, path: &[u8], mut visit: impl FnMut(Rank)) {
        let Some((_, rest)) = path.split_first() else {
            return;
        };
        let mut cache = self.caches.get();
        let mut walk = Walk::start(&self.dfa, &mut cache);
        walk.step(b'/');
        for byte in rest {
            walk.step(*byte);
            // The automaton tells of a match one byte late: behind `/a/`, about `/a`.
            if *byte == b'/' {
                visit(walk.strongest());
            }
        }
        walk.end();
        visit(walk.strongest());
    }

    /// Every pattern that matches `path`, strongest first.
    pub(crate) fn all(&self, path: &[u8]) -> Vec<Rank> {
        let mut cache = self.caches.get();
        let mut walk = Walk::start(&self.dfa, &mut cache);
        path.iter().for_each(|byte| walk.step(*byte));
        walk.end();
        let mut ranks: Vec<Rank> = walk.matching().collect();
        ranks.sort_unstable();
        ranks
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matcher({} patterns)", self.dfa.pattern_len())
    }
}

/// The automaton on its way along a path. Its only errors are an unavailable start, a byte it must
/// not see and a cache cleared too often, and none of these is configured.
struct Walk<'m> {
    dfa: &'m DFA,
    cache: &'m mut Cache,
    state: LazyStateID,
}

impl<'m> Walk<'m> {
    fn start(dfa: &'m DFA, cache: &'m mut Cache) -> Self {
        let input = Input::new("").anchored(Anchored::Yes);
        let state = dfa.start_state_forward(cache, &input).expect("anchored starts are available");
        Walk { dfa, cache, state }
    }

    fn step(&mut self, byte: u8) {
        let next = self.dfa.next_state(self.cache, self.state, byte);
        self.state = next.expect("the cache may be cleared at will");
    }

    fn end(&mut self) {
        let next = self.dfa.next_eoi_state(self.cache, self.state);
        self.state = next.expect("the cache may be cleared at will");
    }

    fn matching(&self) -> impl Iterator<Item = Rank> {
        let count =
            if self.state.is_match() { self.dfa.match_len(self.cache, self.state) } else { 0 };
        (0..count).map(|index| self.dfa.match_pattern(self.cache, self.state, index).as_u32())
    }

    fn strongest(&self) -> Rank {
        self.matching().min().unwrap_or(NO_RULE)
    }
}

fn build_nfa(regexes: &[&str]) -> Result<NFA, String> {
    thompson::Compiler::new()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(thompson::Config::new().utf8(false).which_captures(WhichCaptures::None))
        .build_many(regexes)
        .map_err(|error| error.to_string())
}

/// The whole automaton ahead of time, for questions that are not about one path. `None` if it
/// would be larger than `bytes`.
pub(crate) fn complete(regexes: &[&str], bytes: usize) -> Option<dense::DFA<Vec<u32>>> {
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Anchored)
        .accelerate(false)
        .dfa_size_limit(Some(bytes))
        .determinize_size_limit(Some(4 * bytes));
    let nfa = build_nfa(regexes).ok()?;
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::Glob;
    use crate::level::Level;
    use crate::rule::Rule;

    fn regex(pattern: &str) -> String {
        Glob::parse(&Rule::glob(Level::Read, pattern)).expect("well formed").to_regex()
    }

    #[test]
    fn a_cache_that_is_always_full_changes_no_answer() {
        let regexes: Vec<String> =
            (0..40).map(|number| regex(&format!("**/*w{number}?{{a,b}}*"))).collect();
        let regexes: Vec<&str> = regexes.iter().map(String::as_str).collect();
        let roomy = Matcher::build(&regexes).expect("compiles");
        let cramped = Matcher::build_within(&regexes, 0).expect("compiles");
        for number in 0..400 {
            let path = format!("/x{number}/w{}-aw{}xb/w{}éa", number % 41, number % 7, number % 13);
            assert_eq!(roomy.all(path.as_bytes()), cramped.all(path.as_bytes()), "{path}");
            let (mut left, mut right) = (Vec::new(), Vec::new());
            roomy.strongest_along(path.as_bytes(), |rank| left.push(rank));
            cramped.strongest_along(path.as_bytes(), |rank| right.push(rank));
            assert_eq!(left, right, "{path}");
        }
    }

    #[test]
    fn threads_share_a_matcher() {
        let matcher = Matcher::build(&[&regex("**/*.key"), &regex("**")]).expect("compiles");
        let decide = || (0..500).all(|n| matcher.strongest(format!("/{n}/x.key").as_bytes()) == 0);
        let agreed = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(decide)).collect();
            threads.into_iter().all(|thread| thread.join().expect("no panic"))
        });
        assert!(agreed);
    }
}
