//! Records, in SQLite.
