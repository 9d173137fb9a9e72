//! Which paths are legal, and what they mean.
//!
//! `/workspace/x`, `/x` and `x` are the same file: clients know the tree under the name it has
//! inside a sandbox. Only an absolute path can mean that; `workspace/x` is a file in a directory of
//! that name. `..` is refused and not resolved, since nobody means it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use ringfence_policy::WorkspacePath;

use crate::problem::{Problem, Result};

/// Where sandboxes see the tree.
const SEEN_AT: &[u8] = b"workspace";

const LONGEST_NAME: usize = 255;

/// What the kernel takes in one call, with the slash in front and without the final NUL.
const LONGEST_PATH: usize = 4096;

/// Any path in a codebase, its root included.
pub(super) fn parse(spelling: impl AsRef<OsStr>) -> Result<WorkspacePath> {
    let spelling = spelling.as_ref().as_bytes();
    let path = WorkspacePath::parse(spelling)
        .map_err(|error| Problem::invalid(format!("{}: {error}", shown(spelling))))?;
    let path = match spelling.starts_with(b"/") && first(&path) == Some(SEEN_AT) {
        true => without_first(&path)?,
        false => path,
    };
    let too_long = path.as_bytes().len() > LONGEST_PATH
        || path.components().any(|name| name.len() > LONGEST_NAME);
    match too_long {
        true => Err(Problem::invalid(format!("{}: the path is too long", shown(spelling)))),
        false => Ok(path),
    }
}

/// A path that a file can be at.
pub(super) fn parse_file(spelling: impl AsRef<OsStr>) -> Result<WorkspacePath> {
    let path = parse(spelling)?;
    match path.is_root() {
        true => Err(Problem::invalid("the path of a file is required")),
        false => Ok(path),
    }
}

/// Relative to the root, as the kernel is asked for it.
pub(super) fn relative(path: &WorkspacePath) -> &[u8] {
    match path.is_root() {
        true => b".",
        false => &path.as_bytes()[1..],
    }
}

/// A spelling that [`parse`] reads as this path again: `/a/b`, and `/workspace/workspace/b` for what
/// is in a directory of that name.
pub(super) fn full_path(path: &WorkspacePath) -> PathBuf {
    let mut full = Vec::new();
    if first(path) == Some(SEEN_AT) {
        full.push(b'/');
        full.extend_from_slice(SEEN_AT);
    }
    full.extend_from_slice(path.as_bytes());
    OsString::from_vec(full).into()
}

fn first(path: &WorkspacePath) -> Option<&[u8]> {
    path.components().next()
}

fn without_first(path: &WorkspacePath) -> Result<WorkspacePath> {
    let rest: Vec<&[u8]> = path.components().skip(1).collect();
    WorkspacePath::parse(rest.join(&b'/')).map_err(|error| Problem::invalid(error.to_string()))
}

/// The beginning of what was asked for, fit for a message.
fn shown(spelling: &[u8]) -> String {
    match spelling.len() {
        0..=200 => format!("{:?}", String::from_utf8_lossy(spelling)),
        _ => format!("{:?}…", String::from_utf8_lossy(&spelling[..200])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::problem::Code;

    fn relative_of(spelling: &str) -> String {
        String::from_utf8(relative(&parse(spelling).unwrap()).to_vec()).unwrap()
    }

    #[test]
    fn one_file_has_many_spellings() {
        for same in ["x", "/x", "/workspace/x", "//workspace///x", "./x", "/./workspace/./x/", "x/"]
        {
            assert_eq!(relative_of(same), "x", "{same}");
        }
        for root in ["", "/", ".", "/workspace", "/workspace/", "//."] {
            assert!(parse(root).unwrap().is_root(), "{root}");
            assert!(parse_file(root).is_err(), "{root}");
        }
        assert_eq!(relative_of("workspace/x"), "workspace/x");
        assert_eq!(relative_of("/workspacefoo"), "workspacefoo");
        assert_eq!(relative_of("a/..b/..foo/..."), "a/..b/..foo/...");
    }

    #[test]
    fn illegal_paths_are_refused() {
        let long = "a/".repeat(2048) + "b";
        let name = "n".repeat(256);
        for bad in ["..", "../x", "a/../b", "/workspace/..", "a/..", "a\0b", &long, &name] {
            assert_eq!(parse(bad).unwrap_err().code, Code::InvalidArgument, "{bad:?}");
        }
        assert!(parse("n".repeat(255)).is_ok());
        assert!(parse("a/".repeat(2047) + "b").is_ok());
    }

    proptest! {
        #[test]
        fn a_legal_path_has_no_component_that_leads_elsewhere(spelling in "(/|[a-c./]|workspace|\\.\\.){0,12}") {
            if let Ok(path) = parse(&spelling) {
                for name in path.components() {
                    prop_assert!(!matches!(name, b"" | b"." | b".."));
                }
                prop_assert_eq!(parse(full_path(&path)).unwrap(), path);
            } else {
                prop_assert!(spelling.split('/').any(|name| name == ".."));
            }
        }
    }
}
