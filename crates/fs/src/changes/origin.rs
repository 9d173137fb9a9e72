//! What a file of the uppermost layer was in the base.
//!
//! A copy is stamped with the file it was copied from, which may itself be a copy in a frozen
//! layer. Following stamps by device and inode leads to the base through any number of renames.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rustix::fs::FileType;
use rustix::io::Result;

use super::walk::names_in;
use crate::layers::marks::{self, Stamp};
use crate::layers::stack::{BASE, Leaf, Part};

type Identity = (u64, u64);

#[derive(Debug)]
pub(super) struct Origins {
    frozen: Vec<Arc<Part>>,
    /// Files of frozen layers with the stamp each carries. Read when first needed: a layer that
    /// stands on the base alone has none.
    stamps: OnceLock<HashMap<Identity, Option<Stamp>>>,
}

impl Origins {
    /// `roots` are those of the whole stack, uppermost first.
    pub(super) fn new(roots: &[Arc<Part>]) -> Self {
        let below = roots.iter().skip(1).filter(|root| root.layer != BASE);
        Self { frozen: below.cloned().collect(), stamps: OnceLock::new() }
    }

    /// What the base had, for a copy or a whiteout of any layer. `None` if it came from no base file.
    pub(super) fn of(&self, entry: &Leaf) -> Result<Option<Stamp>> {
        match marks::read_stamp(entry.part.fd()?, &entry.name) {
            Some(stamp) => self.in_base(stamp),
            None => Ok(None),
        }
    }

    fn in_base(&self, mut stamp: Stamp) -> Result<Option<Stamp>> {
        let known = self.stamps()?;
        // Each step leads to a lower layer; the bound is for layers somebody tampered with.
        for _ in 0..=self.frozen.len() {
            match known.get(&(stamp.dev, stamp.ino)) {
                None => return Ok(Some(stamp)),
                Some(None) => return Ok(None),
                Some(Some(below)) => stamp = below.clone(),
            }
        }
        Ok(None)
    }

    fn stamps(&self) -> Result<&HashMap<Identity, Option<Stamp>>> {
        if let Some(stamps) = self.stamps.get() {
            return Ok(stamps);
        }
        let mut stamps = HashMap::new();
        for root in &self.frozen {
            collect(root, &mut stamps)?;
        }
        Ok(self.stamps.get_or_init(|| stamps))
    }
}

fn collect(root: &Arc<Part>, stamps: &mut HashMap<Identity, Option<Stamp>>) -> Result<()> {
    let mut pending = vec![root.clone()];
    while let Some(dir) = pending.pop() {
        for name in names_in(&dir)? {
            let Some(stat) = dir.stat(&name)? else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => pending.push(Part::below(&dir, &name)?),
                FileType::RegularFile if !marks::is_whiteout(dir.fd()?, &name, &stat) => {
                    let stamp = marks::read_stamp(dir.fd()?, &name);
                    stamps.insert((stat.st_dev, stat.st_ino), stamp);
                }
                _ => {}
            }
        }
    }
    Ok(())
}
