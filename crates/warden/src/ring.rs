//! The last bytes of a stream, numbered from its beginning.
