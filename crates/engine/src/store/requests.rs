//! Answers kept for callers who ask again: the same request does nothing twice.

use rusqlite::{Connection, OptionalExtension};

use crate::problem::{Problem, Result};

use super::{Store, Survives, now_ms};

/// How long an answer is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Ids are chosen by callers.
const LONGEST_ID: usize = 256;

/// What to do with a request that carries an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// Nobody has asked this before: do it, then `finish_request` or `abandon_request`.
    New,
    /// It was done; this was the answer.
    Done(Vec<u8>),
    /// Somebody is at it.
    InProgress,
}

impl Store {
    /// Takes the request on, unless it is taken. Of several who ask at once, one gets `New`.
    /// An id that was used for something else (another method, or other content) is refused.
    pub fn begin_request(
        &self,
        account: &str,
        request_id: &str,
        method: &str,
        content: &[u8],
    ) -> Result<Begin> {
        if request_id.is_empty() || request_id.len() > LONGEST_ID {
            return Err(Problem::invalid("a request id is 1 to 256 bytes long"));
        }
        self.write(Survives::Kill, |connection| match find(connection, account, request_id)? {
            Some(known) if known.method != method || known.content != content => {
                Err(Problem::invalid("the request id was used for something else"))
            }
            Some(Known { answer: Some(answer), .. }) => Ok(Begin::Done(answer)),
            Some(_) => Ok(Begin::InProgress),
            None => {
                let sql = "INSERT INTO requests
                           (account, request_id, method, content, created_ms)
                           VALUES (?, ?, ?, ?, ?)";
                connection.execute(sql, (account, request_id, method, content, now_ms()))?;
                Ok(Begin::New)
            }
        })
    }

    /// From now on this is the answer.
    pub fn finish_request(&self, account: &str, request_id: &str, answer: &[u8]) -> Result<()> {
        let sql = "UPDATE requests SET answer = ? WHERE account = ? AND request_id = ?";
        self.write(Survives::Kill, |connection| {
            connection.execute(sql, (answer, account, request_id))?;
            Ok(())
        })
    }

    /// It came to nothing: the next who asks does it anew. An answer that was given stays.
    pub fn abandon_request(&self, account: &str, request_id: &str) -> Result<()> {
        let sql = "DELETE FROM requests WHERE account = ? AND request_id = ? AND answer IS NULL";
        self.write(Survives::Kill, |connection| {
            connection.execute(sql, [account, request_id])?;
            Ok(())
        })
    }

    /// Forgets answers that are older than a day. Says how many.
    pub fn sweep_requests(&self) -> Result<usize> {
        self.sweep_requests_before(now_ms() - KEPT_MS)
    }

    fn sweep_requests_before(&self, time_ms: i64) -> Result<usize> {
        let sql = "DELETE FROM requests WHERE created_ms < ? AND answer IS NOT NULL";
        self.write(Survives::Kill, |connection| Ok(connection.execute(sql, [time_ms])?))
    }
}

/// Whoever was at it in a former life of the server will not come back.
pub(super) fn abandon_all(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM requests WHERE answer IS NULL", [])?;
    Ok(())
}

struct Known {
    method: String,
    content: Vec<u8>,
    answer: Option<Vec<u8>>,
}

fn find(connection: &Connection, account: &str, request_id: &str) -> Result<Option<Known>> {
    let sql = "SELECT * FROM requests WHERE account = ? AND request_id = ?";
    let read = |row: &rusqlite::Row<'_>| {
        let (method, content) = (row.get("method")?, row.get("content")?);
        Ok(Known { method, content, answer: row.get("answer")? })
    };
    Ok(connection.prepare_cached(sql)?.query_row([account, request_id], read).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LOCAL;

    #[test]
    fn the_same_request_is_done_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.ensure_account("other").unwrap();
        let begin = |account| store.begin_request(account, "r1", "Create", b"x").unwrap();
        assert_eq!(begin(LOCAL), Begin::New);
        assert_eq!(begin(LOCAL), Begin::InProgress);
        assert_eq!(begin("other"), Begin::New, "ids are an account's own");
        store.abandon_request(LOCAL, "r1").unwrap();
        assert_eq!(begin(LOCAL), Begin::New);
        store.finish_request(LOCAL, "r1", b"answer").unwrap();
        assert_eq!(begin(LOCAL), Begin::Done(b"answer".to_vec()));
        store.abandon_request(LOCAL, "r1").unwrap();
        assert_eq!(begin(LOCAL), Begin::Done(b"answer".to_vec()));
        assert!(store.begin_request(LOCAL, "r1", "Exec", b"x").is_err());
        assert!(store.begin_request(LOCAL, "r1", "Create", b"y").is_err());
        assert!(store.begin_request(LOCAL, "", "Exec", b"").is_err());
    }

    #[test]
    fn of_many_who_ask_at_once_one_does_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let new = std::thread::scope(|scope| {
            let ask = || store.begin_request(LOCAL, "r", "Create", b"").unwrap() == Begin::New;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|new| *new).count()
        });
        assert_eq!(new, 1);
    }

    #[test]
    fn a_new_server_abandons_what_the_old_one_was_at_and_keeps_its_answers() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.begin_request(LOCAL, "half", "Create", b"").unwrap();
        store.begin_request(LOCAL, "done", "Create", b"").unwrap();
        store.finish_request(LOCAL, "done", b"x").unwrap();
        drop(store);
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.begin_request(LOCAL, "half", "Create", b"").unwrap(), Begin::New);
        assert_eq!(
            store.begin_request(LOCAL, "done", "Create", b"").unwrap(),
            Begin::Done(b"x".to_vec())
        );
        assert_eq!(store.sweep_requests().unwrap(), 0);
        assert_eq!(store.sweep_requests_before(now_ms() + 1).unwrap(), 1);
        assert_eq!(store.begin_request(LOCAL, "done", "Create", b"").unwrap(), Begin::New);
    }
}
