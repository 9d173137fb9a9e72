//! The variables a command starts with, and what may be said in a request.

use ringfence_link::warden::{Code, Failure, Variable};

pub(crate) const WORKSPACE: &[u8] = b"/workspace";
pub(crate) const HOME: &str = "/home/user";

const BASE: [(&str, &str); 6] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", HOME),
    ("USER", "user"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("TMPDIR", "/tmp"),
];

/// Nothing of the host's: the usual few, the sandbox's own, then those of the request.
pub(crate) fn environment(sandbox: &[(String, String)], request: &[Variable]) -> Vec<Vec<u8>> {
    let base = BASE.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let own = sandbox.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let given = request.iter().map(|(name, value)| (&name[..], &value[..]));
    let mut variables: Vec<(&[u8], &[u8])> = Vec::new();
    for (name, value) in base.chain(own).chain(given) {
        match variables.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => variables.push((name, value)),
        }
    }
    variables.iter().map(|(name, value)| [name, &b"="[..], value].concat()).collect()
}

/// Names must be names, and nothing may hold a NUL: it would end the text unseen.
pub(crate) fn check_variables(variables: &[Variable]) -> Result<(), Failure> {
    for (name, value) in variables {
        if !is_name(name) {
            let name = String::from_utf8_lossy(name);
            return Err(invalid(format!(
                "{name:?} is not a name for a variable: use letters, digits and _"
            )));
        }
        check_text(value, &format!("the value of {}", String::from_utf8_lossy(name)))?;
    }
    Ok(())
}

pub(crate) fn is_name(name: &[u8]) -> bool {
    let starts_well = name.first().is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_');
    starts_well && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_')
}

pub(crate) fn check_text(text: &[u8], what: &str) -> Result<(), Failure> {
    match text.contains(&0) {
        true => Err(invalid(format!("{what} holds a NUL byte"))),
        false => Ok(()),
    }
}

pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidArgument, message)
}

/// A directory of a request: relative ones are meant from the workspace.
pub(crate) fn directory(given: Option<&[u8]>) -> Result<Vec<u8>, Failure> {
    let Some(given) = given else { return Ok(WORKSPACE.to_vec()) };
    check_text(given, "the working directory")?;
    match given {
        [b'/', ..] => Ok(given.to_vec()),
        [] => Ok(WORKSPACE.to_vec()),
        relative => Ok([WORKSPACE, b"/", relative].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_variables_replace_earlier_ones() {
        let sandbox = [("A".to_string(), "1".to_string()), ("HOME".into(), "/h".into())];
        let env = environment(&sandbox, &[(b"A".to_vec(), b"$(x)\n'".to_vec())]);
        assert!(env.contains(&b"A=$(x)\n'".to_vec()));
        assert!(env.contains(&b"HOME=/h".to_vec()));
        assert_eq!(env.iter().filter(|entry| entry.starts_with(b"A=")).count(), 1);
    }

    #[test]
    fn names_are_checked_and_nul_is_refused() {
        for bad in ["A-B", "1A", "A B", "", "A=B"] {
            assert!(check_variables(&[(bad.into(), b"x".to_vec())]).is_err(), "{bad}");
        }
        assert!(check_variables(&[(b"A_1".to_vec(), b"x\0".to_vec())]).is_err());
        assert!(check_variables(&[(b"_a".to_vec(), b"".to_vec())]).is_ok());
    }

    #[test]
    fn a_relative_directory_is_below_the_workspace() {
        assert_eq!(directory(Some(b"src")).unwrap(), b"/workspace/src");
        assert_eq!(directory(Some(b"/tmp")).unwrap(), b"/tmp");
        assert_eq!(directory(None).unwrap(), b"/workspace");
        assert!(directory(Some(b"/a\0b")).is_err());
    }
}
