//! A workspace that is not mounted.

use std::fs;

use ringfence_fs::changes::changes;
use ringfence_fs::files::{Files, View, WriteOptions};
use ringfence_fs::layers::format::LayerDir;

use crate::support::{Place, Quick, can_mount, code, p};

fn place() -> Place {
    let place = Place::new().file("a/one", "1").file("a/two", "2").file("b/three", "3");
    std::os::unix::fs::symlink("a/one", place.at("base/link")).unwrap();
    place.file("secret/key", "k").rule("none:/secret/**@10").rule("read:/b/**@10")
}

/// A bit of everything.
fn work(files: &Files) -> Vec<i32> {
    let options = WriteOptions { mode: Some(0o755), parents: true };
    vec![
        code(files.try_put("a/one", "changed")),
        code(files.write(&p("new/deep/file"), options).and_then(|writing| writing.finish())),
        code(files.try_put("link", "through")),
        code(files.try_put("b/three", "changed")),
        code(files.try_put("secret/key", "changed")),
        code(files.rename(&p("a"), &p("c"))),
        code(files.rename(&p("b/three"), &p("c/three"))),
        code(files.mkdir(&p("a"), Some(0o700), false)),
        code(files.symlink(&p("a/more/link"), b"../../c", true)),
        code(files.symlink(&p("secret/link"), b"key", true)),
        code(files.remove(&p("c/two"), false)),
        code(files.remove(&p("secret"), true)),
        code(files.try_get("secret/key")),
        code(files.try_get("c/one")),
        code(files.try_put("c/one", "again")),
    ]
}

fn changed(layer: &LayerDir) -> Vec<String> {
    let changes = changes(layer).unwrap();
    changes.iter().map(|change| format!("{:?} {}", change.kind, change.path)).collect()
}

#[test]
fn work_without_a_mount_comes_to_the_same_as_with_one() {
    if !can_mount() {
        return;
    }
    for view in [View::Owner, View::Agent] {
        let (with, without) = (place(), place());
        let mounted = with.mount(true);
        let offline = without.offline();
        let codes = work(&mounted.files(view));
        assert_eq!(codes, work(&offline.files(view)), "{view:?}");
        let tree = mounted.files(View::Owner).tree();
        assert_eq!(tree, offline.files(View::Owner).tree());
        assert_eq!(mounted.files(View::Agent).tree(), offline.files(View::Agent).tree());
        assert_eq!(changed(mounted.layer()), changed(offline.layer()));
        mounted.unmount().unwrap();
        drop(offline);
        // And it is all there when it is opened again the other way.
        let mounted = without.mount(false);
        assert_eq!(mounted.files(View::Owner).tree(), tree);
        mounted.unmount().unwrap();
        assert_eq!(with.offline().files(View::Owner).tree(), tree);
    }
}

#[test]
fn only_one_has_the_layer() {
    let place = place();
    let offline = place.offline();
    let options = ringfence_fs::offline::OfflineOptions {
        base: place.at("base"),
        layer: place.at("layer"),
        mask: Default::default(),
    };
    let second = ringfence_fs::offline::open_offline(&options, place.policy());
    assert!(second.unwrap_err().to_string().contains("is in use"));
    drop(offline);
    place.offline();
}

#[test]
fn a_big_directory_is_listed_whole_and_in_order() {
    let place = Place::new();
    fs::create_dir(place.at("base/big")).unwrap();
    for n in 0..1500 {
        fs::write(place.at("base/big").join(format!("f{n:04}")), n.to_string()).unwrap();
    }
    let offline = place.offline();
    let files = offline.files(View::Agent);
    let names = files.names("big");
    assert!(names.len() == 1500 && names.is_sorted(), "{}", names.len());
    let mut seen = 0;
    files
        .walk(&p("/"), &mut |_| {
            seen += 1;
            if seen < 700 {
                std::ops::ControlFlow::Continue(())
            } else {
                std::ops::ControlFlow::Break(())
            }
        })
        .unwrap();
    assert_eq!(seen, 700, "a walk ends when it is told to");
    offline.files(View::Owner).remove(&p("big"), true).unwrap();
    assert_eq!(files.names("/"), [""; 0]);
}
