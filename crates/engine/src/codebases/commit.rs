//! Putting a whole tree in place at once.

use std::collections::{HashMap, HashSet};

use crate::problem::{Problem, Result};
use crate::store::{Codebase, Digest, FileRow};

use super::build::Builder;
use super::manifest::{Manifest, ManifestEntry};
use super::scratch::{self, Scratch};
use super::sources::Sources;
use super::tree::Tree;
use super::trouble::cannot_write;
use super::versions::put_in_place;
use super::{Codebases, Inner};

/// How many missing contents a problem names.
const MOST_NAMED: usize = 10;

impl Codebases {
    /// Makes the tree that `entries` describe the newest version, all of it at once; what is not
    /// described is not in it. Nothing happens if the codebase is that tree already. What was staged
    /// is used up.
    pub fn commit(&self, account: &str, id: &str, entries: &[ManifestEntry]) -> Result<Codebase> {
        let manifest = Manifest::read(entries)?;
        let inner = &self.inner;
        let life = inner.life(id);
        let _turn = life.change.lock();
        let codebase = inner.stored_record(account, id)?;
        inner.check_manifest(&codebase, &manifest)?;
        let (digest, state) = (manifest.digest(), inner.tree_state(id)?);
        if state.manifest != Some(digest) {
            refuse_missing(&inner.missing(account, id, &manifest)?)?;
            let (tree, files) = inner.build(&codebase, &manifest)?;
            let share = inner.quotas.share(account);
            let _share = share.lock();
            // Others may have stored something while this was built.
            inner.check_account(account, codebase.size, manifest.size())?;
            put_in_place(&inner.place(id), &tree, state.version + 1)?;
            let directories = manifest.directories();
            inner.store.replace_tree(id, state.version + 1, &files, directories, Some(digest))?;
            inner.remove_if_unused(id, state.version)?;
        }
        *life.staged.lock() = None;
        inner.clear_stage(id);
        // This may have taken long, and what it was for comes after it.
        life.touched.now();
        inner.record(account, id)
    }
}

impl Inner {
    /// The tree, aside, and the files in it.
    fn build(&self, codebase: &Codebase, manifest: &Manifest) -> Result<(Scratch, Vec<FileRow>)> {
        let place = self.place(&codebase.id);
        let aside = place.scratch();
        let sources = Sources {
            inner: self,
            account: &codebase.account,
            id: &codebase.id,
            views: HashMap::new(),
            stage: place.stage(),
            taken: HashSet::new(),
        };
        let tree = Tree::make(aside.path()).map_err(cannot_write)?;
        let built =
            Builder::new(tree, sources).build(manifest, &self.store.files(&codebase.id)?)?;
        refuse_missing(&built.missing)?;
        Ok((aside, built.files))
    }

    fn clear_stage(&self, id: &str) {
        let stage = self.place(id).stage();
        for entry in std::fs::read_dir(stage).into_iter().flatten().flatten() {
            if let Err(error) = scratch::remove(&entry.path()) {
                tracing::warn!(codebase = id, %error, "a staged content is left");
            }
        }
    }
}

fn refuse_missing(missing: &[Digest]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let named: Vec<String> =
        missing.iter().take(MOST_NAMED).map(|digest| digest.to_hex().to_string()).collect();
    let named = named.join(", ");
    Err(Problem::invalid(format!("{} contents are missing: {named}", missing.len()))
        .with("missing", named)
        .with("missing_count", missing.len().to_string()))
}
