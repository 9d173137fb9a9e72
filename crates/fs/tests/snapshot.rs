//! Freezing a layer under a running mount, with files open.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_fs::events::EventSink;
use ringfence_fs::guard::Owner;
use ringfence_fs::layers::format::{LayerDir, LayerState};
use ringfence_fs::layers::mask::MaskOptions;
use ringfence_fs::mount::{MountOptions, Mounted, mount};
use ringfence_policy::{Policy, preset};
use tempfile::TempDir;

/// Skips with a reason where no filesystem can be mounted, and fails where it must be possible.
fn can_mount() -> bool {
    let can = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    assert!(can || std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(), "/dev/fuse is required");
    can
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for sub in ["base", "mnt"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        fs::write(dir.path().join("base/kept"), "from the base").unwrap();
        Self(dir)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn mount(&self, layer: &str, passthrough: bool) -> Mounted {
        let options = MountOptions {
            base: self.at("base"),
            base_in_place: false,
            layer: self.at(layer),
            mountpoint: self.at("mnt"),
            mask: MaskOptions::default(),
            owner: Owner {
                uid: rustix::process::getuid().as_raw(),
                gid: rustix::process::getgid().as_raw(),
            },
            passthrough,
        };
        let policy = Policy::compile(preset("full-access").unwrap()).unwrap();
        mount(&options, Arc::new(policy), EventSink::default(), || {}).unwrap()
    }
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn in_both_modes(test: impl Fn(bool)) {
    if can_mount() {
        test(true);
        test(false);
    }
}

#[test]
fn a_snapshot_keeps_what_was_there_and_the_workspace_goes_on() {
    in_both_modes(|passthrough| {
        let place = Place::new();
        let mut mounted = place.mount("one", passthrough);
        let root = place.at("mnt");
        fs::create_dir(root.join("dir")).unwrap();
        fs::write(root.join("dir/file"), "before").unwrap();
        fs::remove_file(root.join("kept")).unwrap();
        mounted.freeze(&place.at("two")).unwrap();
        assert_eq!(content(&root.join("dir/file")), "before");
        fs::write(root.join("dir/file"), "after").unwrap();
        fs::write(root.join("kept"), "made again").unwrap();
        fs::rename(root.join("dir"), root.join("moved")).unwrap();
        assert_eq!(content(&root.join("moved/file")), "after");
        mounted.unmount().unwrap();

        assert_eq!(content(&place.at("one/tree/dir/file")), "before");
        let frozen = LayerDir::inspect(&place.at("one")).unwrap();
        assert_eq!(frozen.meta().state, LayerState::Frozen);
        frozen.fork(&place.at("fork")).unwrap();
        let fork = place.mount("fork", passthrough);
        assert_eq!(content(&root.join("dir/file")), "before");
        assert!(!root.join("kept").exists());
        fork.unmount().unwrap();
        let again = place.mount("two", passthrough);
        assert_eq!(content(&root.join("moved/file")), "after");
        assert_eq!(content(&root.join("kept")), "made again");
        again.unmount().unwrap();
    });
}

#[test]
fn writes_to_a_file_that_was_open_at_the_snapshot_do_not_reach_it() {
    in_both_modes(|passthrough| {
        let place = Place::new();
        let mut mounted = place.mount("one", passthrough);
        let path = place.at("mnt/log");
        let mut open = File::options().read(true).append(true).create(true).open(&path).unwrap();
        open.write_all(b"before ").unwrap();
        mounted.freeze(&place.at("two")).unwrap();
        open.write_all(b"after").unwrap();
        assert_eq!(content(&path), "before after");
        let mut seen = String::new();
        open.seek(SeekFrom::Start(0)).unwrap();
        open.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "before after");
        drop(open);
        mounted.unmount().unwrap();
        assert_eq!(content(&place.at("one/tree/log")), "before ");
        assert_eq!(content(&place.at("two/tree/log")), "before after");
    });
}

#[test]
fn a_deleted_file_that_is_still_open_survives_a_snapshot() {
    in_both_modes(|passthrough| {
        let place = Place::new();
        let mut mounted = place.mount("one", passthrough);
        let path = place.at("mnt/gone");
        let mut open = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        mounted.freeze(&place.at("two")).unwrap();
        open.write_all(b"still here").unwrap();
        let mut seen = String::new();
        open.seek(SeekFrom::Start(0)).unwrap();
        open.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "still here");
        drop(open);
        mounted.unmount().unwrap();
    });
}

#[test]
fn names_of_a_linked_file_that_is_open_stay_one_file_after_a_snapshot() {
    in_both_modes(|passthrough| {
        let place = Place::new();
        let mut mounted = place.mount("one", passthrough);
        let (a, b) = (place.at("mnt/a"), place.at("mnt/b"));
        fs::write(&a, "1").unwrap();
        fs::hard_link(&a, &b).unwrap();
        let mut open = File::options().append(true).open(&a).unwrap();
        mounted.freeze(&place.at("two")).unwrap();
        open.write_all(b"2").unwrap();
        assert_eq!(content(&b), "12");
        drop(open);
        mounted.unmount().unwrap();
        assert_eq!(content(&place.at("one/tree/a")), "1");
        assert_eq!(content(&place.at("one/tree/b")), "1");
    });
}

#[test]
fn a_layer_that_others_stand_on_is_not_removed() {
    let place = Place::new();
    let mut layer =
        LayerDir::create(&place.at("one"), &place.at("base"), vec![], MaskOptions::default())
            .unwrap();
    layer.freeze().unwrap();
    let child = layer.fork(&place.at("two")).unwrap();
    let refused = LayerDir::inspect(&place.at("one")).unwrap().remove().unwrap_err();
    assert!(refused.to_string().contains("is needed by"), "{refused}");
    child.remove().unwrap();
    drop(layer);
    LayerDir::inspect(&place.at("one")).unwrap().remove().unwrap();
    assert!(!place.at("one").exists());
}
