//! What terminals showed, where that was recorded.

use std::fs::File;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Sandboxes;
use crate::problem::{Code, Problem, Result};

impl Sandboxes {
    /// The asciicast of a terminal, whether the sandbox runs or not. Nothing inside can reach the
    /// directory it is in, and still no link there is followed.
    pub fn recording(&self, account: &str, id: &str, terminal: &str) -> Result<File> {
        self.get(account, id)?;
        if !is_name(terminal) {
            return Err(not_found());
        }
        let failed = |errno: Errno| Problem::internal("open the recording", errno);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = match rustix::fs::openat(CWD, self.dir(id), flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Err(not_found()),
            Err(errno) => return Err(failed(errno)),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = format!("recordings/{terminal}.cast");
        match rustix::fs::openat2(&dir, path, flags, Mode::empty(), beneath) {
            Ok(file) => Ok(file.into()),
            Err(Errno::NOENT) => Err(not_found()),
            Err(errno) => Err(failed(errno)),
        }
    }
}

fn not_found() -> Problem {
    Problem::new(Code::TerminalNotFound, "there is no recording of such a terminal")
}

/// What a warden accepts as the id of a terminal.
fn is_name(id: &str) -> bool {
    let starts_well = id.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    starts_well && id.len() <= 64 && id.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_terminals_become_names_of_files() {
        assert!(is_name("term_0123456789abcdef") && is_name("a.b-c_d"));
        for bad in ["", ".", "..", "../x", "a/b", "a\0b", "-x", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
