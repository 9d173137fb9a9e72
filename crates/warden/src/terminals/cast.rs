//! A recording of what a terminal showed, as asciicast v2.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use ringfence_link::warden::{Code, Failure};

use super::screen::Size;
use crate::sandbox::{failure, internal, now_ms};

/// A terminal that shows things without end must not fill the disk.
const LARGEST: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Cast {
    file: File,
    begun: Instant,
    /// The beginning of a character whose end has not come.
    begun_character: Vec<u8>,
    written: u64,
}

impl Cast {
    /// `<dir>/recordings/<id>.cast`, which must not be there.
    pub(super) fn create(dir: &Path, id: &str, size: Size) -> Result<Self, Failure> {
        let dir = dir.join("recordings");
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(internal(e)),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(dir.join(format!("{id}.cast"))).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => {
                failure(Code::TerminalExists, format!("there is a recording of {id:?} already"))
            }
            _ => internal(e),
        })?;
        let (begun, begun_character) = (Instant::now(), Vec::new());
        let mut cast = Self { file, begun, begun_character, written: 0 };
        let header = serde_json::json!({
            "version": 2,
            "width": size.columns,
            "height": size.rows,
            "timestamp": now_ms() / 1000,
            "title": id,
        });
        cast.line(&header.to_string());
        Ok(cast)
    }

    pub(super) fn show(&mut self, bytes: &[u8]) {
        self.begun_character.extend(bytes);
        let (text, rest) = decode(&self.begun_character);
        self.begun_character = rest;
        if !text.is_empty() {
            self.event("o", &text);
        }
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.event("r", &format!("{}x{}", size.columns, size.rows));
    }

    pub(super) fn close(mut self) {
        let rest = std::mem::take(&mut self.begun_character);
        if !rest.is_empty() {
            self.event("o", &String::from_utf8_lossy(&rest));
        }
    }

    fn event(&mut self, kind: &str, data: &str) {
        if self.written > LARGEST {
            return;
        }
        let time = self.begun.elapsed().as_secs_f64();
        let data = serde_json::Value::from(data);
        self.line(&format!("[{time:.6}, \"{kind}\", {data}]"));
        if self.written > LARGEST {
            self.line(&format!("[{time:.6}, \"o\", \"\\r\\n(the recording ends here)\\r\\n\"]"));
        }
    }

    fn line(&mut self, text: &str) {
        self.written += text.len() as u64 + 1;
        // A full disk costs the recording, not the terminal.
        let _ = self.file.write_all(format!("{text}\n").as_bytes());
    }
}

/// The text so far, and the bytes of a character that is not complete.
fn decode(mut bytes: &[u8]) -> (String, Vec<u8>) {
    let mut text = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                return (text, Vec::new());
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(bad) = error.error_len() else { return (text, rest.to_vec()) };
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[bad..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_cut_in_two_are_put_together_and_bad_bytes_replaced() {
        assert_eq!(decode("aé".as_bytes()), ("aé".into(), vec![]));
        assert_eq!(decode(b"a\xc3"), ("a".into(), vec![0xc3]));
        assert_eq!(decode(b"\xff\xc3\xa9\xe2\x82"), ("\u{fffd}é".into(), vec![0xe2, 0x82]));
    }
}
