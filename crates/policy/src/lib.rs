//! May this path be touched this way, and which rule says so?
//!
//! Rules (pattern, level, priority) are compiled into a [`Policy`], which then gives a [`Verdict`]
//! on any path of the workspace: the level, and the rule that decided. It also says what holds for
//! everything that could be below a directory ([`Policy::subtree`]) and why a path is as it is
//! ([`Policy::explain`]). Presets, policy files and a linter for rules live here too, so that
//! server, CLI and filesystem mean the same by the same words.
//!
//! The crate is pure. It refuses to know files, processes, the clock, async and the environment:
//! a policy file is text somebody else has read, and whether a path exists is no concern of it.
//! That a hidden directory with a visible entry can be entered is therefore decided by the
//! filesystem, which asks `subtree` first and looks at the disk only if the answer is "mixed".
//!
//! Start reading at `policy.rs`: `compile` puts the rules in order of strength, `below` is the whole
//! decision. `glob/` says what patterns mean, `matcher.rs` finds those that match, `subtree.rs` and
//! `shadow.rs` answer for all possible paths at once. `api/vectors/policy.json` holds the cases every
//! language must agree on.
//!
//! ```
//! use ringfence_policy::{Level, Policy, Rule, Subtree, WorkspacePath, preset};
//!
//! let mut rules = preset("agent-safe").expect("built in");
//! rules.push(Rule::parse_cli("read:/config/.env.example@200")?);
//! let policy = Policy::compile(rules)?;
//!
//! let example = WorkspacePath::parse("config/.env.example")?;
//! let secret = WorkspacePath::parse("config/.env")?;
//! assert_eq!(policy.level(&example), Level::Read);
//! assert_eq!(policy.level(&secret), Level::None);
//! assert_eq!(
//!     policy.explain(&secret).to_string(),
//!     "/config/.env: none, by rule 3 `none:**/.env*@100` (preset agent-safe); \
//!      next rule 0 `read:**/*@0` (preset agent-safe)"
//! );
//!
//! let git = WorkspacePath::parse(".git")?;
//! assert_eq!(policy.subtree(&git).kind(), Subtree::Nothing);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod explain;
mod glob;
mod level;
mod lint;
mod matcher;
mod path;
mod policy;
mod policy_file;
mod preset;
mod rule;
mod shadow;
mod subtree;
mod table;

pub use error::{
    CompileError, PathError, PatternError, PatternFault, PolicyFileError, PolicyFileFault,
    PresetError, RuleError,
};
pub use explain::{Explanation, RuleRef};
pub use level::Level;
pub use lint::{Lint, lint, lint_against};
pub use path::WorkspacePath;
pub use policy::{Policy, Verdict};
pub use policy_file::PolicyFile;
pub use preset::{PresetRegistry, extend_preset, preset, preset_names};
pub use rule::{PatternType, Rule, RuleSource};
pub use subtree::{Bounds, Subtree};
