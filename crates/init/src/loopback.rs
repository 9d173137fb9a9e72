//! Connections to servers inside, made where the loopback is theirs.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

/// Begins to connect without waiting: whoever gets the socket finds out how it went. Many servers
/// listen on one of the two loopback addresses only.
pub(crate) fn begin(port: u16) -> rustix::io::Result<OwnedFd> {
    let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    try_one(four).or_else(|first| try_one(six).map_err(|_| first))
}

fn try_one(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) => Ok(socket),
        Err(Errno::INPROGRESS) => refused(&socket).map(|()| socket),
        Err(e) => Err(e),
    }
}

/// That nobody listens is known at once on a loopback, but is never the answer to a `connect` that
/// does not wait.
fn refused(socket: &OwnedFd) -> rustix::io::Result<()> {
    let time = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
    let _ = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&time));
    rustix::net::sockopt::socket_error(socket)?
}
