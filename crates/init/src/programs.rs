//! From a spawn request to what exec wants.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use ringfence_link::init::Spawn;

/// The files to try for a program, as `execvp` would: those of `PATH` unless the name has a slash.
pub(crate) fn candidates(program: &[u8], env: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if program.contains(&b'/') || program.is_empty() {
        return vec![program.to_vec()];
    }
    let path = env.iter().find_map(|entry| entry.strip_prefix(b"PATH="));
    let path = path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    let in_dir = |dir: &[u8]| match dir {
        b"" => program.to_vec(),
        dir => [dir, b"/", program].concat(),
    };
    path.split(|byte| *byte == b':').map(in_dir).collect()
}

/// The file that a program is, links followed.
pub(crate) fn find(program: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let env = [[b"PATH=", path].concat()];
    let file = |candidate: Vec<u8>| {
        let file = PathBuf::from(OsString::from_vec(candidate)).canonicalize().ok()?;
        rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).ok()?;
        file.is_file().then(|| file.into_os_string().into_vec())
    };
    candidates(program, &env).into_iter().find_map(file)
}

/// The strings of a request; `None` if one holds a NUL.
pub(crate) struct Strings {
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: CString,
}

impl Strings {
    pub(crate) fn of(request: &Spawn) -> Option<Self> {
        let program = request.program.as_ref().or(request.argv.first())?;
        Some(Self {
            programs: strings(candidates(program, &request.env))?,
            argv: strings(request.argv.iter().cloned())?,
            env: strings(request.env.iter().cloned())?,
            cwd: CString::new(request.cwd.clone()).ok()?,
        })
    }
}

fn strings(list: impl IntoIterator<Item = Vec<u8>>) -> Option<Vec<CString>> {
    list.into_iter().map(|text| CString::new(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::{candidates, find};

    #[test]
    fn a_program_is_the_file_behind_the_links() {
        let sh = std::fs::canonicalize("/bin/sh").unwrap();
        assert_eq!(find(b"sh", b"/nonexistent:/bin"), Some(sh.into_os_string().into_vec()));
        assert_eq!(find(b"/", b""), None);
        assert_eq!(find(b"no-such-program", b"/bin"), None);
    }

    #[test]
    fn a_name_is_looked_for_in_path_and_a_path_is_taken_as_it_is() {
        let env = [b"A=1".to_vec(), b"PATH=/a:/b:".to_vec()];
        assert_eq!(candidates(b"x", &env), [b"/a/x".to_vec(), b"/b/x".into(), b"x".into()]);
        assert_eq!(candidates(b"./x", &env), [b"./x".to_vec()]);
        assert_eq!(candidates(b"x", &[]).last().unwrap(), b"/bin/x");
    }
}
