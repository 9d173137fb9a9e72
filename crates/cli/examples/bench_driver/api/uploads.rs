//! One file to the server and back, piece by piece as the command line's client does it.

use std::time::Instant;

use bytes::Bytes;
use ringfence_wire::v1;
use ringfence_wire::v1::upload_chunk::{Content, Metadata};

use super::served::Callers;
use crate::order::{Answer, Trouble};
use crate::work::{expect, micros_since, times_of};

const PIECE: usize = 256 * 1024;

/// Every time another file with another content.
pub(super) async fn up(callers: &Callers, bytes: usize, count: usize) -> Result<Answer, Trouble> {
    let codebase = create(callers).await?;
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let content = content(bytes, number);
        let start = Instant::now();
        send(callers, &codebase, &format!("{number}.bin"), content).await?;
        times.push(micros_since(start));
    }
    delete(callers, codebase).await?;
    Ok(times_of("upload", times))
}

pub(super) async fn down(callers: &Callers, bytes: usize, count: usize) -> Result<Answer, Trouble> {
    let codebase = create(callers).await?;
    send(callers, &codebase, "one.bin", content(bytes, 0)).await?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        expect(bytes as u64, received(callers, &codebase, "one.bin").await?)?;
        times.push(micros_since(start));
    }
    delete(callers, codebase).await?;
    Ok(times_of("download", times))
}

fn content(bytes: usize, number: usize) -> Bytes {
    let text = format!("{number} is the number of this file\n");
    text.bytes().cycle().take(bytes).collect()
}

async fn create(callers: &Callers) -> Result<String, Trouble> {
    let request = v1::CreateCodebaseRequest {
        name: "bench".into(),
        owner_id: "bench".into(),
        ..Default::default()
    };
    Ok(callers.codebases.clone().create_codebase(request).await?.into_inner().id)
}

async fn delete(callers: &Callers, codebase_id: String) -> Result<(), Trouble> {
    let request = v1::DeleteCodebaseRequest { codebase_id };
    callers.codebases.clone().delete_codebase(request).await?;
    Ok(())
}

async fn send(
    callers: &Callers,
    codebase: &str,
    path: &str,
    content: Bytes,
) -> Result<(), Trouble> {
    let metadata = Metadata {
        codebase_id: codebase.into(),
        file_path: path.into(),
        total_size: content.len() as i64,
        ..Default::default()
    };
    let size = content.len();
    let pieces = (0..size).step_by(PIECE).map(move |at| {
        let end = size.min(at + PIECE);
        Content::Data(content.slice(at..end))
    });
    let all = std::iter::once(Content::Metadata(metadata)).chain(pieces);
    let chunks = all.map(|content| v1::UploadChunk { content: Some(content) });
    callers.codebases.clone().upload_files(tokio_stream::iter(chunks)).await?;
    Ok(())
}

/// How much came back.
async fn received(callers: &Callers, codebase: &str, path: &str) -> Result<u64, Trouble> {
    let request = v1::DownloadFileRequest {
        codebase_id: codebase.into(),
        file_path: path.into(),
        ..Default::default()
    };
    let mut pieces = callers.codebases.clone().download_file(request).await?.into_inner();
    let mut bytes = 0;
    while let Some(piece) = pieces.message().await? {
        bytes += piece.data.len() as u64;
    }
    Ok(bytes)
}
