//! Asking a warden, for callers.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::VERSION;
use crate::channel::{CHUNK, Channel, ChannelError, Kind, TRUSTED_LIMIT};
use crate::socket::SocketPath;
use crate::warden::{Call, Control, Failure, Outcome, Reply, Request};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach the sandbox: {0}")]
    Unreachable(io::Error),
    #[error("the sandbox ended in the middle of the call")]
    Lost,
    #[error("{0}")]
    Refused(Failure),
    #[error("the sandbox answered something else")]
    Unexpected,
    #[error("what was to be sent cannot be read: {0}")]
    Content(io::Error),
    #[error(transparent)]
    Channel(ChannelError),
}

impl From<ChannelError> for ClientError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Closed => Self::Lost,
            other => Self::Channel(other),
        }
    }
}

/// Where a warden listens.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

/// One step of a call.
#[derive(Debug)]
pub enum Event {
    Output(Vec<u8>),
    Error(Vec<u8>),
    Reply(Reply, Vec<OwnedFd>),
}

/// A call that is going on. Dropping it hangs up.
#[derive(Debug)]
pub struct Ongoing {
    channel: Channel,
}

impl Client {
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.into() }
    }

    /// Begins a call.
    pub fn call(&self, request: Request) -> Result<Ongoing, ClientError> {
        let socket = SocketPath::of(&self.socket).and_then(UnixStream::connect);
        let socket = socket.map_err(ClientError::Unreachable)?;
        let channel = Channel::new(socket, TRUSTED_LIMIT);
        channel.send(&Call { version: VERSION, request, trace: None }, &[])?;
        Ok(Ongoing { channel })
    }

    /// A call with one answer.
    pub fn ask(&self, request: Request) -> Result<Reply, ClientError> {
        self.call(request)?.finish(|_| {})
    }

    /// A call that ends with an outcome; output goes to `each`.
    pub fn run(&self, request: Request, each: impl FnMut(&Event)) -> Result<Outcome, ClientError> {
        match self.call(request)?.finish(each)? {
            Reply::Done(outcome) => Ok(*outcome),
            _ => Err(ClientError::Unexpected),
        }
    }
}

impl Ongoing {
    /// The next thing the warden says. An error it reports is an error here.
    pub fn next(&self) -> Result<Event, ClientError> {
        let frame = self.channel.receive_frame()?;
        match frame.kind {
            Kind::Output => Ok(Event::Output(frame.body)),
            Kind::Error => Ok(Event::Error(frame.body)),
            Kind::Input => Err(ClientError::Unexpected),
            Kind::Message => match frame.message()? {
                Reply::Error(failure) => Err(ClientError::Refused(failure)),
                reply => Ok(Event::Reply(reply, frame.fds)),
            },
        }
    }

    /// Follows the call to its last reply.
    pub fn finish(&self, mut each: impl FnMut(&Event)) -> Result<Reply, ClientError> {
        loop {
            let event = self.next()?;
            match event {
                Event::Reply(reply, _) if reply.is_last() => return Ok(reply),
                event => each(&event),
            }
        }
    }

    pub fn control(&self, control: Control) -> Result<(), ClientError> {
        Ok(self.channel.send(&control, &[])?)
    }

    pub fn input(&self, bytes: &[u8]) -> Result<(), ClientError> {
        Ok(self.channel.send_bytes(Kind::Input, bytes)?)
    }

    /// Sends the bytes of a file when the warden is ready for them, and follows the call to its last
    /// reply. Why a write was refused in the middle is what the warden says last.
    pub fn send_file(&self, mut content: impl io::Read) -> Result<Reply, ClientError> {
        match self.next()? {
            Event::Reply(Reply::Send, _) => {}
            _ => return Err(ClientError::Unexpected),
        }
        let mut buffer = vec![0; CHUNK];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) if self.input(&buffer[..read]).is_ok() => {}
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(ClientError::Content(e)),
            }
        }
        let _ = self.control(Control::EndOfInput);
        self.finish(|_| {})
    }

    /// Another handle on the same call, to send from another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { channel: self.channel.try_clone()? })
    }

    /// Hangs up, also for other handles.
    pub fn hang_up(&self) {
        self.channel.shut_down();
    }
}
