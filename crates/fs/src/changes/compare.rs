//! Whether two entries hold the same.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};
use rustix::io::Result;

use crate::layers::copy::{MODE_BITS, errno, is_user_attribute, open_source};
use crate::layers::marks::{ContentHash, Stamp};
use crate::layers::stack::{Leaf, Part};

/// Whether two entries that are not directories are of one type and hold the same.
pub(crate) fn same_content(a: &Leaf, b: &Leaf) -> Result<bool> {
    let kind = FileType::from_raw_mode(a.stat.st_mode);
    if kind != FileType::from_raw_mode(b.stat.st_mode) {
        return Ok(false);
    }
    if (a.stat.st_dev, a.stat.st_ino) == (b.stat.st_dev, b.stat.st_ino) {
        return Ok(true);
    }
    match kind {
        FileType::RegularFile => Ok(a.stat.st_size == b.stat.st_size && same_bytes(a, b)?),
        FileType::Symlink => Ok(link_target(a)? == link_target(b)?),
        _ => Ok(true),
    }
}

/// Whether a copy still holds what its origin held when it was copied. `base` is what the base has
/// there now.
pub(super) fn same_as_origin(copy: &Leaf, stamp: &Stamp, base: &Leaf) -> Result<bool> {
    if copy.stat.st_size as u64 != stamp.size {
        return Ok(false);
    }
    match stamp.hash {
        Some(hash) => Ok(hash_of(copy)? == hash),
        None if stamp.is_unchanged(&base.stat) => same_bytes(copy, base),
        // Nobody knows what it was; the time is the best there is.
        None => Ok(Stamp::of(&copy.stat).mtime == stamp.mtime),
    }
}

pub(crate) fn hash_of(leaf: &Leaf) -> Result<ContentHash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open_source(leaf)?).map_err(errno)?;
    Ok(hasher.finalize().into())
}

fn same_bytes(a: &Leaf, b: &Leaf) -> Result<bool> {
    let open = |leaf| open_source(leaf).map(|file| BufReader::with_capacity(1 << 16, file));
    let (mut a, mut b): (BufReader<File>, _) = (open(a)?, open(b)?);
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = read_full(&mut a, &mut left)?;
        if read_full(&mut b, &mut right)? != length || left[..length] != right[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(errno(e)),
        }
    }
    Ok(filled)
}

pub(crate) fn link_target(leaf: &Leaf) -> Result<Vec<u8>> {
    let target = rustix::fs::readlinkat(leaf.part.fd()?, &leaf.name[..], Vec::new())?;
    Ok(target.into_bytes())
}

/// The permission bits a workspace can show.
pub(crate) fn bits(stat: &Stat) -> u32 {
    stat.st_mode & MODE_BITS
}

/// Extended attributes that programs may set. A filesystem without them has none.
pub(super) fn attributes(dir: &Arc<Part>, name: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let fd = dir.fd()?;
    let names = ringfence_sys::files::listxattr_at(&fd, name).unwrap_or_default();
    let mut found = BTreeMap::new();
    for attribute in names.split(|byte| *byte == 0).filter(|name| is_user_attribute(name)) {
        let Ok(key) = CString::new(attribute) else { continue };
        let mut value = vec![0; 64 * 1024];
        if let Ok(length) = ringfence_sys::files::getxattr_at(&fd, name, &key, &mut value) {
            value.truncate(length);
            found.insert(attribute.to_vec(), value);
        }
    }
    Ok(found)
}
