//! The contents of files a server lacks, many of them in each of a few streams.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use ringfence_wire::v1;
use ringfence_wire::v1::stage_chunk::Piece;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;

use super::connect::Server;
use super::trouble::told;
use crate::failure::Failure;

/// Some are read or on their way while the server waits for its disk with the others.
const STREAMS: usize = 4;
/// A larger file is several.
const PIECE: usize = 256 * 1024;
/// A message is sent when it has so many bytes or so many pieces.
const MESSAGE: usize = 1024 * 1024;
const PIECES: usize = 4096;
/// Then another stream begins: a server bounds what one can have.
const MOST_OF_A_STREAM: usize = 10_000;

/// What went over the wire.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) files: usize,
    pub(super) bytes: i64,
}

/// Files below a directory, each of which one of the streams takes.
struct Files {
    codebase_id: String,
    root: PathBuf,
    all: Vec<v1::ManifestEntry>,
    next: AtomicUsize,
    bar: ProgressBar,
}

pub(super) async fn send_contents(
    server: &Server,
    codebase_id: &str,
    root: &Path,
    all: Vec<v1::ManifestEntry>,
) -> Result<Sent, Failure> {
    let sent = Sent { files: all.len(), bytes: all.iter().map(|file| file.size).sum() };
    let (codebase_id, root, bar) = (codebase_id.to_owned(), root.to_owned(), progress(sent));
    let files = Arc::new(Files { codebase_id, root, all, next: AtomicUsize::new(0), bar });
    let mut under_way = JoinSet::new();
    for _ in 0..STREAMS.min(sent.files) {
        under_way.spawn(send_some(server.clone(), files.clone()));
    }
    while let Some(done) = under_way.join_next().await {
        done.map_err(Failure::broken)??;
    }
    files.bar.finish_and_clear();
    Ok(sent)
}

/// On a terminal, and only if there is something to wait for.
fn progress(sent: Sent) -> ProgressBar {
    if sent.files == 0 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(sent.bytes.max(0) as u64);
    match ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// One stream after the other, until there are no files left.
async fn send_some(server: Server, files: Arc<Files>) -> Result<(), Failure> {
    while files.next.load(Ordering::Relaxed) < files.all.len() {
        let (messages, chunks) = mpsc::channel(2);
        let (to, read_files) = (Outgoing::new(&files.codebase_id, messages), files.clone());
        let reading = tokio::task::spawn_blocking(move || read_files.read(to));
        let answer = server.codebases().stage_files(ReceiverStream::new(chunks)).await;
        // If a file cannot be read, the server can only say that a stream has ended too early.
        let sent = reading.await.map_err(Failure::broken)??;
        check(&files.all, &sent, &answer.map_err(told)?.into_inner().blake3)?;
    }
    Ok(())
}

/// What has changed since it was looked at is not what was promised.
fn check(all: &[v1::ManifestEntry], sent: &[usize], stored: &[String]) -> Result<(), Failure> {
    if sent.len() != stored.len() {
        return Err(Failure::broken("the server has stored another number of files"));
    }
    let changed = |(index, digest): &(&usize, &String)| all[**index].blake3 != **digest;
    match sent.iter().zip(stored).find(changed) {
        None => Ok(()),
        Some((index, _)) => {
            let path = &all[*index].path;
            Err(Failure::bad_input(format!("{path} was changed while it was sent"))
                .hint("push again"))
        }
    }
}

impl Files {
    /// Sends files for as long as there are any, and says which. A server that takes no more says why
    /// in its answer.
    fn read(&self, mut to: Outgoing) -> Result<Vec<usize>, Failure> {
        let mut sent = Vec::new();
        while sent.len() < MOST_OF_A_STREAM && !to.is_closed() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.all.get(index) else { break };
            self.read_file(file, &mut to)
                .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", file.path)))?;
            sent.push(index);
        }
        to.flush();
        Ok(sent)
    }

    fn read_file(&self, file: &v1::ManifestEntry, to: &mut Outgoing) -> std::io::Result<()> {
        let mut source = File::open(self.root.join(&file.path))?;
        let mut end = false;
        while !end && !to.is_closed() {
            let mut data = Vec::with_capacity(PIECE.min(file.size as usize + 1));
            source.by_ref().take(PIECE as u64).read_to_end(&mut data)?;
            self.bar.inc(data.len() as u64);
            end = data.len() < PIECE;
            to.add(Piece { data: data.into(), end });
        }
        Ok(())
    }
}

/// Pieces on their way, in messages of a good size.
struct Outgoing {
    messages: mpsc::Sender<v1::StageChunk>,
    next: v1::StageChunk,
    bytes: usize,
}

impl Outgoing {
    fn new(codebase_id: &str, messages: mpsc::Sender<v1::StageChunk>) -> Self {
        let next = v1::StageChunk { codebase_id: codebase_id.to_owned(), pieces: Vec::new() };
        Self { messages, next, bytes: 0 }
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += piece.data.len();
        self.next.pieces.push(piece);
        if self.bytes >= MESSAGE || self.next.pieces.len() >= PIECES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let _ = self.messages.blocking_send(std::mem::take(&mut self.next));
        self.bytes = 0;
    }

    /// Nobody takes what is sent any more.
    fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, blake3: &str) -> v1::ManifestEntry {
        v1::ManifestEntry { path: path.into(), blake3: blake3.into(), ..Default::default() }
    }

    #[test]
    fn a_file_that_is_not_what_it_was_is_named() {
        let all = [entry("a", "1"), entry("b", "2"), entry("c", "3")];
        let stored = |digests: &[&str]| digests.iter().map(|d| d.to_string()).collect::<Vec<_>>();
        assert!(check(&all, &[2, 0], &stored(&["3", "1"])).is_ok());
        let failure = check(&all, &[2, 1], &stored(&["3", "9"])).unwrap_err();
        assert!(format!("{failure:?}").contains("b was changed while it was sent"), "{failure:?}");
        assert!(check(&all, &[0, 1], &stored(&["1"])).is_err());
    }

    /// What came out, put together again.
    fn contents(mut messages: mpsc::Receiver<v1::StageChunk>) -> (Vec<Vec<u8>>, usize) {
        let (mut contents, mut count, mut next) = (Vec::new(), 0, Vec::new());
        while let Ok(message) = messages.try_recv() {
            assert_eq!(message.codebase_id, if count == 0 { "cb" } else { "" });
            assert!(
                message.pieces.iter().map(|piece| piece.data.len()).sum::<usize>() < 2 * MESSAGE
            );
            count += 1;
            for piece in message.pieces {
                next.extend_from_slice(&piece.data);
                if piece.end {
                    contents.push(std::mem::take(&mut next));
                }
            }
        }
        assert!(next.is_empty());
        (contents, count)
    }

    #[test]
    fn small_files_share_messages_and_large_ones_take_several() {
        let dir = tempfile::tempdir().unwrap();
        let sizes = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * MESSAGE + 7, 0, 5];
        let write = |(number, size): (usize, &usize)| {
            let content = vec![number as u8; *size];
            std::fs::write(dir.path().join(number.to_string()), &content).unwrap();
            content
        };
        let expected: Vec<Vec<u8>> = sizes.iter().enumerate().map(write).collect();
        let all = (0..sizes.len()).map(|number| entry(&number.to_string(), "")).collect();
        let (codebase_id, root) = ("cb".into(), dir.path().to_owned());
        let (next, bar) = (AtomicUsize::new(0), ProgressBar::hidden());
        let files = Files { codebase_id, root, all, next, bar };
        let (messages, received) = mpsc::channel(100);
        let sent = files.read(Outgoing::new("cb", messages)).unwrap();
        assert_eq!(sent, (0..sizes.len()).collect::<Vec<_>>());
        let (contents, count) = contents(received);
        assert!(contents == expected);
        assert!(count <= 5, "{count} messages");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (all, root) = (vec![entry("gone", "1")], dir.path().to_owned());
        let (next, bar) = (AtomicUsize::new(0), ProgressBar::hidden());
        let files = Files { codebase_id: "cb".into(), root, all, next, bar };
        let (messages, _received) = mpsc::channel(1);
        let failure = files.read(Outgoing::new("cb", messages)).unwrap_err();
        assert!(format!("{failure:?}").contains("cannot read gone"), "{failure:?}");
    }
}
