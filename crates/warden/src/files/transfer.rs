//! Contents of files on their way to and from the caller. A caller that is slow makes only its own
//! call wait.

use std::io::Write;

use ringfence_fs::files::{Reading, WriteOptions, Writing};
use ringfence_link::channel::{CHUNK, Kind};
use ringfence_link::warden::{Code, Control, Failure, Reply};
use ringfence_policy::WorkspacePath;

use super::convert::entry_to_link;
use super::{About, Answering};
use crate::sandbox::failure;

/// How the caller's part of a write ended.
enum Received {
    Whole,
    /// The caller has hung up or changed its mind.
    GivenUp,
    Failed(std::io::Error),
}

impl Answering<'_> {
    pub(super) fn read(
        &self,
        path: &WorkspacePath,
        offset: u64,
        length: u64,
    ) -> Result<Option<Reply>, Failure> {
        let reading = self.settle(About::new("read", path), self.files.read(path))?;
        if !self.send(Reply::Reading(entry_to_link(reading.entry().clone()))) {
            return Ok(None);
        }
        match self.send_content(&reading, offset, length) {
            Ok(true) => Ok(Some(Reply::Ok)),
            Ok(false) => Ok(None),
            Err(e) => Err(failure(Code::Internal, format!("{path} cannot be read: {e}"))),
        }
    }

    /// Says whether the caller is still there.
    fn send_content(&self, reading: &Reading, from: u64, length: u64) -> std::io::Result<bool> {
        let mut buffer = vec![0; CHUNK];
        let (mut at, end) = (from, from.saturating_add(length));
        while at < end {
            let want = (end - at).min(CHUNK as u64) as usize;
            let read = reading.read_at(at, &mut buffer[..want])?;
            if read == 0 {
                break;
            }
            if self.caller.send_bytes(Kind::Output, &buffer[..read]).is_err() {
                return Ok(false);
            }
            at += read as u64;
        }
        Ok(true)
    }

    pub(super) fn write(
        &self,
        path: &WorkspacePath,
        mode: Option<u32>,
        parents: bool,
    ) -> Result<Option<Reply>, Failure> {
        let about = About::new("write", path);
        let mut writing = match self.files.write(path, WriteOptions { mode, parents }) {
            Ok(writing) => writing,
            refused => return self.settle(about, refused.map(|_| None)),
        };
        let received = match self.send(Reply::Send) {
            true => self.receive_content(&mut writing),
            false => Received::GivenUp,
        };
        match received {
            Received::Whole => self.entry(about, writing.finish()),
            Received::GivenUp => {
                self.record(about, None, Some("given_up"));
                Ok(None)
            }
            Received::Failed(e) => {
                self.record(about, None, Some("io"));
                Err(cannot_store(path, &e))
            }
        }
    }

    fn receive_content(&self, writing: &mut Writing) -> Received {
        loop {
            let Ok(frame) = self.caller.receive_frame() else { return Received::GivenUp };
            match frame.kind {
                Kind::Input => {
                    if let Err(e) = writing.write_all(&frame.body) {
                        return Received::Failed(e);
                    }
                }
                Kind::Message => match frame.message() {
                    Ok(Control::EndOfInput) => return Received::Whole,
                    Ok(Control::Cancel) | Err(_) => return Received::GivenUp,
                    Ok(_) => {}
                },
                Kind::Output | Kind::Error => return Received::GivenUp,
            }
        }
    }
}

fn cannot_store(path: &WorkspacePath, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let code = match error.kind() {
        FileTooLarge | QuotaExceeded | StorageFull => Code::LimitReached,
        _ => Code::Internal,
    };
    failure(code, format!("{path} cannot be stored: {error}")).with("path", path)
}
