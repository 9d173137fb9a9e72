//! The files of codebases, by path and by content.
//!
//! The trees on disk are what is true; this is what is known about their newest versions, so that
//! nothing has to be counted or hashed again. A row says what a file was when it was put in place
//! ([`Stamp`]); whoever relies on its digest compares that with the file.
//!
//! A file and its row cannot change in one step. So a path is first written down as an intent, then
//! the file is put in place, then row, counts and intent change together. An intent that is still
//! there when a server starts is the one path that has to be looked at.

use rusqlite::{Connection, OptionalExtension, Row};
use rustix::fs::Stat;

use crate::problem::Result;

use super::codebases::still_there;
use super::values::unsigned;
use super::{Store, Survives, now_ms};

/// BLAKE3 of a file's bytes.
pub(crate) type Digest = blake3::Hash;

/// Tells a file apart from any other that has been, or will be, at the same path. Not the time of
/// its last status change: that moves with every hard link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        let seconds = stat.st_mtime.saturating_mul(1_000_000_000);
        Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ns: seconds.saturating_add(stat.st_mtime_nsec as i64),
        }
    }
}

/// What is not a directory, in the newest version of a codebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRow {
    /// Relative, as bytes.
    pub(crate) path: Vec<u8>,
    /// Of a regular file whose content is known.
    pub(crate) digest: Option<Digest>,
    /// Its size is what it adds to that of the codebase.
    pub(crate) stamp: Stamp,
    pub(crate) mode: u32,
}

/// A file somewhere in the account that has, or had, some content.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) codebase_id: String,
    pub(crate) file: FileRow,
}

/// The newest version of a codebase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeState {
    pub(crate) version: i64,
    /// Somebody has been given it: it must not change any more.
    pub(crate) sealed: bool,
    pub(crate) size: u64,
    pub(crate) file_count: u64,
    /// At least; some may be gone that were made for a file that never came.
    pub(crate) directory_count: u64,
    /// What was committed, if nothing has been changed since.
    pub(crate) manifest: Option<Digest>,
}

impl Store {
    pub(crate) fn tree_state(&self, id: &str) -> Result<Option<TreeState>> {
        let sql = "SELECT * FROM codebases WHERE id = ?";
        let read = |row: &Row<'_>| {
            Ok(TreeState {
                version: row.get("version")?,
                sealed: row.get("sealed")?,
                size: unsigned(row, "size")?,
                file_count: unsigned(row, "file_count")?,
                directory_count: unsigned(row, "directory_count")?,
                manifest: row.get::<_, Option<[u8; 32]>>("manifest")?.map(Digest::from_bytes),
            })
        };
        self.read(|connection| {
            Ok(connection.prepare_cached(sql)?.query_row([id], read).optional()?)
        })
    }

    /// The version has been given to somebody.
    pub(crate) fn seal(&self, id: &str) -> Result<()> {
        let sql = "UPDATE codebases SET sealed = 1 WHERE id = ?";
        self.write(Survives::Kill, |connection| {
            connection.execute(sql, [id])?;
            Ok(())
        })
    }

    /// The same files are now this version, which may be changed. After this the files of the old
    /// one may be removed, so it must not come undone.
    pub(crate) fn open_version(&self, id: &str, version: i64) -> Result<()> {
        let sql = "UPDATE codebases SET version = ?, sealed = 0 WHERE id = ?";
        self.write(Survives::PowerLoss, |connection| {
            connection.execute(sql, (version, id))?;
            Ok(())
        })
    }

    /// This path is about to change.
    pub(crate) fn intend(&self, id: &str, path: &[u8]) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO intents (codebase_id, path) VALUES (?, ?)";
        self.write(Survives::Kill, |connection| {
            still_there(connection, id)?;
            connection.prepare_cached(sql)?.execute((id, path))?;
            Ok(())
        })
    }

    /// What had been begun when the server ended: codebases and paths.
    pub(crate) fn intents(&self) -> Result<Vec<(String, Vec<u8>)>> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT codebase_id, path FROM intents")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub(crate) fn file(&self, id: &str, path: &[u8]) -> Result<Option<FileRow>> {
        self.read(|connection| find(connection, id, path))
    }

    /// All of them, in the order of their paths.
    pub(crate) fn files(&self, id: &str) -> Result<Vec<FileRow>> {
        self.read(|connection| {
            let sql = "SELECT * FROM files WHERE codebase_id = ? ORDER BY path";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([id], read)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// What is at `path` now: a file, or nothing. Counts follow, and the intent is settled.
    pub(crate) fn settle(&self, id: &str, path: &[u8], now: Option<&FileRow>) -> Result<()> {
        self.write(Survives::Kill, |connection| {
            still_there(connection, id)?;
            let before = find(connection, id, path)?;
            match now {
                Some(file) => put(connection, id, file)?,
                None => forget(connection, id, path)?,
            }
            let size = |file: Option<&FileRow>| file.map_or(0, |file| file.stamp.size as i64);
            let bytes = size(now) - size(before.as_ref());
            let count = i64::from(now.is_some()) - i64::from(before.is_some());
            let sql = "UPDATE codebases SET size = size + ?, file_count = file_count + ?,
                       updated_ms = ?, manifest = NULL WHERE id = ?";
            connection.prepare_cached(sql)?.execute((bytes, count, now_ms(), id))?;
            let sql = "DELETE FROM intents WHERE codebase_id = ? AND path = ?";
            connection.prepare_cached(sql)?.execute((id, path))?;
            Ok(())
        })
    }

    /// A whole tree has become the newest version. The files of the old one may be removed after
    /// this, so it must not come undone.
    pub(crate) fn replace_tree(
        &self,
        id: &str,
        version: i64,
        files: &[FileRow],
        directories: u64,
        manifest: Option<Digest>,
    ) -> Result<()> {
        self.write(Survives::PowerLoss, |connection| {
            still_there(connection, id)?;
            connection.execute("DELETE FROM files WHERE codebase_id = ?", [id])?;
            connection.execute("DELETE FROM intents WHERE codebase_id = ?", [id])?;
            files.iter().try_for_each(|file| put(connection, id, file))?;
            let size: u64 = files.iter().map(|file| file.stamp.size).sum();
            let sql = "UPDATE codebases SET version = ?, sealed = 0, size = ?, file_count = ?,
                       directory_count = ?, updated_ms = ?, manifest = ? WHERE id = ?";
            let manifest = manifest.as_ref().map(|digest| &digest.as_bytes()[..]);
            let (count, directories) = (files.len() as i64, directories as i64);
            let row = (version, size as i64, count, directories, now_ms(), manifest, id);
            connection.execute(sql, row)?;
            Ok(())
        })
    }

    /// So many directories are about to be made.
    pub(crate) fn count_directories(&self, id: &str, made: u64) -> Result<()> {
        if made == 0 {
            return Ok(());
        }
        let sql = "UPDATE codebases SET directory_count = directory_count + ? WHERE id = ?";
        self.write(Survives::Kill, |connection| {
            connection.execute(sql, (made as i64, id))?;
            Ok(())
        })
    }

    /// What all codebases of an account hold together, in bytes.
    pub(crate) fn stored_size(&self, account: &str) -> Result<u64> {
        let sql = "SELECT COALESCE(SUM(size), 0) AS size FROM codebases WHERE account = ?";
        self.read(|connection| {
            let read = |row: &Row<'_>| unsigned(row, "size");
            Ok(connection.prepare_cached(sql)?.query_row([account], read)?)
        })
    }

    /// Files of the account that have this content, if they still are what they were. Some contents
    /// are in very many files, so there is a limit.
    pub(crate) fn contents(
        &self,
        account: &str,
        digest: &Digest,
        most: usize,
    ) -> Result<Vec<Content>> {
        let sql = "SELECT * FROM files INDEXED BY files_by_digest
                   WHERE account = ? AND digest = ? LIMIT ?";
        let digest: &[u8] = digest.as_bytes();
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map((account, digest, most as i64), |row| {
                Ok(Content { codebase_id: row.get("codebase_id")?, file: read(row)? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// The file is not what the row says: nobody finds it by its content any more. Nothing happens
    /// if the row has become another meanwhile.
    pub(crate) fn forget_content(&self, content: &Content) -> Result<()> {
        let sql = "UPDATE files SET digest = NULL
                   WHERE codebase_id = ? AND path = ? AND inode = ? AND modified_ns = ?";
        let Content { codebase_id, file } = content;
        self.write(Survives::Kill, |connection| {
            let stamp = (file.stamp.inode as i64, file.stamp.modified_ns);
            connection.execute(sql, (codebase_id, &file.path, stamp.0, stamp.1))?;
            Ok(())
        })
    }
}

fn find(connection: &Connection, id: &str, path: &[u8]) -> Result<Option<FileRow>> {
    let sql = "SELECT * FROM files WHERE codebase_id = ? AND path = ?";
    Ok(connection.prepare_cached(sql)?.query_row((id, path), read).optional()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    // Inode numbers may use all 64 bits; they are stored as they are and never compared by size.
    let inode = row.get::<_, i64>("inode")? as u64;
    let stamp = Stamp { inode, size: unsigned(row, "size")?, modified_ns: row.get("modified_ns")? };
    Ok(FileRow {
        path: row.get("path")?,
        digest: row.get::<_, Option<[u8; 32]>>("digest")?.map(Digest::from_bytes),
        stamp,
        mode: row.get("mode")?,
    })
}

fn put(connection: &Connection, id: &str, file: &FileRow) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO files
               (codebase_id, path, account, digest, size, mode, inode, modified_ns)
               VALUES (?1, ?2, (SELECT account FROM codebases WHERE id = ?1), ?3, ?4, ?5, ?6, ?7)";
    let digest = file.digest.as_ref().map(|digest| &digest.as_bytes()[..]);
    let Stamp { inode, size, modified_ns } = file.stamp;
    connection.prepare_cached(sql)?.execute((
        id,
        &file.path,
        digest,
        size as i64,
        file.mode,
        inode as i64,
        modified_ns,
    ))?;
    Ok(())
}

fn forget(connection: &Connection, id: &str, path: &[u8]) -> Result<()> {
    let sql = "DELETE FROM files WHERE codebase_id = ? AND path = ?";
    connection.prepare_cached(sql)?.execute((id, path))?;
    Ok(())
}
