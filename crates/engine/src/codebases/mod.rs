//! Stored files.
