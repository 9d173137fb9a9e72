//! The files through which a shell is driven, as descriptors that init hands out.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ringfence_link::init::ShellFiles;
use rustix::fs::{FileType, OFlags};

use super::protocol::{Directory, Transport, file};
use crate::inside::Inside;

/// Larger steps for bulk output. Only while there is some: all pipes of a user share a number of
/// pages, and one who has used them up gets only the smallest pipes.
pub(super) const LARGE: usize = 1024 * 1024;
pub(super) const USUAL: usize = 64 * 1024;

/// A session's directory inside. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Place {
    inside: Arc<Inside>,
    number: u64,
    pub(super) directory: Directory,
}

/// What is in it when the shell starts.
#[derive(Debug)]
pub(super) struct Files {
    texts: [(&'static str, OwnedFd); 4],
    pub(super) streams: [OwnedFd; 2],
    pub(super) status: OwnedFd,
    pub(super) answer: OwnedFd,
    /// The writing end of the script, for a shell that is driven by one.
    pub(super) script: Option<OwnedFd>,
}

const TEXTS: [&str; 4] = [file::TEXT, file::PREVIOUS, file::PRELUDE, file::BACK];
pub(super) const STREAMS: [&str; 2] = [file::STDOUT, file::STDERR];

impl Place {
    pub(super) fn new(inside: &Arc<Inside>, number: u64) -> io::Result<Self> {
        let directory = Directory::new(&format!("/run/shell/{number}"));
        let directory = directory.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { inside: inside.clone(), number, directory })
    }

    pub(super) fn make(&self, transport: Transport) -> io::Result<Files> {
        let files = TEXTS.iter().map(|name| (name.to_string(), vec![])).collect();
        let outgoing = [STREAMS, [file::STATUS, file::ANSWER]].concat();
        let outgoing = outgoing.into_iter().map(str::to_string).collect();
        let made = self.ask(ShellFiles { files, outgoing, incoming: vec![] }, 8)?;
        let mut made = made.into_iter();
        let mut next = || made.next().ok_or_else(|| io::Error::other("init sent too little"));
        let texts =
            [(TEXTS[0], next()?), (TEXTS[1], next()?), (TEXTS[2], next()?), (TEXTS[3], next()?)];
        let mut fifo = || next().and_then(is_fifo);
        let (streams, status, answer) = ([fifo()?, fifo()?], fifo()?, fifo()?);
        let script = match transport {
            Transport::StdinPipe => None,
            Transport::PacketScript => Some(self.make_script()?),
        };
        Ok(Files { texts, streams, status, answer, script })
    }

    fn make_script(&self) -> io::Result<OwnedFd> {
        let script = self.make_incoming(file::SCRIPT)?;
        // One write is one read, whatever the reader asks for. (To open it so is refused.)
        rustix::fs::fcntl_setfl(&script, OFlags::NONBLOCK | OFlags::DIRECT)?;
        Ok(script)
    }

    /// A fresh FIFO to write to, open for reading too.
    pub(super) fn make_incoming(&self, name: &str) -> io::Result<OwnedFd> {
        let spec = ShellFiles { incoming: vec![name.into()], ..ShellFiles::default() };
        self.one(spec).and_then(is_fifo)
    }

    /// A fresh FIFO to read from, under a name whose old one others may still write to.
    pub(super) fn make_stream(&self, name: &str) -> io::Result<OwnedFd> {
        let spec = ShellFiles { outgoing: vec![name.into()], ..ShellFiles::default() };
        self.one(spec).and_then(is_fifo)
    }

    fn one(&self, spec: ShellFiles) -> io::Result<OwnedFd> {
        let made = self.ask(spec, 1)?;
        made.into_iter().next().ok_or_else(|| io::Error::other("init sent too little"))
    }

    fn ask(&self, spec: ShellFiles, expected: usize) -> io::Result<Vec<OwnedFd>> {
        let made = self.inside.make_files(self.number, spec)?;
        match made.len() == expected {
            true => Ok(made),
            false => Err(io::Error::other("init sent another number of files")),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inside.remove_files(self.number);
    }
}

impl Files {
    /// Replaces the content of one of the texts.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let known = self.texts.iter().find(|(known, _)| *known == name);
        let (_, fd) = known.ok_or(io::ErrorKind::NotFound)?;
        rustix::fs::ftruncate(fd, 0)?;
        let mut done = 0;
        while done < content.len() {
            done += rustix::io::pwrite(fd, &content[done..], done as u64)?;
        }
        Ok(())
    }
}

/// Whoever runs inside can put something else in the place before init opens it.
fn is_fifo(fd: OwnedFd) -> io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    let waits = !rustix::fs::fcntl_getfl(&fd)?.contains(OFlags::NONBLOCK);
    match kind == FileType::Fifo && !waits {
        true => Ok(fd),
        false => Err(io::Error::other("init sent something else")),
    }
}

/// One that cannot be resized stays as it is.
pub(super) fn resize(stream: &OwnedFd, size: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(stream, size);
}
