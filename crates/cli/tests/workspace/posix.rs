//! The workspace feels like a disk filesystem to the programs in it.

mod copy_up;
mod directories;
mod host;
mod kinds;
mod sharing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{
    DirEntryExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libc::{EEXIST, EINVAL, ENOENT, EOPNOTSUPP, ETXTBSY};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps,
    XattrFlags,
};

use crate::support::{Mounted, Workspace, errno, is_root, names_in, require_fuse, require_root};

fn each(prepare: impl Fn(Workspace) -> Workspace, test: impl Fn(Mounted)) {
    for ws in Workspace::both_ways() {
        test(prepare(ws).preset("full-access").mount());
    }
}

fn both(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Every inode and name that is not in use is forgotten by the kernel.
fn drop_caches() {
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
}
