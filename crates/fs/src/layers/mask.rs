//! The mask over the base: paths that count as absent there, by gitignore patterns.
//!
//! A masked path is not hidden by policy: the sandbox may create it, and then it lives in the live
//! layer like any new file. This is how ignored files stay out when a local directory is used in
//! place (`npm install` into an ignored `node_modules` works and does not see the host's).
//!
//! From the weakest to the strongest word: the weak patterns, the ignore files (a deeper directory
//! wins over the ones above it, in one directory a later name of [`MaskOptions::files`] over an
//! earlier one), the patterns. The SDK leaves out the same of what it uploads.

use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

pub use super::gitignore::NeverMatches;
use super::gitignore::{self, Entry, Rules};
use crate::error::MountError;

/// The ignore file that is meant for sandboxes.
const SANDBOXIGNORE: &str = ".sandboxignore";

/// The names of both kinds of ignore files, the stronger one last.
pub fn ignore_files() -> Vec<String> {
    [".gitignore", SANDBOXIGNORE].map(String::from).to_vec()
}

/// What to leave out of the base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MaskOptions {
    /// Patterns as in a `.gitignore` at the base's root. They rank above the ignore files.
    pub patterns: Vec<String>,
    /// Names of ignore files honoured in every directory (`.gitignore`, `.sandboxignore`).
    pub files: Vec<String>,
    /// Patterns that rank below all others. They protect secrets, so a `.gitignore` cannot bring back
    /// what they leave out: its `!.env` was meant for git. A `.sandboxignore` and `patterns` can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weak: Vec<String>,
}

impl MaskOptions {
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.files.is_empty() && self.weak.is_empty()
    }

    /// Whoever gives a pattern wants something left out, so one that can match nothing is a mistake.
    pub fn check(&self) -> Result<(), MountError> {
        self.patterns.iter().chain(&self.weak).try_for_each(|pattern| {
            let bad = |reason| MountError::BadMask { pattern: pattern.clone(), reason };
            gitignore::check(pattern.as_bytes()).map_err(bad)
        })
    }
}

#[derive(Debug)]
struct Shared {
    patterns: Rules,
    weak: Rules,
    files: Vec<String>,
}

/// The mask as it applies inside one directory of the base: its own ignore files over its parents'.
#[derive(Debug)]
pub struct MaskDir {
    shared: Arc<Shared>,
    /// The nearest directory above that has ignore files.
    above: Option<Arc<MaskDir>>,
    /// Path of this directory below the base, without a leading slash, with a trailing one.
    prefix: Vec<u8>,
    /// Of this directory, the strongest first.
    files: Vec<IgnoreFile>,
}

#[derive(Debug)]
struct IgnoreFile {
    rules: Rules,
    /// Its `!` lines bring back what the weak patterns leave out.
    lifts_weak: bool,
}

impl MaskDir {
    /// Compiles the mask for the root of the base; `None` if nothing is masked.
    pub fn root(options: &MaskOptions, root: impl AsFd) -> Option<Arc<Self>> {
        if options.is_empty() {
            return None;
        }
        let rules = |patterns: &[String]| Rules::of(patterns.join("\n").as_bytes());
        let shared = Arc::new(Shared {
            patterns: rules(&options.patterns),
            weak: rules(&options.weak),
            files: options.files.clone(),
        });
        let files = read_ignore_files(&shared.files, root);
        Some(Arc::new(Self { shared, above: None, prefix: Vec::new(), files }))
    }

    /// The mask inside the directory `name` of this one, whose descriptor is `dir`.
    pub fn enter(self: &Arc<Self>, name: &[u8], dir: impl AsFd) -> Arc<Self> {
        let prefix = [&self.prefix, name, b"/"].concat();
        let files = read_ignore_files(&self.shared.files, dir);
        let above = if self.files.is_empty() { self.above.clone() } else { Some(self.clone()) };
        Arc::new(Self { shared: self.shared.clone(), above, prefix, files })
    }

    /// Whether the entry `name` of this directory counts as absent.
    ///
    /// As in git the last matching pattern of the nearest file decides; a name below an excluded
    /// directory never gets here, because the directory itself is absent.
    pub fn hides(&self, name: &[u8], is_directory: bool) -> bool {
        let path = [&self.prefix, name].concat();
        let entry = Entry { name, path: &path, is_directory };
        if let Some(leaves_out) = self.shared.patterns.leave_out(entry) {
            return leaves_out;
        }
        match self.said_by_files(entry) {
            Said::LeaveOut => true,
            Said::KeepAnyway => false,
            Said::Keep => self.shared.weak.leave_out(entry) == Some(true),
        }
    }

    fn said_by_files(&self, entry: Entry<'_>) -> Said {
        let mut is_kept = false;
        for (file, start) in self.files_from_here_up() {
            let below = Entry { path: &entry.path[start..], ..entry };
            match file.rules.leave_out(below) {
                None => {}
                Some(true) if !is_kept => return Said::LeaveOut,
                // The nearest word counts, and about the weak patterns the nearest that may lift them.
                Some(true) if file.lifts_weak => return Said::Keep,
                Some(false) if file.lifts_weak => return Said::KeepAnyway,
                Some(_) => is_kept = true,
            }
        }
        Said::Keep
    }

    /// All ignore files, the strongest first, with the length of the path to their directory.
    fn files_from_here_up(&self) -> impl Iterator<Item = (&IgnoreFile, usize)> {
        let directories = std::iter::successors(Some(self), |dir| dir.above.as_deref());
        directories.flat_map(|dir| dir.files.iter().map(|file| (file, dir.prefix.len())))
    }
}

/// What the ignore files say together.
enum Said {
    LeaveOut,
    /// Unless the weak patterns leave it out.
    Keep,
    KeepAnyway,
}

fn read_ignore_files(names: &[String], dir: impl AsFd) -> Vec<IgnoreFile> {
    let read = |name: &String| {
        let rules = Rules::of(&read_ignore_file(name, &dir)?);
        (!rules.is_empty()).then(|| IgnoreFile { rules, lifts_weak: name == SANDBOXIGNORE })
    };
    names.iter().rev().filter_map(read).collect()
}

/// Ignore files are untrusted text of the base: bounded and never followed. As for git there is none
/// if it is unreadable or no regular file.
fn read_ignore_file(name: &str, dir: &impl AsFd) -> Option<Vec<u8>> {
    const LARGEST: u64 = 1 << 20;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = std::fs::File::from(openat(dir, name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;

    use super::*;

    fn options(patterns: &[&str], weak: &[&str]) -> MaskOptions {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        MaskOptions { patterns: texts(patterns), files: ignore_files(), weak: texts(weak) }
    }

    fn base(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("x/y")).unwrap();
        for (path, text) in files {
            fs::write(dir.path().join(path), text).unwrap();
        }
        dir
    }

    /// Of a file `path` in one of the directories above.
    fn hides(options: &MaskOptions, base: &Path, path: &str) -> bool {
        let mut mask = MaskDir::root(options, File::open(base).unwrap()).unwrap();
        let mut names: Vec<&str> = path.split('/').collect();
        let (file, mut here) = (names.pop().unwrap(), base.to_path_buf());
        for name in names {
            here.push(name);
            mask = mask.enter(name.as_bytes(), File::open(&here).unwrap());
        }
        mask.hides(file.as_bytes(), false)
    }

    fn assert_hidden(
        options: &MaskOptions,
        files: &[(&str, &str)],
        hidden: &[&str],
        kept: &[&str],
    ) {
        let base = base(files);
        for path in hidden {
            assert!(hides(options, base.path(), path), "{path} is there with {files:?}");
        }
        for path in kept {
            assert!(!hides(options, base.path(), path), "{path} is missing with {files:?}");
        }
    }

    #[test]
    fn in_one_directory_sandboxignore_wins_and_a_deeper_one_over_both() {
        let none = options(&[], &[]);
        let files = [(".gitignore", "a\n!b\n"), (".sandboxignore", "!a\nb\n")];
        assert_hidden(&none, &files, &["b", "x/y/b"], &["a", "x/a"]);
        let files = [(".sandboxignore", "!a\nb\n"), ("x/.gitignore", "a\n!b\n")];
        assert_hidden(&none, &files, &["b", "x/a", "x/y/a"], &["a", "x/y/b"]);
    }

    #[test]
    fn patterns_have_the_last_word() {
        let given = options(&["!a", "b", "x/c"], &[]);
        let files = [(".gitignore", "a\n!b\n"), ("x/.sandboxignore", "a\n!b\n!c\n")];
        assert_hidden(&given, &files, &["b", "x/b", "x/c"], &["a", "x/a", "c"]);
    }

    #[test]
    fn a_gitignore_does_not_bring_back_what_weak_patterns_leave_out() {
        let weak = options(&[], &[".env"]);
        let files = [(".gitignore", "!.env\n"), ("x/.gitignore", "!.env\n")];
        assert_hidden(&weak, &files, &[".env", "x/.env", "x/y/.env"], &["env"]);
    }

    #[test]
    fn a_sandboxignore_and_the_caller_bring_it_back() {
        let weak = options(&[], &[".env", "*.pyc"]);
        let files = [(".sandboxignore", "!.env\n"), ("x/.gitignore", "!.env\n")];
        assert_hidden(&weak, &files, &["a.pyc"], &[".env", "x/.env", "x/y/.env"]);
        assert_hidden(&options(&["!.env"], &[".env"]), &[(".gitignore", ".env\n")], &[], &[".env"]);
    }

    #[test]
    fn the_nearest_sandboxignore_decides_about_weak_patterns() {
        let weak = options(&[], &[".env"]);
        let root = (".sandboxignore", "!.env\n");
        let files = [root, ("x/.sandboxignore", ".env\n"), ("x/y/.gitignore", "!.env\n")];
        assert_hidden(&weak, &files, &["x/.env", "x/y/.env"], &[".env"]);
        assert_hidden(&weak, &[root, ("x/.gitignore", ".env\n")], &["x/.env"], &[".env"]);
    }

    #[test]
    fn an_ignore_file_is_a_regular_file_and_read_up_to_a_bound() {
        let none = options(&[], &[]);
        let long = "a\n".to_owned() + &"#".repeat(1 << 20) + "\nb\n";
        assert_hidden(&none, &[(".gitignore", &long)], &["a"], &["b"]);
        let base = base(&[("list", "a\n")]);
        std::os::unix::fs::symlink("list", base.path().join(".gitignore")).unwrap();
        fs::create_dir(base.path().join(".sandboxignore")).unwrap();
        assert!(!hides(&none, base.path(), "a"));
    }

    #[test]
    fn a_mask_that_was_stored_before_there_were_weak_patterns_is_the_same_now() {
        let stored = r#"{"patterns":["a"],"files":[".gitignore"]}"#;
        let read: MaskOptions = serde_json::from_str(stored).unwrap();
        assert!(read.weak.is_empty());
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }
}
