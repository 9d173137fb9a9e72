//! This test program in the place of init: the part that runs inside.
//!
//! A runtime calls init with the argument `init`, which the test harness takes as "run the tests
//! whose names contain it". There is one.

use std::ffi::CString;
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use ringfence_sys::spawn::Spawn;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    PidfdFlags, PidfdGetfdFlags, WaitOptions, getpid, pidfd_getfd, pidfd_open, waitpid,
};

#[test]
fn acting_as_init() {
    if getpid().is_init() {
        let me = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        serve(pidfd_getfd(me, 3, PidfdGetfdFlags::empty()).unwrap());
    }
}

/// Receives the directory of a group, starts a program in it and reports how it ended.
fn serve(socket: OwnedFd) {
    let mut report = File::from(socket.try_clone().unwrap());
    let group = receive(&socket);
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let spawn = Spawn {
        programs: vec![c"/bin/sleep".to_owned()],
        argv: ["sleep", "1000"].map(|word| CString::new(word).unwrap()).to_vec(),
        fds: vec![null.as_fd(), null.as_fd(), null.as_fd()],
        cgroup: Some(group.as_fd()),
        ..Spawn::default()
    };
    let child = match spawn.start() {
        Ok(child) => child,
        Err(e) => return writeln!(report, "not started: {e}").unwrap(),
    };
    writeln!(report, "started").unwrap();
    let (_, status) = waitpid(Some(child.pid), WaitOptions::empty()).unwrap().unwrap();
    writeln!(report, "ended by signal {:?}", status.terminating_signal()).unwrap();
}

fn receive(socket: &OwnedFd) -> OwnedFd {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
        .unwrap();
    let rights = |message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.into_iter().next(),
        _ => None,
    };
    control.drain().find_map(rights).unwrap()
}
