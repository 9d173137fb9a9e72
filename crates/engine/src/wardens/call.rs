//! Asking a warden. One connection is one call, and dropping it hangs up: a command that nobody
//! waits for any more is cancelled by its warden.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use ringfence_link::VERSION;
use ringfence_link::channel::{CHUNK, ChannelError, HEADER, Header, Kind, TRUSTED_LIMIT};
use ringfence_link::client::ClientError;
use ringfence_link::socket::SocketPath;
use ringfence_link::warden::{self, Control, Reply, Request};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

tokio::task_local! {
    /// What the task asks for, as the caller named it (a `traceparent`). Wardens put it on record.
    pub static TRACE: Option<String>;
}

/// What is read beyond what is waited for: the frames of a short command come in one piece, and of a
/// long output little has to be moved.
const AHEAD: usize = 4096;

/// One step of a call.
#[derive(Debug, PartialEq)]
pub enum Step {
    Output(Bytes),
    Error(Bytes),
    Reply(Reply),
}

/// A call that is going on.
#[derive(Debug)]
pub struct Call {
    pub steps: Steps,
    pub sender: Sender,
}

/// What the warden says.
#[derive(Debug)]
pub struct Steps {
    half: OwnedReadHalf,
    /// What was read and not yet told: a call to [`Steps::next`] may be given up at any moment, and
    /// short frames come several at a time.
    buffer: BytesMut,
}

/// What is said to the warden while the call lasts.
#[derive(Debug)]
pub struct Sender {
    half: OwnedWriteHalf,
}

impl Call {
    pub async fn begin(socket: &Path, request: Request) -> Result<Self, ClientError> {
        let path = SocketPath::of(socket).map_err(ClientError::Unreachable)?;
        let stream = UnixStream::connect(&path).await.map_err(ClientError::Unreachable)?;
        let (read, write) = stream.into_split();
        let mut sender = Sender { half: write };
        let trace = TRACE.try_with(Clone::clone).ok().flatten();
        sender.message(&warden::Call { version: VERSION, request, trace }).await?;
        Ok(Self { steps: Steps { half: read, buffer: BytesMut::new() }, sender })
    }

    /// A call with one answer.
    pub async fn ask(socket: &Path, request: Request) -> Result<Reply, ClientError> {
        let mut call = Self::begin(socket, request).await?;
        loop {
            match call.steps.next().await? {
                Step::Reply(reply) if reply.is_last() => return Ok(reply),
                _ => {}
            }
        }
    }
}

impl Steps {
    /// The next thing the warden says. An error it reports is an error here.
    pub async fn next(&mut self) -> Result<Step, ClientError> {
        self.fill(HEADER).await?;
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.buffer[..HEADER]);
        let header = Header::decode(header, TRUSTED_LIMIT)?;
        self.fill(HEADER + header.size).await?;
        let body = self.buffer.split_to(HEADER + header.size).freeze().slice(HEADER..);
        match header.kind {
            Kind::Output => Ok(Step::Output(body)),
            Kind::Error => Ok(Step::Error(body)),
            Kind::Input => Err(ClientError::Unexpected),
            Kind::Message => match postcard::from_bytes(&body).map_err(ChannelError::from)? {
                Reply::Error(failure) => Err(ClientError::Refused(failure)),
                reply => Ok(Step::Reply(reply)),
            },
        }
    }

    /// Reads until there are `size` bytes.
    async fn fill(&mut self, size: usize) -> Result<(), ClientError> {
        while self.buffer.len() < size {
            self.buffer.reserve(size - self.buffer.len() + AHEAD);
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(ClientError::Lost),
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Err(ClientError::Lost);
                }
                Err(e) => return Err(ChannelError::Io(e).into()),
            }
        }
        Ok(())
    }
}

impl Sender {
    pub async fn control(&mut self, control: Control) -> Result<(), ClientError> {
        self.message(&control).await
    }

    pub async fn input(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        for chunk in bytes.chunks(CHUNK) {
            self.frame(Kind::Input, chunk).await?;
        }
        Ok(())
    }

    async fn message<T: Serialize>(&mut self, message: &T) -> Result<(), ClientError> {
        let body = postcard::to_stdvec(message).map_err(ChannelError::from)?;
        self.frame(Kind::Message, &body).await
    }

    async fn frame(&mut self, kind: Kind, body: &[u8]) -> Result<(), ClientError> {
        let header = Header { size: body.len(), kind, fds: 0 }.encode();
        let frame = [&header[..], body].concat();
        match self.half.write_all(&frame).await {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(ClientError::Lost),
            Err(e) => Err(ChannelError::Io(e).into()),
        }
    }
}
