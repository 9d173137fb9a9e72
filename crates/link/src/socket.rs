//! Sockets whose paths are longer than the kernel has room for.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The kernel has no room for longer paths of sockets, in bytes.
pub const LONGEST: usize = 107;

/// A path of a socket that is short enough, to bind or to connect to while this lives: a longer one
/// is seen from its directory.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _dir: Option<File>,
}

impl SocketPath {
    pub fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path: path.into(), _dir: None });
        }
        let dir = File::open(path.parent().unwrap_or(path))?;
        let name = path.file_name().unwrap_or_default();
        let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
        Ok(Self { path, _dir: Some(dir) })
    }
}

impl AsRef<Path> for SocketPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_with_a_long_path_is_bound_and_reached() {
        let scratch = tempfile::tempdir().unwrap();
        for length in [1, LONGEST] {
            let dir = scratch.path().join("d".repeat(length));
            std::fs::create_dir(&dir).unwrap();
            let path = dir.join("s.sock");
            let listener = UnixListener::bind(SocketPath::of(&path).unwrap()).unwrap();
            assert!(path.exists());
            UnixStream::connect(SocketPath::of(&path).unwrap()).unwrap();
            listener.accept().unwrap();
        }
    }
}
