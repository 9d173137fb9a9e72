//! Names of things: a prefix that says what, and random digits that cannot be guessed.
//!
//! Ids become names of directories, so nothing but what [`check`] accepts is ever looked for.

/// What an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Codebase,
    Sandbox,
    Snapshot,
    Token,
    Layer,
}

impl Kind {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Codebase => "cb_",
            Self::Sandbox => "sb_",
            Self::Snapshot => "snap_",
            Self::Token => "tok_",
            Self::Layer => "ly_",
        }
    }

    /// An id that nobody had before.
    pub fn random(self) -> String {
        format!("{}{}", self.prefix(), random_digits::<8>())
    }

    /// Whether this can be an id of the kind. What cannot be one names nothing.
    pub fn check(self, id: &str) -> bool {
        id.strip_prefix(self.prefix()).is_some_and(|digits| {
            digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        })
    }
}

/// Two hexadecimal digits for each of `N` random bytes.
pub fn random_digits<const N: usize>() -> String {
    let mut bytes = [0u8; N];
    // The kernel's generator does not fail once the system has started.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_the_kind_are_accepted() {
        let id = Kind::Sandbox.random();
        assert!(Kind::Sandbox.check(&id) && !Kind::Codebase.check(&id));
        assert_ne!(id, Kind::Sandbox.random());
        for bad in ["", "sb_", "sb_../../../../etcxx", "sb_00112233445566GG", "sb_001122334455667"]
        {
            assert!(!Kind::Sandbox.check(bad), "{bad}");
        }
    }
}
