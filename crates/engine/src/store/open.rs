//! The state directory, its lock, and the connections.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

use super::seen::Seen;
use super::{Shared, Store, Survives, Writer, requests, schema};

/// How long to wait for another connection. Only a person with a `sqlite3` shell can be in the way.
const PATIENCE: Duration = Duration::from_secs(10);

/// The log is cut back to this after it grew.
const LOG_LIMIT: i64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) state_dir: PathBuf,
    pub(super) writer: Mutex<Writer>,
    pub(super) reader: Shared,
    pub(super) seen: Seen,
    /// Let go last: while it is held, no other server may come near the files.
    _lock: File,
}

/// Why there is no store. These are for the person who starts a server, so they may name paths.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no state directory is named")]
    NoPlace,
    #[error("cannot make the state directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot open {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("another server uses the state directory {}", path.display())]
    InUse { path: PathBuf },
    #[error(
        "the records were written by a newer version of this program \
         (format {found}, this one knows {known})"
    )]
    Newer { found: i64, known: i64 },
    #[error("cannot open the records")]
    Records(#[from] rusqlite::Error),
}

impl Store {
    /// Opens the records in `state_dir`, which is made if it is not there. Only one server at a time
    /// can have them open.
    pub fn open(state_dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_for(state_dir.as_ref(), false)
    }

    /// The same for records that nobody needs after this process: they are in its memory.
    pub fn open_fleeting(state_dir: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_for(state_dir.as_ref(), true)
    }

    fn open_for(state_dir: &Path, fleeting: bool) -> Result<Self, OpenError> {
        if state_dir.as_os_str().is_empty() {
            return Err(OpenError::NoPlace);
        }
        make_private(state_dir)?;
        let lock = take_lock(&state_dir.join("lock"))?;
        let records = match fleeting {
            true => in_memory(),
            false => state_dir.join("records.db"),
        };
        if !fleeting {
            // SQLite gives the files beside it the mode of this one.
            private_file(&records)?;
        }
        let mut connection = connect(&records)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", Survives::PowerLoss.pragma())?;
        schema::migrate(&mut connection, schema::STEPS)?;
        requests::abandon_all(&connection)?;
        let reader = connect(&records)?;
        reader.pragma_update(None, "query_only", true)?;
        let inner = Inner {
            state_dir: state_dir.to_owned(),
            writer: Mutex::new(Writer { connection, survives: Survives::PowerLoss }),
            reader: Mutex::new(reader),
            seen: Seen::default(),
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

/// A directory that is already there keeps its mode: it may be one that others need, and everything
/// below it is private by itself.
fn make_private(path: &Path) -> Result<(), OpenError> {
    std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path)
        .map_err(|source| OpenError::Directory { path: path.to_owned(), source })
}

fn private_file(path: &Path) -> Result<File, OpenError> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| OpenError::File { path: path.to_owned(), source })
}

/// The kernel lets go of it however the server ends, so a lock is never stale.
fn take_lock(path: &Path) -> Result<File, OpenError> {
    let file = private_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let state_dir = path.parent().unwrap_or(path);
            Err(OpenError::InUse { path: state_dir.to_owned() })
        }
        Err(errno) => Err(OpenError::File { path: path.to_owned(), source: errno.into() }),
    }
}

/// A place of its own in the memory of this process; connections that name it share it.
fn in_memory() -> PathBuf {
    format!("file:/{}?vfs=memdb", crate::id::random_digits::<8>()).into()
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Connections are behind locks of ours, so SQLite need not have its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_one_server_has_a_state_directory() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let store = Store::open(&state).unwrap();
        assert!(matches!(Store::open(&state), Err(OpenError::InUse { .. })));
        drop(store);
        Store::open(&state).unwrap();
    }

    #[test]
    fn fleeting_records_are_seen_by_readers_and_by_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("1"), dir.path().join("2"));
        let (one, other) = (Store::open_fleeting(one), Store::open_fleeting(other));
        let (one, other) = (one.unwrap(), other.unwrap());
        one.ensure_account("team").unwrap();
        assert_eq!(one.accounts().unwrap().len(), 2);
        assert_eq!(other.accounts().unwrap().len(), 1);
        assert!(!dir.path().join("1/records.db").exists());
    }

    #[test]
    fn a_store_needs_a_place() {
        assert!(matches!(Store::open(""), Err(OpenError::NoPlace)));
        assert!(matches!(Store::open("/dev/null/x"), Err(OpenError::Directory { .. })));
    }

    #[test]
    fn nobody_else_can_read_the_records() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let _store = Store::open(&state).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        for name in ["lock", "records.db", "records.db-wal", "records.db-shm"] {
            assert_eq!(mode(&state.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn records_of_a_newer_version_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path()).unwrap());
        let other = Connection::open(dir.path().join("records.db")).unwrap();
        other.pragma_update(None, "user_version", 99).unwrap();
        drop(other);
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    }

    #[test]
    fn the_records_are_still_there_after_closing() {
        let dir = tempfile::tempdir().unwrap();
        Store::open(dir.path()).unwrap().ensure_account("team").unwrap();
        assert_eq!(Store::open(dir.path()).unwrap().accounts().unwrap().len(), 2);
    }
}
