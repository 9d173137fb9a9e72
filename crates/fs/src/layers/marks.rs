//! What a layer says about its lower layers, kept out of band in extended attributes.
//!
//! | mark | on | meaning |
//! |---|---|---|
//! | `whiteout` | an empty regular file with mode 1600 | this name is deleted; the value is the [`Stamp`] of what it hid |
//! | `lower` | a directory | `.`: merges with the same name below; a path: merges with that directory below; none: merges with nothing |
//! | `origin` | a regular file | the [`Stamp`] of the lower file it was copied from |
//! | `mode` | a directory with the set-group-id bit | the mode to show: on disk the owner can always enter and change it |
//!
//! Every mark is set before the one rename that publishes the entry, so a layer is whole after a
//! crash at any moment. No file name is reserved, and nothing inside a sandbox can set a mark: the
//! guard refuses the whole attribute prefix. A whiteout is a regular file rather than a character
//! device 0/0 because overlayfs, the root of most containers, refuses to create those.
//!
//! Modes on disk are such that an owner without privileges can use everything: a `user.*`
//! attribute can only be set on what may be written and read on what may be read.
//!
//! A directory without a `lower` mark merges with nothing. So the common `mkdir` is one system call, a
//! directory made where another was deleted never shows the old entries, and a directory that
//! appears later under an in-place base does not leak into one the sandbox made.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use ringfence_policy::WorkspacePath;
use ringfence_sys::files::getxattr_at;
use rustix::fs::{FileType, Mode, Stat, XattrFlags};
use rustix::io::{Errno, Result};

use super::copy::MODE_BITS;

/// Attributes with this prefix belong to the layer format and are invisible inside a sandbox.
pub const PREFIX: &[u8] = b"user.ringfence.";

const WHITEOUT: &CStr = c"user.ringfence.whiteout";
const LOWER: &CStr = c"user.ringfence.lower";
const ORIGIN: &CStr = c"user.ringfence.origin";
const MODE: &CStr = c"user.ringfence.mode";

/// Mode of a whiteout. No program makes such a file by accident, so the attribute is rarely asked
/// for in vain.
pub const WHITEOUT_MODE: u32 = 0o1600;

/// Says that a directory carries a `mode` mark. The bit itself is never shown.
const HAS_MODE: u32 = 0o2000;

/// What the owner of a layer needs on every directory.
const OWNER_ALL: u32 = 0o700;

/// What a lower file was when the layer copied or deleted it: the middle of a three-way apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    pub mtime: (i64, u32),
    pub ctime: (i64, u32),
    pub mode: u32,
    /// Hash of the content where the copy had to read it anyway.
    pub hash: Option<ContentHash>,
}

impl Stamp {
    pub fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: stat.st_size as u64,
            mtime: (stat.st_mtime, stat.st_mtime_nsec as u32),
            ctime: (stat.st_ctime, stat.st_ctime_nsec as u32),
            mode: stat.st_mode,
            hash: None,
        }
    }

    /// Whether `stat` is still the very file that was stamped, untouched since.
    pub fn is_unchanged(&self, stat: &Stat) -> bool {
        let now = Self::of(stat);
        (now.ino, now.size, now.mtime, now.ctime) == (self.ino, self.size, self.mtime, self.ctime)
    }

    /// Small numbers in few bytes: together with its name a stamp fits into an ext4 inode, where a
    /// larger attribute costs a block of its own.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![STAMP_VERSION];
        for number in [
            self.dev,
            self.ino,
            self.size,
            zigzag(self.mtime.0),
            self.mtime.1.into(),
            zigzag(self.ctime.0),
            self.ctime.1.into(),
            self.mode.into(),
        ] {
            write_varint(&mut bytes, number);
        }
        bytes.extend(self.hash.iter().flat_map(|hash| hash.0));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[STAMP_VERSION])?;
        let mut next = || read_varint(&mut rest);
        Some(Self {
            dev: next()?,
            ino: next()?,
            size: next()?,
            mtime: (unzigzag(next()?), next()?.try_into().ok()?),
            ctime: (unzigzag(next()?), next()?.try_into().ok()?),
            mode: next()?.try_into().ok()?,
            hash: rest.try_into().ok().map(ContentHash),
        })
    }
}

const STAMP_VERSION: u8 = 2;

/// What a file's content was: the first half of its BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash([u8; 16]);

impl From<blake3::Hash> for ContentHash {
    fn from(hash: blake3::Hash) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        Self(half)
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, tail) = rest.split_first()?;
        *rest = tail;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// How a directory of a layer continues in the layers below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lower {
    /// Not at all: everything in it was made in this layer.
    Nothing,
    /// With the directory of the same name.
    SameName,
    /// With the directory that the layers below show at this path.
    At(WorkspacePath),
}

/// Whether an entry of a delta layer deletes the name below it.
///
/// The cheap test comes first: only an empty file with that mode is asked for the attribute.
pub fn is_whiteout(dir: impl AsFd, name: &[u8], stat: &Stat) -> bool {
    let candidate = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_size == 0
        && stat.st_mode & 0o7777 == WHITEOUT_MODE;
    candidate && getxattr_at(dir, name, WHITEOUT, &mut [0u8; 256]).is_ok()
}

/// The stamp a whiteout or a copied file carries, if any.
pub fn read_stamp(dir: impl AsFd, name: &[u8]) -> Option<Stamp> {
    let dir = dir.as_fd();
    read(dir, name, ORIGIN).or_else(|| read(dir, name, WHITEOUT)).and_then(|v| Stamp::decode(&v))
}

fn read(dir: BorrowedFd<'_>, name: &[u8], attr: &CStr) -> Option<Vec<u8>> {
    let mut buf = [0u8; 256];
    let len = getxattr_at(dir, name, attr, &mut buf).ok()?;
    Some(buf[..len].to_vec())
}

/// Turns the open, empty file `fd` into a whiteout of what `stamp` describes.
pub fn set_whiteout(fd: impl AsFd, stamp: Option<&Stamp>) -> Result<()> {
    let value = stamp.map(Stamp::encode).unwrap_or_default();
    rustix::fs::fsetxattr(&fd, WHITEOUT, &value, XattrFlags::empty())?;
    rustix::fs::fchmod(fd, Mode::from(WHITEOUT_MODE))
}

/// Gives a directory of a layer the mode `shown`, as far as programs can tell.
pub fn set_dir_mode(dir: impl AsFd, shown: u32) -> Result<()> {
    let shown = shown & MODE_BITS;
    if shown & OWNER_ALL == OWNER_ALL {
        return rustix::fs::fchmod(dir, Mode::from(shown));
    }
    let value = format!("{shown:o}");
    rustix::fs::fsetxattr(&dir, MODE, value.as_bytes(), XattrFlags::empty())?;
    rustix::fs::fchmod(dir, Mode::from(shown | OWNER_ALL | HAS_MODE))
}

/// Whether a directory of this mode can be made as it is.
pub fn is_plain_dir_mode(mode: u32) -> bool {
    mode & OWNER_ALL == OWNER_ALL
}

/// Replaces the mode of a layer's directory by the one to show.
pub fn show_dir_mode(stat: &mut Stat, read: impl FnOnce(&CStr, &mut [u8]) -> Result<usize>) {
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_dir || stat.st_mode & HAS_MODE == 0 {
        return;
    }
    let mut value = [0u8; 8];
    let mark = read(MODE, &mut value).ok();
    let mark = mark.and_then(|len| std::str::from_utf8(&value[..len]).ok());
    if let Some(mode) = mark.and_then(|text| u32::from_str_radix(text, 8).ok()) {
        stat.st_mode = stat.st_mode & !0o7777 | mode & MODE_BITS;
    }
}

pub fn set_origin(fd: impl AsFd, stamp: &Stamp) -> Result<()> {
    rustix::fs::fsetxattr(fd, ORIGIN, &stamp.encode(), XattrFlags::empty())
}

pub fn set_lower(fd: impl AsFd, lower: &Lower) -> Result<()> {
    match lower {
        Lower::Nothing => match rustix::fs::fremovexattr(fd, LOWER) {
            Err(Errno::NODATA) => Ok(()),
            other => other,
        },
        Lower::SameName => rustix::fs::fsetxattr(fd, LOWER, b".", XattrFlags::empty()),
        Lower::At(path) => rustix::fs::fsetxattr(fd, LOWER, path.as_bytes(), XattrFlags::empty()),
    }
}

/// Reads the mark of the directory `name` in `dir`. A damaged mark merges with nothing: that can
/// hide files of a lower layer, and never show one that should be hidden.
pub fn read_lower(dir: impl AsFd, name: &[u8]) -> Lower {
    let mut buf = vec![0u8; 4096];
    let Ok(len) = getxattr_at(dir, name, LOWER, &mut buf) else {
        return Lower::Nothing;
    };
    match &buf[..len] {
        b"." => Lower::SameName,
        path => WorkspacePath::parse(path).map(Lower::At).unwrap_or(Lower::Nothing),
    }
}

/// Whether the open directory `dir` continues in the layers below its own.
pub fn continues_below(dir: impl AsFd) -> bool {
    rustix::fs::fgetxattr(dir, LOWER, &mut [0u8; 4096][..]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(seconds: i64, hash: Option<ContentHash>) -> Stamp {
        Stamp {
            dev: 64_768,
            ino: 123_456_789,
            size: 987_654_321,
            mtime: (seconds, 999_999_999),
            ctime: (-1, 0),
            mode: 0o100_644,
            hash,
        }
    }

    #[test]
    fn a_stamp_survives_being_written_down() {
        let hash = ContentHash::from(blake3::hash(b"content"));
        for stamp in [stamp(1_800_000_000, Some(hash)), stamp(i64::MIN, None), stamp(0, None)] {
            assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp));
        }
    }

    #[test]
    fn a_stamp_stays_small_enough_for_an_inode() {
        let hash = ContentHash::from(blake3::hash(b"content"));
        assert!(stamp(1_800_000_000, Some(hash)).encode().len() <= 56);
    }

    #[test]
    fn a_damaged_stamp_is_none() {
        let whole = stamp(5, None).encode();
        for end in 0..whole.len() {
            assert_eq!(Stamp::decode(&whole[..end]), None, "{end}");
        }
        assert_eq!(Stamp::decode(&[2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), None);
    }
}
