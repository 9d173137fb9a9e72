//! Accounts: what belongs to one is invisible to all others.

use crate::problem::{Problem, Result};

use super::{Store, Survives};

/// The account of whoever is let in without a token: the server's own user, over the Unix socket or
/// the loopback interface.
pub const LOCAL: &str = "local";

/// Longer names are nobody's.
const LONGEST_NAME: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
}

impl Store {
    /// The account of that name, which is made if there is none.
    pub fn ensure_account(&self, name: &str) -> Result<Account> {
        check_name(name)?;
        self.write(Survives::PowerLoss, |connection| {
            connection.execute("INSERT OR IGNORE INTO accounts (name) VALUES (?)", [name])?;
            Ok(Account { name: name.to_owned() })
        })
    }

    pub fn account(&self, name: &str) -> Result<Option<Account>> {
        Ok(self.accounts()?.into_iter().find(|account| account.name == name))
    }

    /// In the order of their names.
    pub fn accounts(&self) -> Result<Vec<Account>> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT name FROM accounts ORDER BY name")?;
            let rows = statement.query_map([], |row| Ok(Account { name: row.get(0)? }))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

/// Names stand in logs and on command lines, so they are plain.
fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
        return Err(Problem::invalid(
            "the name of an account is made of letters, digits and `-_.@`, 100 at most",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_local_account_and_names_are_plain() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert!(store.account(LOCAL).unwrap().is_some());
        store.ensure_account("team-1").unwrap();
        store.ensure_account("team-1").unwrap();
        assert_eq!(store.accounts().unwrap().len(), 2);
        for bad in ["", "a b", "a\nb", "ä", &"x".repeat(101)] {
            assert!(store.ensure_account(bad).is_err(), "{bad:?}");
        }
    }
}
