//! One file, into a sandbox or out of it.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use ringfence_wire::v1;
use ringfence_wire::v1::write_file_chunk::{Begin, Content};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::super::codebase::save;
use super::super::connect::Server;
use super::super::trouble::told;
use crate::failure::Failure;
use crate::output;

const PIECE: usize = 256 * 1024;

/// Copy one file into a sandbox or out of it, whether it runs or not
///
/// A place in a sandbox is written ID:/path, and - is standard input or output. Missing directories
/// inside are made.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox cp sb_0123456789abcdef:/report.txt .
  ringfence sandbox cp data.csv sb_0123456789abcdef:/data/input.csv
  ringfence sandbox cp sb_0123456789abcdef:/report.txt -")]
pub(super) struct CopyArgs {
    from: String,
    to: String,
}

/// One side of a copy.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Inside { id: String, path: String },
    Here(PathBuf),
    Stream,
}

impl Place {
    /// Only what begins like an id is a sandbox, so that `a:b` can be a file.
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            _ if text == "-" => Self::Stream,
            Some((id, path)) if id.starts_with("sb_") => {
                Self::Inside { id: id.into(), path: path.into() }
            }
            _ => Self::Here(text.into()),
        }
    }
}

pub(super) async fn copy(server: &Server, json: bool, args: &CopyArgs) -> Result<(), Failure> {
    match (Place::parse(&args.from), Place::parse(&args.to)) {
        (Place::Inside { id, path }, Place::Stream) => get(server, id, path, None).await,
        (Place::Inside { id, path }, Place::Here(to)) => {
            let to = named(to, Path::new(&path));
            get(server, id, path, Some(&to)).await
        }
        (Place::Here(from), Place::Inside { id, path }) => {
            put(server, json, Some(from), id, path).await
        }
        (Place::Stream, Place::Inside { id, path }) => put(server, json, None, id, path).await,
        _ => Err(Failure::bad_input("one side must be in a sandbox, the other here")
            .hint("a place in a sandbox is written ID:/path")),
    }
}

/// Into a directory it goes by the name it has.
fn named(to: PathBuf, from: &Path) -> PathBuf {
    match (to.is_dir(), from.file_name()) {
        (true, Some(name)) => to.join(name),
        _ => to,
    }
}

async fn get(server: &Server, id: String, path: String, to: Option<&Path>) -> Result<(), Failure> {
    let request = v1::ReadFileRequest { sandbox_id: id, path, ..Default::default() };
    let chunks = server.workspace().read_file(request).await.map_err(told)?.into_inner();
    save(chunks, to).await
}

async fn put(
    server: &Server,
    json: bool,
    from: Option<PathBuf>,
    sandbox_id: String,
    path: String,
) -> Result<(), Failure> {
    let (source, mode, path) = open(from, path)?;
    let (pieces, chunks) = mpsc::channel(4);
    let begin = Begin { sandbox_id, path, mode, parents: true, ..Default::default() };
    let reading = tokio::task::spawn_blocking(move || read(source, begin, &pieces));
    let written = server.workspace().write_file(ReceiverStream::new(chunks)).await;
    // A server that refuses hears no more; what was not read then is no mistake of its own.
    let written = written.map_err(told)?;
    reading
        .await
        .map_err(Failure::broken)?
        .map_err(|e| Failure::broken(format!("cannot read what is to be copied: {e}")))?;
    if json { output::print_json(written.get_ref()) } else { Ok(()) }
}

type Source = Box<dyn Read + Send>;

fn open(from: Option<PathBuf>, path: String) -> Result<(Source, Option<u32>, String), Failure> {
    let Some(from) = from else { return Ok((Box::new(std::io::stdin()), None, path)) };
    let failed = |e| Failure::bad_input(format!("cannot read {}: {e}", from.display()));
    let file = std::fs::File::open(&from).map_err(failed)?;
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        return Err(Failure::bad_input(format!("{} is not a file", from.display())));
    }
    let path = match (path.is_empty() || path.ends_with('/'), from.file_name()) {
        (true, Some(name)) => format!("{path}{}", name.to_string_lossy()),
        _ => path,
    };
    Ok((Box::new(file), Some(data.permissions().mode() & 0o777), path))
}

/// A source that breaks in the middle must not look like one that has ended: the stream is then
/// given up, and the file stays as it was.
fn read(
    mut source: Source,
    begin: Begin,
    to: &mpsc::Sender<v1::WriteFileChunk>,
) -> std::io::Result<()> {
    let chunk = |content| v1::WriteFileChunk { content: Some(content) };
    let _ = to.blocking_send(chunk(Content::Begin(begin)));
    let mut buffer = vec![0; PIECE];
    loop {
        let count = source.read(&mut buffer)?;
        let piece = Bytes::copy_from_slice(&buffer[..count]);
        if count == 0 || to.blocking_send(chunk(Content::Data(piece))).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_like_an_id_is_a_sandbox() {
        let inside = Place::Inside { id: "sb_1".into(), path: "/a:b".into() };
        assert_eq!(Place::parse("sb_1:/a:b"), inside);
        assert_eq!(Place::parse("a:b"), Place::Here("a:b".into()));
        assert_eq!(Place::parse("-"), Place::Stream);
    }
}
