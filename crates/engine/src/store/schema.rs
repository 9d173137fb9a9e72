//! The tables, and how they became what they are.

use rusqlite::Connection;

use super::OpenError;

/// What makes each version of the tables out of the one before. A step that was released is never
/// changed, only followed by another.
pub(super) const STEPS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5];

const VERSION_1: &str = "
CREATE TABLE accounts (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO accounts (name) VALUES ('local');

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL,
    last_used_ms INTEGER,
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE codebases (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    local_path BLOB,
    mask TEXT NOT NULL,
    ignore_files TEXT NOT NULL,
    size INTEGER NOT NULL,
    file_count INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    -- Somebody has been given the version: the next change makes another.
    sealed INTEGER NOT NULL DEFAULT 0,
    -- What was committed as a whole, if nothing has been changed since.
    manifest BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX codebases_of_account ON codebases (account, created_ms, id);

-- What the newest version of each codebase holds.
CREATE TABLE files (
    codebase_id TEXT NOT NULL REFERENCES codebases (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    -- That of the codebase: contents are looked for in one account only.
    account TEXT NOT NULL,
    -- Of a regular file; a symlink has none.
    digest BLOB,
    size INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    PRIMARY KEY (codebase_id, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_digest ON files (account, digest);

-- Paths that are about to change. A row that is found at the start of a server is a change that
-- may or may not have happened.
CREATE TABLE intents (
    codebase_id TEXT NOT NULL REFERENCES codebases (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    PRIMARY KEY (codebase_id, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    sandbox_id TEXT NOT NULL,
    codebase_id TEXT NOT NULL REFERENCES codebases (id),
    codebase_version INTEGER NOT NULL,
    name TEXT NOT NULL,
    layer_path BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshots_of_account ON snapshots (account, created_ms, id);
CREATE INDEX snapshots_on_codebase ON snapshots (codebase_id, codebase_version);

CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    owner_id TEXT NOT NULL,
    codebase_id TEXT NOT NULL REFERENCES codebases (id),
    codebase_version INTEGER,
    rules TEXT NOT NULL,
    labels TEXT NOT NULL,
    env TEXT NOT NULL,
    runtime TEXT NOT NULL,
    image TEXT NOT NULL,
    memory INTEGER,
    cpu_quota INTEGER,
    cpu_shares INTEGER,
    pids INTEGER,
    network TEXT NOT NULL,
    read_only_paths TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    created_ms INTEGER NOT NULL,
    started_ms INTEGER,
    stopped_ms INTEGER,
    expires_ms INTEGER,
    leased INTEGER NOT NULL,
    lease_until_ms INTEGER,
    snapshot_id TEXT REFERENCES snapshots (id),
    layer TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sandboxes_of_account ON sandboxes (account, created_ms, id);
CREATE INDEX sandboxes_on_codebase ON sandboxes (codebase_id, codebase_version);
CREATE INDEX sandboxes_on_snapshot ON sandboxes (snapshot_id) WHERE snapshot_id IS NOT NULL;

CREATE TABLE requests (
    account TEXT NOT NULL REFERENCES accounts (name),
    request_id TEXT NOT NULL,
    method TEXT NOT NULL,
    -- None while it is being worked on.
    answer BLOB,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (account, request_id)
) STRICT;
CREATE INDEX requests_by_age ON requests (created_ms);
";

const VERSION_2: &str = "
-- How far the journal of a sandbox is known to go, and after the sandbox's end whose it was.
CREATE TABLE journals (
    sandbox_id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    -- None while the sandbox exists.
    ended_ms INTEGER,
    reason TEXT NOT NULL DEFAULT '',
    head TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX journals_by_end ON journals (ended_ms) WHERE ended_ms IS NOT NULL;

-- A hash of what was asked: the same id is for the same request only.
ALTER TABLE requests ADD COLUMN content BLOB NOT NULL DEFAULT x'';

-- Directories of the newest version, which count like files.
ALTER TABLE codebases ADD COLUMN directory_count INTEGER NOT NULL DEFAULT 0;
";

const VERSION_3: &str = "
-- Made for its sandboxes, and gone with the last of them.
ALTER TABLE codebases ADD COLUMN fleeting INTEGER NOT NULL DEFAULT 0;
CREATE INDEX codebases_fleeting ON codebases (id) WHERE fleeting;
";

const VERSION_4: &str = "
-- Patterns of what is left out unless something stronger brings it back.
ALTER TABLE codebases ADD COLUMN default_mask TEXT NOT NULL DEFAULT '[]';
";

const VERSION_5: &str = "
-- Whether everything in it runs as the user of its image.
ALTER TABLE sandboxes ADD COLUMN image_user INTEGER NOT NULL DEFAULT 0;
";

/// Brings the tables up to date, one transaction for each step.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), OpenError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, step) in (1..=known).zip(steps).skip_while(|(version, _)| *version <= found) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_records_are_brought_up_to_date_and_a_failed_step_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let first = "CREATE TABLE a (x); INSERT INTO a VALUES (1);";
        let second = "ALTER TABLE a ADD COLUMN y DEFAULT 2;";
        migrate(&mut connection, &[first]).unwrap();
        let bad = "DELETE FROM a; SELECT nonsense;";
        assert!(migrate(&mut connection, &[first, bad]).is_err());
        migrate(&mut connection, &[first, second]).unwrap();
        migrate(&mut connection, &[first, second]).unwrap();
        let sum: i64 = connection.query_row("SELECT x + y FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 3);
    }

    #[test]
    fn codebases_of_the_last_version_stay_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.db");
        let mut before = Connection::open(&path).unwrap();
        migrate(&mut before, &STEPS[..2]).unwrap();
        let row = "INSERT INTO codebases VALUES ('cb_1', 'local', 'o', 'n', NULL, '[]', '[]',
                       3, 1, 1, 5, 6, 0, NULL, 2)";
        before.execute(row, []).unwrap();
        drop(before);
        let store = crate::store::Store::open(dir.path()).unwrap();
        let found = store.codebase("local", "cb_1").unwrap().unwrap();
        assert_eq!((found.size, found.created_ms, found.fleeting), (3, 5, false));
        assert!(store.unused_fleeting().unwrap().is_empty());
        assert!(found.mask_options().is_empty());
    }
}
