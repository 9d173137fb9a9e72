//! Frames on a Unix stream socket.
//!
//! A frame is a header (length, kind, number of descriptors) and a body. Descriptors ride on the
//! header. Bulk bytes (output, input) are frames of their own kind and are never encoded.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An encoded message.
    Message,
    /// Bytes of standard input, or typed on a terminal.
    Input,
    /// Bytes of standard output, or shown on a terminal.
    Output,
    /// Bytes of standard error.
    Error,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Message, Self::Input, Self::Output, Self::Error];
}

#[derive(Debug)]
pub struct Frame {
    pub kind: Kind,
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error("the other side has gone")]
    Closed,
    #[error("a frame of {size} bytes is over the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("a frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("a message could not be read: {0}")]
    Malformed(#[from] postcard::Error),
    #[error("expected a message")]
    NotAMessage,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for ChannelError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// The most bulk bytes sent in one frame.
pub const CHUNK: usize = 64 * 1024;
/// The largest frame accepted from someone who is trusted: a command text and its environment.
pub const TRUSTED_LIMIT: usize = 64 * 1024 * 1024;
/// The largest frame accepted from inside a sandbox.
pub const UNTRUSTED_LIMIT: usize = 64 * 1024;
/// The most descriptors in one frame.
pub const MAX_FDS: usize = 8;

/// How many bytes a header has.
pub const HEADER: usize = 6;

/// What stands before a body, for those who read and write frames themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub size: usize,
    pub kind: Kind,
    pub fds: u8,
}

impl Header {
    pub fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&(self.size as u32).to_le_bytes());
        (bytes[4], bytes[5]) = (self.kind as u8, self.fds);
        bytes
    }

    /// `limit`: the largest body that is accepted.
    pub fn decode(bytes: [u8; HEADER], limit: usize) -> Result<Self, ChannelError> {
        let size = u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[i])) as usize;
        if size > limit {
            return Err(ChannelError::TooLarge { size, limit });
        }
        let kind = Kind::ALL.get(usize::from(bytes[4]));
        let kind = *kind.ok_or(ChannelError::UnknownKind(bytes[4]))?;
        Ok(Self { size, kind, fds: bytes[5] })
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    socket: UnixStream,
    limit: usize,
}

impl Channel {
    /// `limit`: the largest frame that is accepted.
    pub fn new(socket: UnixStream, limit: usize) -> Self {
        Self { socket, limit }
    }

    pub fn from_fd(fd: OwnedFd, limit: usize) -> Self {
        Self::new(fd.into(), limit)
    }

    /// Another handle on the same end: one thread may send while another receives.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, limit: self.limit })
    }

    /// Ends the connection for both sides and for every handle.
    pub fn shut_down(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    pub fn send<T: Serialize>(
        &self,
        message: &T,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        self.send_frame(Kind::Message, &postcard::to_stdvec(message)?, fds)
    }

    /// Sends bulk bytes in frames of [`CHUNK`].
    pub fn send_bytes(&self, kind: Kind, bytes: &[u8]) -> Result<(), ChannelError> {
        bytes.chunks(CHUNK).try_for_each(|chunk| self.send_frame(kind, chunk, &[]))
    }

    fn send_frame(
        &self,
        kind: Kind,
        body: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let header = Header { size: body.len(), kind, fds: fds.len() as u8 }.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(ChannelError::TooLarge { size: fds.len(), limit: MAX_FDS });
        }
        let mut sent = 0;
        while sent < HEADER + body.len() {
            let head = &header[sent.min(HEADER)..];
            let rest = &body[sent.saturating_sub(HEADER)..];
            let parts = [IoSlice::new(head), IoSlice::new(rest)];
            match sendmsg(&self.socket, &parts, &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(ChannelError::Closed);
                }
                Err(e) => return Err(e.into()),
            }
            ancillary.clear();
        }
        Ok(())
    }

    /// The next message; anything else is an error.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<(T, Vec<OwnedFd>), ChannelError> {
        let frame = self.receive_frame()?;
        Ok((frame.message()?, frame.fds))
    }

    pub fn receive_frame(&self) -> Result<Frame, ChannelError> {
        let mut header = [0; HEADER];
        let mut fds = Vec::new();
        self.fill(&mut header, &mut fds)?;
        let Header { size, kind, .. } = Header::decode(header, self.limit)?;
        let mut body = vec![0; size];
        self.fill(&mut body, &mut fds)?;
        Ok(Frame { kind, body, fds })
    }

    fn fill(&self, mut buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<(), ChannelError> {
        while !buffer.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(buffer)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.socket, &mut parts, &mut ancillary, flags) {
                Ok(received) => received.bytes,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::CONNRESET) => return Err(ChannelError::Closed),
                Err(e) => return Err(e.into()),
            };
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if received == 0 {
                return Err(ChannelError::Closed);
            }
            buffer = &mut buffer[received..];
        }
        Ok(())
    }
}

impl Frame {
    pub fn message<T: DeserializeOwned>(&self) -> Result<T, ChannelError> {
        match self.kind {
            Kind::Message => Ok(postcard::from_bytes(&self.body)?),
            _ => Err(ChannelError::NotAMessage),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn pair(limit: usize) -> (Channel, Channel) {
        let (one, two) = UnixStream::pair().unwrap();
        (Channel::new(one, limit), Channel::new(two, limit))
    }

    #[test]
    fn messages_arrive_with_their_own_descriptors() {
        let (one, two) = pair(1024);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        one.send(&"first", &[writer.as_fd()]).unwrap();
        one.send(&("second", 2), &[]).unwrap();
        one.send(&"third", &[reader.as_fd(), writer.as_fd()]).unwrap();
        writer.write_all(b"x").unwrap();
        drop(writer);
        let (first, fds) = two.receive::<String>().unwrap();
        assert_eq!((first.as_str(), fds.len()), ("first", 1));
        let (second, fds) = two.receive::<(String, i32)>().unwrap();
        assert_eq!((second, fds.len()), (("second".into(), 2), 0));
        assert_eq!(two.receive::<String>().unwrap().1.len(), 2);
        drop(fds);
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
    }

    #[test]
    fn bulk_bytes_arrive_whole_and_in_order() {
        let (one, two) = pair(CHUNK);
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|i| (i * 7) as u8).collect();
        let sent = bytes.clone();
        let sender = std::thread::spawn(move || one.send_bytes(Kind::Output, &sent).unwrap());
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            let frame = two.receive_frame().unwrap();
            assert_eq!(frame.kind, Kind::Output);
            received.extend(frame.body);
        }
        sender.join().unwrap();
        assert_eq!(received, bytes);
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_it_is_read() {
        let (one, two) = pair(64);
        one.send(&"x".repeat(100), &[]).unwrap();
        assert!(matches!(two.receive_frame(), Err(ChannelError::TooLarge { limit: 64, .. })));
    }

    #[test]
    fn an_end_in_the_middle_of_a_frame_is_an_end() {
        let (one, two) = pair(1024);
        (&one.socket).write_all(&[200, 0, 0, 0, 0, 0, 1, 2]).unwrap();
        drop(one);
        assert!(matches!(two.receive_frame(), Err(ChannelError::Closed)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let (one, two) = pair(4096);
            (&one.socket).write_all(&bytes).unwrap();
            drop(one);
            while let Ok(frame) = two.receive_frame() {
                let _ = frame.message::<crate::init::FromInit>();
            }
        }
    }
}
