//! Tokens: secrets that stand for an account. The secret itself is never stored.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::id::{self, Kind};
use crate::problem::{Problem, Result};

use super::record::{self, Conditions, Page, Record};
use super::{Store, Survives, now_ms};

/// The last use is written down this often at most: otherwise every call would be a write.
const USE_GRAIN_MS: i64 = 60_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub account: String,
    /// What it is for, in the words of whoever made it.
    pub label: String,
    /// BLAKE3 of the secret. The secret is as long as a key, so nothing slower is needed.
    pub hash: Vec<u8>,
    pub created_ms: i64,
    pub last_used_ms: Option<i64>,
    pub revoked_ms: Option<i64>,
}

impl Record for Token {
    const TABLE: &'static str = "tokens";
    const COLUMNS: &'static [&'static str] =
        &["id", "account", "label", "hash", "created_ms", "last_used_ms", "revoked_ms"];

    fn values(&self) -> Result<Vec<Value>> {
        Ok(vec![
            self.id.clone().into(),
            self.account.clone().into(),
            self.label.clone().into(),
            self.hash.clone().into(),
            self.created_ms.into(),
            self.last_used_ms.into(),
            self.revoked_ms.into(),
        ])
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            account: row.get("account")?,
            label: row.get("label")?,
            hash: row.get("hash")?,
            created_ms: row.get("created_ms")?,
            last_used_ms: row.get("last_used_ms")?,
            revoked_ms: row.get("revoked_ms")?,
        })
    }

    fn position(&self) -> (i64, &str) {
        (self.created_ms, &self.id)
    }
}

impl Store {
    /// Makes a token of an account. The secret is in the answer and nowhere else.
    pub fn create_token(&self, account: &str, label: &str) -> Result<(Token, String)> {
        if self.account(account)?.is_none() {
            return Err(Problem::invalid(format!("there is no account {account:?}")));
        }
        let secret = format!("rf_{}", id::random_digits::<20>());
        let token = Token {
            id: Kind::Token.random(),
            account: account.to_owned(),
            label: label.to_owned(),
            hash: hash(&secret),
            created_ms: now_ms(),
            last_used_ms: None,
            revoked_ms: None,
        };
        self.write(Survives::PowerLoss, |connection| record::insert(connection, &token))?;
        Ok((token, secret))
    }

    /// The token this secret belongs to, unless it was revoked. Counts as a use.
    pub fn find_token_by_secret(&self, secret: &str) -> Result<Option<Token>> {
        let hash = hash(secret);
        let Some(mut token) = self.read(|connection| find(connection, &hash))? else {
            return Ok(None);
        };
        let now = now_ms();
        if token.last_used_ms.is_none_or(|last| now - last >= USE_GRAIN_MS) {
            token.last_used_ms = Some(now);
            self.write(Survives::Kill, |connection| {
                let used = |token: &mut Token| token.last_used_ms = Some(now);
                record::update(connection, &token.id, used)
            })?;
        }
        Ok(Some(token))
    }

    /// Those of one account, or all of them; revoked ones included.
    pub fn tokens(&self, account: Option<&str>) -> Result<Vec<Token>> {
        let conditions = Conditions::default().and_if(account, "account = ?");
        let listed =
            self.read(|connection| record::list(connection, conditions, &Page::default()))?;
        Ok(listed.items)
    }

    /// Nobody gets in with it any more, not even after a loss of power. Answers whether there is
    /// such a token.
    pub fn revoke_token(&self, id: &str) -> Result<bool> {
        let revoke = |token: &mut Token| {
            token.revoked_ms.get_or_insert_with(now_ms);
        };
        let found =
            self.write(Survives::PowerLoss, |connection| record::update(connection, id, revoke))?;
        Ok(found.is_some())
    }
}

fn find(connection: &Connection, hash: &[u8]) -> Result<Option<Token>> {
    let sql = "SELECT * FROM tokens WHERE hash = ? AND revoked_ms IS NULL";
    Ok(connection.prepare_cached(sql)?.query_row([hash], Token::read).optional()?)
}

fn hash(secret: &str) -> Vec<u8> {
    blake3::hash(secret.as_bytes()).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LOCAL;

    #[test]
    fn a_secret_opens_its_account_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.ensure_account("team").unwrap();
        let (token, secret) = store.create_token("team", "laptop").unwrap();
        let (other, _) = store.create_token(LOCAL, "").unwrap();
        assert!(secret.starts_with("rf_") && secret.len() == 43);
        let found = store.find_token_by_secret(&secret).unwrap().unwrap();
        assert_eq!((found.account.as_str(), found.id.as_str()), ("team", token.id.as_str()));
        assert!(store.tokens(Some("team")).unwrap()[0].last_used_ms.is_some());
        assert_eq!(store.tokens(None).unwrap().len(), 2);
        for wrong in ["", "rf_", &secret[..42], &format!("{secret}0"), &token.id] {
            assert_eq!(store.find_token_by_secret(wrong).unwrap(), None);
        }
        assert!(store.revoke_token(&token.id).unwrap());
        assert!(store.revoke_token(&token.id).unwrap());
        assert!(!store.revoke_token("tok_0").unwrap());
        assert_eq!(store.find_token_by_secret(&secret).unwrap(), None);
        assert_eq!(store.tokens(Some(LOCAL)).unwrap(), [other]);
    }

    #[test]
    fn the_secret_is_nowhere_in_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let (_, secret) = store.create_token(LOCAL, "x").unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(40).any(|part| part == &secret.as_bytes()[3..]));
        }
        assert!(store.create_token("nobody", "x").is_err());
    }
}
