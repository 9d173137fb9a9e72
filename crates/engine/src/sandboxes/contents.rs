//! Contents of files on their way to and from a workspace.
//!
//! What is read goes out piece by piece. What is written is first taken in as a whole, to a file
//! without a name: where it belongs is decided when it is complete, so a slow caller holds up
//! nobody, and the sandbox may start or stop meanwhile.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use md5::Digest as _;
use ringfence_fs::files::{FileError, Reading, WriteOptions};
use ringfence_link::files::{Entry, FileCall, FileRequest};
use ringfence_link::warden::{Control, Reply, Request};
use ringfence_warden::files::convert::entry_to_link;

use super::Sandboxes;
use super::ask::problem_of;
use super::files::{About, FileAt, fs_view};
use super::reach::{Held, Reach, blocking};
use crate::codebases::UploadDone;
use crate::id::random_digits;
use crate::problem::{Code, Problem, Result};
use crate::wardens::call::{Call, Step};

const PIECE: usize = 64 * 1024;

/// Part of a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range {
    pub offset: u64,
    /// To the end, if not given.
    pub length: Option<u64>,
}

/// A file that is being read.
#[derive(Debug)]
pub struct Content {
    source: Source,
    /// How the rest can be asked for: one that is stopped in between is read on from where its files
    /// are then.
    rest: Box<(Sandboxes, FileAt, Range)>,
}

#[derive(Debug)]
enum Source {
    Warden(Call),
    Disk { reading: Arc<Reading>, at: u64, end: u64 },
}

/// How a file is to be written.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteAs {
    /// Permission bits; if not given those of the file that is replaced, or 0644.
    pub mode: Option<u32>,
    /// Without a mode, programs (by their first bytes) may be executed.
    pub programs_run: bool,
    /// Make the directories on the way.
    pub parents: bool,
}

/// A file that is being taken in. Nothing has happened unless it is finished.
#[derive(Debug)]
pub struct Incoming {
    sandboxes: Sandboxes,
    at: FileAt,
    write_as: WriteAs,
    file: File,
    size: u64,
    most: u64,
    head: Vec<u8>,
    digests: Digests,
}

#[derive(Debug, Default)]
struct Digests {
    md5: md5::Md5,
    blake3: Box<blake3::Hasher>,
}

impl Sandboxes {
    pub async fn read_file(&self, at: &FileAt, range: Range) -> Result<Content> {
        let reach = self.reach(&at.account, &at.sandbox).await?;
        match self.read_at(reach, at, range).await {
            Err(problem) if problem.code == Code::SandboxNotRunning => {
                let reach = self.reach_in_turn(&at.account, &at.sandbox).await?;
                self.read_at(reach, at, range).await
            }
            done => done,
        }
    }

    async fn read_at(&self, reach: Reach, at: &FileAt, range: Range) -> Result<Content> {
        let source = match reach {
            Reach::Warden(socket) => {
                let Range { offset, length } = range;
                let call = FileCall::Read { path: at.bytes(), offset, length };
                let request = Request::File(FileRequest { view: at.view, call });
                let mut call = Call::begin(&socket, request).await.map_err(problem_of)?;
                // A file that cannot be read is refused before anything is sent.
                call.steps.next().await.map_err(problem_of)?;
                Source::Warden(call)
            }
            Reach::Disk(held) => {
                let (sandboxes, at) = (self.clone(), at.clone());
                let reading = blocking(move || sandboxes.open_on_disk(&held, &at)).await?;
                let end = range.length.map_or(u64::MAX, |most| range.offset.saturating_add(most));
                Source::Disk { reading: reading.into(), at: range.offset, end }
            }
        };
        Ok(Content { source, rest: Box::new((self.clone(), at.clone(), range)) })
    }

    fn open_on_disk(&self, held: &Held, at: &FileAt) -> Result<Reading> {
        let read = self.open(held)?.files(fs_view(at.view)).read(&at.path);
        self.settle(held, &About::new("read", at), read)
    }

    pub fn begin_write(&self, at: FileAt, write_as: WriteAs) -> Result<Incoming> {
        self.get(&at.account, &at.sandbox)?;
        if at.path.is_root() {
            return Err(Problem::invalid("the path of a file is required"));
        }
        let file = self.nameless().map_err(|e| Problem::internal("take a file in", e))?;
        let most = self.inner.codebases.limits().max_file_size;
        let (sandboxes, head, digests) = (self.clone(), Vec::new(), Digests::default());
        Ok(Incoming { sandboxes, at, write_as, file, size: 0, most, head, digests })
    }

    /// A file that is gone when it is closed, whatever happens.
    fn nameless(&self) -> io::Result<File> {
        let path = self.inner.settings.state.join(format!("incoming-{}", random_digits::<8>()));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(path).map(|()| file)
    }

    fn write_on_disk(&self, held: &Held, put: &Put, mut content: File) -> Result<Entry> {
        let opened = self.open(held)?;
        let (about, path) = (About::new("write", &put.at), &put.at.path);
        let mut writing = match opened.files(fs_view(put.at.view)).write(path, put.options) {
            Ok(writing) => writing,
            Err(error) => return self.settle(held, &about, Err(error)),
        };
        if let Err(error) = io::copy(&mut content, &mut writing) {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            let error = FileError { path: path.clone(), errno, denial: None };
            return self.settle(held, &about, Err(error));
        }
        self.settle(held, &about, writing.finish()).map(entry_to_link)
    }
}

/// Where a complete file goes.
#[derive(Debug, Clone)]
struct Put {
    at: FileAt,
    options: WriteOptions,
}

impl Content {
    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut step = self.step().await;
        if step.as_ref().is_err_and(|problem| problem.code == Code::SandboxNotRunning) {
            let (sandboxes, at, range) = &*self.rest;
            let reach = sandboxes.reach_in_turn(&at.account, &at.sandbox).await?;
            *self = sandboxes.read_at(reach, at, *range).await?;
            step = self.step().await;
        }
        if let Ok(Some(bytes)) = &step {
            let (read, range) = (bytes.len() as u64, &mut self.rest.2);
            range.offset += read;
            range.length = range.length.map(|length| length.saturating_sub(read));
        }
        step
    }

    async fn step(&mut self) -> Result<Option<Vec<u8>>> {
        match &mut self.source {
            Source::Warden(call) => loop {
                match call.steps.next().await.map_err(problem_of)? {
                    Step::Output(bytes) => return Ok(Some(bytes.into())),
                    Step::Reply(reply) if reply.is_last() => return Ok(None),
                    _ => {}
                }
            },
            Source::Disk { reading, at, end } => {
                let (reading, from, most) = (reading.clone(), *at, *end - *at.min(end));
                let piece = blocking(move || read_piece(&reading, from, most)).await?;
                *at += piece.len() as u64;
                Ok(Some(piece).filter(|piece| !piece.is_empty()))
            }
        }
    }
}

fn read_piece(reading: &Reading, from: u64, most: u64) -> Result<Vec<u8>> {
    let mut piece = vec![0; PIECE.min(usize::try_from(most).unwrap_or(PIECE))];
    let read = reading.read_at(from, &mut piece).map_err(|e| Problem::internal("read", e))?;
    piece.truncate(read);
    Ok(piece)
}

impl Incoming {
    /// The next bytes. Blocks for as long as the disk does; after a problem it can only be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        if self.size > self.most {
            let message = format!("the file is too big: the limit is {}", self.most);
            let problem = Problem::new(Code::ResourceLimitExceeded, message);
            return Err(problem.with("limit", "max_file_size").with("most", self.most.to_string()));
        }
        let missing = 4usize.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.digests.md5.update(bytes);
        self.digests.blake3.update(bytes);
        self.file.write_all(bytes).map_err(cannot_take_in)
    }

    /// The same as [`Incoming::finish`], for who wants to hear what was stored.
    pub async fn finish_upload(mut self) -> Result<UploadDone> {
        let (size, digests) = (self.size, std::mem::take(&mut self.digests));
        self.finish().await?;
        Ok(UploadDone {
            size,
            md5: digests.md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            blake3: digests.blake3.finalize().to_hex().to_string(),
        })
    }

    /// Puts the file in its place: until this has returned, whatever was there is there. A warden
    /// that ends meanwhile does no harm: the same is written again.
    pub async fn finish(self) -> Result<Entry> {
        let (account, id) = (&self.at.account, &self.at.sandbox);
        match self.put(self.sandboxes.reach(account, id).await?).await {
            Err(problem) if problem.code == Code::SandboxNotRunning => {
                self.put(self.sandboxes.reach_in_turn(account, id).await?).await
            }
            done => done,
        }
    }

    async fn put(&self, reach: Reach) -> Result<Entry> {
        let options = WriteOptions { mode: self.mode(), parents: self.write_as.parents };
        let put = Put { at: self.at.clone(), options };
        let mut content = self.file.try_clone().map_err(cannot_take_in)?;
        content.rewind().map_err(cannot_take_in)?;
        let sandboxes = self.sandboxes.clone();
        match reach {
            Reach::Warden(socket) => send_to(&socket, &put, content).await,
            Reach::Disk(held) => {
                blocking(move || sandboxes.write_on_disk(&held, &put, content)).await
            }
        }
    }

    fn mode(&self) -> Option<u32> {
        let is_program = self.head.starts_with(b"#!") || self.head.starts_with(b"\x7fELF");
        let by_content = (self.write_as.programs_run && is_program).then_some(0o755);
        self.write_as.mode.map(|mode| mode & 0o777).or(by_content)
    }
}

async fn send_to(socket: &std::path::Path, put: &Put, content: File) -> Result<Entry> {
    let WriteOptions { mode, parents } = put.options;
    let write = FileCall::Write { path: put.at.bytes(), mode, parents };
    let request = Request::File(FileRequest { view: put.at.view, call: write });
    let mut call = Call::begin(socket, request).await.map_err(problem_of)?;
    call.steps.next().await.map_err(problem_of)?;
    let mut content = Some(content);
    while let Some(open) = content.take() {
        let (open, piece) = blocking(move || piece_of(open)).await?;
        // Why it does not want more is what it says next.
        if piece.is_empty() || call.sender.input(&piece).await.is_err() {
            let _ = call.sender.control(Control::EndOfInput).await;
            break;
        }
        content = Some(open);
    }
    match call.steps.next().await.map_err(problem_of)? {
        Step::Reply(Reply::File(entry)) => Ok(entry),
        other => Err(Problem::internal("understand the sandbox", format!("{other:?}"))),
    }
}

fn piece_of(mut file: File) -> Result<(File, Vec<u8>)> {
    let mut piece = vec![0; PIECE];
    let read = file.read(&mut piece).map_err(cannot_take_in)?;
    piece.truncate(read);
    Ok((file, piece))
}

fn cannot_take_in(error: io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Problem::new(Code::ResourceLimitExceeded, "there is no space left on the server")
                .with("limit", "disk")
        }
        _ => Problem::internal("take a file in", error),
    }
}
