//! When and how a delta covers what the base has.

use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Result;

use super::Time;
use crate::layers::marks;
use crate::layers::stack::{BASE, Leaf, Part};

/// The whiteout that the uppermost delta with this name has there.
pub(super) fn whiteout_of(parts: &[Arc<Part>], name: &[u8]) -> Result<Option<Leaf>> {
    for part in parts.iter().filter(|part| part.layer != BASE) {
        if let Some(stat) = part.stat(name)? {
            let whiteout = marks::is_whiteout(part.fd()?, name, &stat);
            let leaf = Leaf { part: part.clone(), name: name.into(), stat };
            return Ok(whiteout.then_some(leaf));
        }
    }
    Ok(None)
}

/// When a delta first put something over what the base has at `name`: made a whiteout, a file, or a
/// directory that does not continue below. If none did, the directory itself covers it.
pub(super) fn first_covered(parts: &[Arc<Part>], name: &[u8]) -> Result<Option<Time>> {
    let mut first = None;
    for part in parts.iter().filter(|part| part.layer != BASE) {
        let Some(stat) = part.stat(name)? else { continue };
        let continues = FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && marks::read_lower(part.fd()?, name) != marks::Lower::Nothing;
        if !continues {
            first = earlier(first, made_at(part, name)?);
        }
    }
    if first.is_none() {
        for part in parts.iter().filter(|part| part.layer != BASE) {
            first = earlier(first, made_at(part, b".")?);
        }
    }
    Ok(first)
}

fn earlier(a: Option<Time>, b: Time) -> Option<Time> {
    Some(a.map_or(b, |a| a.min(b)))
}

/// When an entry was made; where the filesystem does not keep that, when it was last changed.
pub(crate) fn made_at(dir: &Arc<Part>, name: &[u8]) -> Result<Time> {
    let mask = StatxFlags::BTIME | StatxFlags::CTIME;
    let found = rustix::fs::statx(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW, mask)?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let time = if known { found.stx_btime } else { found.stx_ctime };
    Ok((time.tv_sec, time.tv_nsec))
}
