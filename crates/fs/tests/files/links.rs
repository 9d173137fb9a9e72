//! Symlinks lead where they lead for programs, and never to the host.

use std::fs;
use std::os::unix::fs::symlink;

use ringfence_fs::files::{FileErrorKind, View};

use crate::support::{Place, Quick, code, content, in_both_modes, io_code, owner, p};

/// A workspace with symlinks in its base.
fn place(links: &'static [(&'static str, &'static str)]) -> impl Fn() -> Place {
    move || {
        let place = Place::new()
            .file("releases/3/log", "third")
            .file("releases/3/deep/x", "x")
            .file("etc/passwd", "of the workspace")
            .file("top", "top");
        for (name, target) in links {
            symlink(target, place.at("base").join(name)).unwrap();
        }
        place
    }
}

#[test]
fn a_symlink_on_the_way_is_followed() {
    let links = &[
        ("current", "releases/3"),
        ("latest", "current"),
        ("absolute", "/workspace/releases/3"),
        ("releases/3/up", "../../top"),
        ("releases/3/deep/around", "../../3/./deep//x"),
        ("out-and-in", "../workspace/top"),
        ("root", "/workspace"),
        ("here", "."),
    ];
    in_both_modes(place(links), |_, mounted| {
        for files in [owner(mounted), mounted.files(View::Agent)] {
            for path in ["current/log", "latest/log", "absolute/log", "root/current/log"] {
                assert_eq!(files.get(path), "third", "{path}");
            }
            assert_eq!(files.get("current/up"), "top");
            assert_eq!(files.get("latest/deep/around"), "x");
            assert_eq!(files.get("out-and-in"), "top");
            assert_eq!(files.get("here/here/top"), "top");
            assert_eq!(files.names("current"), ["deep", "log", "up"]);
            let link = files.stat(&p("current"), false).unwrap();
            assert_eq!(
                (link.kind.as_str(), link.target.unwrap()),
                ("symlink", b"releases/3".into())
            );
            assert_eq!(files.stat(&p("current"), true).unwrap().kind.as_str(), "directory");
            let listed = files.list(&p("latest")).unwrap();
            assert_eq!(listed[1].path, p("latest/log"), "as it was asked for");
        }
    });
}

#[test]
fn a_symlink_that_leads_out_of_the_workspace_leads_nowhere() {
    let links = &[
        ("host", "/etc/passwd"),
        ("above", "../etc/passwd"),
        ("far", "../../../../../../../../etc/passwd"),
        ("proc", "/proc/self/root/etc/passwd"),
        ("slash", "/"),
        ("dots", ".."),
        ("other", "/workspaces/top"),
        ("releases/back", "../../etc"),
    ];
    in_both_modes(place(links), |place, mounted| {
        for files in [owner(mounted), mounted.files(View::Agent)] {
            for path in ["host", "above", "far", "proc", "slash", "dots", "other"] {
                assert_eq!(code(files.read(&p(path))), 2, "{path}");
                assert_eq!(code(files.try_put(path, "overwritten")), 2, "{path}");
                assert_eq!(code(files.stat(&p(path), true)), 2, "{path}");
                assert_eq!(code(files.list(&p(path))), 2, "{path}");
                assert_eq!(code(files.stat(&p(path), false)), 0, "{path}");
            }
            assert_eq!(code(files.read(&p("releases/back/passwd"))), 2);
            assert_eq!(code(files.try_put("slash/tmp/x", "")), 2);
            assert_eq!(code(files.mkdir(&p("releases/back/made"), None, true)), 2);
        }
        assert_eq!(content(place.at("base/etc/passwd")), "of the workspace");
    });
}

#[test]
fn loops_end_and_long_chains_do_not() {
    let place = place(&[("a", "b"), ("b", "a"), ("self", "self/x")])();
    for n in 0..41 {
        let target = if n == 0 { "top".into() } else { format!("c{}", n - 1) };
        symlink(target, place.at("base").join(format!("c{n}"))).unwrap();
    }
    let offline = place.offline();
    let files = offline.files(View::Owner);
    for path in ["a", "a/x", "self", "c40"] {
        let error = files.read(&p(path)).unwrap_err();
        assert_eq!(error.errno, rustix::io::Errno::LOOP, "{path}");
        assert_eq!(error.kind(), FileErrorKind::Invalid);
    }
    assert_eq!(files.get("c39"), "top", "as many as the kernel follows");
}

#[test]
fn writing_through_a_symlink_writes_what_it_leads_to_and_removing_removes_it() {
    let links = &[("current", "releases/3"), ("log", "current/log"), ("new", "current/new")];
    in_both_modes(place(links), |place, mounted| {
        let files = owner(mounted);
        files.put("log", "through the link");
        assert!(place.mnt("log").is_symlink());
        assert_eq!(content(place.mnt("releases/3/log")), "through the link");
        files.put("new", "made where it points");
        assert_eq!(content(place.mnt("releases/3/new")), "made where it points");
        assert_eq!(code(files.mkdir(&p("current"), None, false)), 17);
        assert_eq!(code(files.mkdir(&p("current"), None, true)), 0);
        files.remove(&p("current"), true).unwrap();
        assert!(!place.mnt("current").is_symlink() && place.mnt("releases/3/deep").is_dir());
        files.rename(&p("log"), &p("moved")).unwrap();
        assert_eq!(fs::read_link(place.mnt("moved")).unwrap().to_str(), Some("current/log"));
    });
}

#[test]
fn the_agent_meets_the_policy_at_every_component_of_a_symlink() {
    let links = &[("door", "vault/key"), ("window", "vault"), ("vault-door", "../vault/key")];
    let make = place(links);
    let make =
        || make().file("vault/key", "secret").rule("none:/vault/**@10").rule("none:/vault@10");
    in_both_modes(make, |place, mounted| {
        let files = mounted.files(View::Agent);
        for path in ["door", "window/key", "window"] {
            assert_eq!(code(files.stat(&p(path), true)), 2, "{path}");
            assert_eq!(io_code(fs::metadata(place.mnt(path))), 2, "{path}");
        }
        assert_eq!(code(files.read(&p("door"))), 2);
        assert_eq!(code(files.try_put("window/key", "x")), 2);
        // A program that opens it to write is told that it may not make the target.
        assert_eq!(code(files.try_put("door", "x")), io_code(fs::write(place.mnt("door"), "x")));
        assert_eq!(owner(mounted).get("door"), "secret");
    });
}

#[test]
fn a_link_is_made_as_it_is_given_and_nothing_is_followed_or_replaced_for_it() {
    let links = &[("current", "releases/3"), ("dangling", "nowhere"), ("out", "/etc")];
    in_both_modes(place(links), |place, mounted| {
        let files = owner(mounted);
        // Programs have asked for it before, so that the kernel remembers that it is not there.
        assert_eq!(io_code(fs::symlink_metadata(place.mnt("made"))), 2);
        for target in ["top", "../../../etc/passwd", "/proc/self/root", "none//./x", "\u{fc} \n"] {
            let made = files.symlink(&p("made"), target.as_bytes(), false).unwrap();
            assert_eq!((made.kind.as_str(), made.target.unwrap()), ("symlink", target.into()));
            assert_eq!(fs::read_link(place.mnt("made")).unwrap().to_str(), Some(target));
            assert_eq!(code(files.symlink(&p("made"), b"other", true)), 17, "{target}");
            files.remove(&p("made"), false).unwrap();
        }
        for there in ["top", "releases", "current", "dangling", "/"] {
            assert_eq!(code(files.symlink(&p(there), b"other", true)), 17, "{there}");
        }
        // One on the way is followed as ever, within the workspace.
        files.symlink(&p("current/new/deep/link"), b"../../log", true).unwrap();
        assert_eq!(content(place.mnt("releases/3/new/deep/link")), "third");
        assert_eq!(code(files.symlink(&p("none/link"), b"x", false)), 2);
        assert_eq!(code(files.symlink(&p("top/link"), b"x", true)), 20);
        assert_eq!(code(files.symlink(&p("out/link"), b"x", true)), 2);
    });
}

#[test]
fn the_agent_makes_links_where_it_may_write_wherever_they_lead() {
    let make = place(&[]);
    let make = || make().file("my.key", "k").rule("none:**/*.key@10").rule("read:/etc/**@10");
    in_both_modes(make, |place, mounted| {
        let files = mounted.files(View::Agent);
        for (path, refused) in
            [("etc/link", 13), ("new.key", 13), ("my.key", 13), ("etc/passwd", 17), ("none/x", 2)]
        {
            assert_eq!(code(files.symlink(&p(path), b"x", false)), refused, "{path}");
            assert_eq!(io_code(symlink("x", place.mnt(path))), refused, "{path} for a program");
        }
        assert_eq!(code(files.symlink(&p("etc/new/link"), b"x", true)), 13);
        files.symlink(&p("door"), b"my.key", false).unwrap();
        assert_eq!(code(files.read(&p("door"))), 2, "a link opens nothing");
        assert_eq!(owner(mounted).get("door"), "k");
    });
}
