//! Made-up ignore files over one tree, about which git and the mask must agree.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use ringfence_fs::layers::mask::{MaskDir, MaskOptions};
use tempfile::TempDir;

const DIRECTORIES: &[&[u8]] =
    &[b"a", b"a/b", b"a/b/a", b"foo", b"foo/[a]", b"foo/bar", b"foo/bar/abc", b"\xc3\xa9", b"!a"];

/// Names that patterns made of [`PIECES`] can tell apart.
const NAMES: &[&[u8]] = &[
    b"ab",
    b"abc",
    b"foobar",
    b"a.b",
    b"A",
    b"x-y",
    b"#a",
    b"[a]",
    b"a]",
    b"*",
    b"**",
    b"\\",
    b"a\\",
    b"-",
    b"^",
    b"{a,b}",
    b"\xff\xfe",
    b" ",
    b"a ",
    b"a\tb",
    b"a\r",
    b"4",
];

const PLAIN: &[&[u8]] = &[
    b"a",
    b"b",
    b"ab",
    b"foo",
    b"bar",
    b".",
    b"-",
    b"/",
    b"{a,b}",
    b"\xc3\xa9",
    b"\xff",
    b" ",
    b"\t",
];
const STARS: &[&[u8]] = &[b"*", b"*", b"**", b"***", b"?", b"**/", b"/**", b"/**/", b"*/", b"/*"];
const ESCAPES: &[&[u8]] = &[b"\\", b"\\*", b"\\a", b"\\/", b"\\\\", b"**\\/", b"\\ "];
const BRACKETS: &[&[u8]] = &[
    b"[ab]",
    b"[!a]",
    b"[^a]",
    b"[a-c]",
    b"[c-a]",
    b"[]a]",
    b"[!]]",
    b"[a-]",
    b"[\\]]",
    b"[/]",
    b"[--a]",
    b"[a\\-c]",
    b"[!a-z]",
    b"[a-\\c]",
    b"[[:alpha:]]",
    b"[[:lower:]-]",
    b"[[:digit:][:upper:]]",
    b"[a-[:alpha:]]",
    b"[![:alpha:]]",
    b"[ ]",
    b"[[:nope:]]",
    b"[[:]",
    b"[[::]]",
    b"[\x80-\xff]",
];
const STARTS: &[&[u8]] = &[b"", b"", b"", b"!", b"!", b"/", b"!/", b"\\", b"**/"];
const ENDS: &[&[u8]] = &[b"", b"", b"", b"", b"/", b" ", b"\\ ", b"  ", b"/**", b"*"];

fn piece() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![select(PLAIN), select(STARS), select(STARS), select(ESCAPES), select(BRACKETS)]
}

/// A path of the tree with a part of it made wild, so that many lines match something.
fn wild_path() -> impl Strategy<Value = Vec<u8>> {
    let place = (select(DIRECTORIES), select(NAMES), any::<bool>());
    (place, any::<prop::sample::Index>(), 0..4usize, piece()).prop_map(
        |(place, at, length, piece)| {
            let (directory, name, with_directory) = place;
            let mut line =
                if with_directory { [directory, b"/", name].concat() } else { name.to_vec() };
            let start = at.index(line.len());
            let end = (start + length).min(line.len());
            line.splice(start..end, piece.iter().copied());
            line
        },
    )
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let made_up = vec(piece(), 1..6).prop_map(|pieces| pieces.concat());
    let body = prop_oneof![wild_path(), made_up];
    (select(STARTS), body, select(ENDS)).prop_map(|(start, body, end)| [start, &body, end].concat())
}

fn ignore_file() -> impl Strategy<Value = Vec<u8>> {
    let ends: &[&[u8]] = &[b"\n", b"\n", b"\r\n"];
    let marks: &[&[u8]] = &[b"", b"", b"", b"\xef\xbb\xbf"];
    (select(marks), vec(line(), 1..7), select(ends))
        .prop_map(|(mark, lines, end)| [mark, &lines.join(end), end].concat())
}

/// The root's, and one of a directory.
fn ignore_files() -> impl Strategy<Value = [(&'static [u8], Vec<u8>); 2]> {
    (ignore_file(), select(DIRECTORIES), ignore_file())
        .prop_map(|(root, directory, deeper)| [(&b""[..], root), (directory, deeper)])
}

#[test]
fn made_up_ignore_files_mean_what_they_mean_to_git() {
    let Some(git) = Git::new() else { return };
    git.plant();
    let paths = below(&git.tree(), b"");
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let agree = |files: [(&[u8], Vec<u8>); 2]| {
        let files =
            files.map(|(directory, text)| (git.tree_at(directory).join(".gitignore"), text));
        files.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
        let (ours, gits) = (git.ignored_by_us(), git.ignored(&paths));
        files.iter().for_each(|(path, _)| fs::remove_file(path).unwrap());
        prop_assert_eq!(shown(&ours), shown(&gits));
        Ok(())
    };
    TestRunner::new(config).run(&ignore_files(), agree).unwrap();
}

#[test]
fn every_class_has_the_bytes_it_has_for_git() {
    let Some(git) = Git::new() else { return };
    let names: Vec<Vec<u8>> =
        (1..=255).filter(|byte| *byte != b'/').map(|byte| vec![b'x', byte]).collect();
    names.iter().for_each(|name| git.plant_file(name));
    let classes = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit";
    for class in classes.split(' ') {
        fs::write(git.tree().join(".gitignore"), format!("x[[:{class}:]]\n")).unwrap();
        let ours = git.ignored_by_us();
        assert_eq!(shown(&ours), shown(&git.ignored(&names)), "{class}");
        assert!(!ours.is_empty(), "{class}");
    }
}

fn shown(paths: &BTreeSet<Vec<u8>>) -> Vec<String> {
    paths.iter().map(|path| path.escape_ascii().to_string()).collect()
}

/// A tree, and git with a repository outside of it. Nothing of the machine or its user plays a part.
struct Git(TempDir);

impl Git {
    /// Nothing where git is not installed, unless everything is required.
    fn new() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            assert!(std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(), "git is required");
            eprintln!("skipped: git is not installed");
            return None;
        }
        let git = Self(tempfile::tempdir().unwrap());
        fs::create_dir(git.tree()).unwrap();
        let made = git.run(&["init", "--quiet", "--bare", "../repository"], b"");
        assert!(made.status.success(), "{made:?}");
        Some(git)
    }

    fn tree(&self) -> std::path::PathBuf {
        self.0.path().join("tree")
    }

    fn tree_at(&self, path: &[u8]) -> std::path::PathBuf {
        self.tree().join(OsStr::from_bytes(path))
    }

    fn plant_file(&self, path: &[u8]) {
        File::create(self.tree_at(path)).unwrap();
    }

    /// Every name in every directory.
    fn plant(&self) {
        for directory in DIRECTORIES {
            fs::create_dir_all(self.tree_at(directory)).unwrap();
        }
        for directory in DIRECTORIES {
            for name in NAMES {
                let path = [directory, &b"/"[..], name].concat();
                if !self.tree_at(&path).exists() {
                    self.plant_file(&path);
                }
            }
        }
        std::os::unix::fs::symlink("a", self.tree().join("b")).unwrap();
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.tree()).env_clear();
        git.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.0.path());
        git.env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C");
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = git.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().unwrap()
        })
    }

    /// Those of `paths` that git ignores.
    fn ignored(&self, paths: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
        let input = paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect::<Vec<_>>();
        let place = ["--git-dir=../repository", "--work-tree=.", "-c", "core.bare=false"];
        let ask = ["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"];
        let done = self.run(&[&place[..], &ask[..]].concat(), &input);
        // It ends with 1 where nothing is ignored.
        assert!(matches!(done.status.code(), Some(0 | 1)), "{done:?}");
        let fields: Vec<&[u8]> = done.stdout.split(|byte| *byte == 0).collect();
        // File, line, pattern and path of each.
        let answers = fields.chunks_exact(4).filter(|answer| {
            let pattern = answer[2];
            !pattern.is_empty() && !pattern.starts_with(b"!")
        });
        answers.map(|answer| answer[3].to_vec()).collect()
    }

    fn ignored_by_us(&self) -> BTreeSet<Vec<u8>> {
        let options = MaskOptions { files: vec![".gitignore".into()], ..Default::default() };
        let mask = MaskDir::root(&options, File::open(self.tree()).unwrap()).unwrap();
        let mut found = BTreeSet::new();
        hidden(&self.tree(), b"", &mask, &mut found);
        found.retain(|path| !path.ends_with(b".gitignore"));
        found
    }
}

/// All paths that are hidden below `directory`, with all that is below them.
fn hidden(directory: &Path, prefix: &[u8], mask: &Arc<MaskDir>, found: &mut BTreeSet<Vec<u8>>) {
    for (name, path, is_directory) in entries(directory, prefix) {
        let place = directory.join(OsStr::from_bytes(&name));
        if mask.hides(&name, is_directory) {
            found.extend(below_if(is_directory, &place, &path));
            found.insert(path);
        } else if is_directory {
            let inner = mask.enter(&name, File::open(&place).unwrap());
            hidden(&place, &path, &inner, found);
        }
    }
}

fn below_if(is_directory: bool, place: &Path, path: &[u8]) -> Vec<Vec<u8>> {
    if is_directory { below(place, path) } else { vec![] }
}

fn below(directory: &Path, prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for (name, path, is_directory) in entries(directory, prefix) {
        let place = directory.join(OsStr::from_bytes(&name));
        found.extend(below_if(is_directory, &place, &path));
        found.push(path);
    }
    found
}

/// Name, path, and whether it is a directory.
fn entries(directory: &Path, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>, bool)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_vec();
        let slash = if prefix.is_empty() { &b""[..] } else { b"/" };
        let path = [prefix, slash, &name].concat();
        (name, path, entry.file_type().unwrap().is_dir())
    };
    fs::read_dir(directory).unwrap().map(entry).collect()
}
