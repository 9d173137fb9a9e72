//! What `--events` records.

use std::fs;
use std::path::Path;

use crate::support::{Mounted, Workspace, eventually, require_fuse};

fn recorded(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn watched(ws: Workspace) -> (Mounted, std::path::PathBuf) {
    let file = ws.base().with_file_name("events");
    (ws.arg("--events").arg(file.to_str().unwrap()).mount(), file)
}

#[test]
fn a_denied_access_is_recorded_with_its_path_level_and_rule_every_time() {
    require_fuse!();
    let (ws, file) =
        watched(Workspace::new().preset("agent-safe").file(".env", "x").file("a", "a"));
    for _ in 0..3 {
        ws.fails("cat .env");
    }
    ws.fails("echo x > a");
    eventually("three lookups and a write", || {
        let text = recorded(&file);
        text.matches("\"path\":\"/.env\"").count() == 3 && text.contains("\"path\":\"/a\"")
    });
    let text = recorded(&file);
    let line = text.lines().find(|line| line.contains("/.env")).unwrap();
    for part in
        ["\"decision\":\"denied\"", "\"level\":\"none\"", "\"rule\":\"**/.env*\"", "\"pid\":"]
    {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_granted_open_is_recorded_for_reading_and_for_writing() {
    require_fuse!();
    let (ws, file) = watched(Workspace::new().preset("full-access").file("a", "a"));
    ws.ok("cat a; echo b >> a; echo c > new");
    eventually("a read and a write", || {
        let text = recorded(&file);
        text.contains("\"operation\":\"read\",\"path\":\"/a\",\"decision\":\"granted\"")
            && text.contains("\"operation\":\"write\",\"path\":\"/a\",\"decision\":\"granted\"")
            && text.contains("\"operation\":\"create\",\"path\":\"/new\",\"decision\":\"granted\"")
    });
}

#[test]
fn everything_that_changes_a_name_is_recorded_once_it_is_done() {
    require_fuse!();
    let (ws, file) = watched(Workspace::new().preset("full-access").file("a", "a").file("b", "b"));
    ws.ok("mkdir dir; ln -s a sym; ln a hard; mv b moved; rm a; rmdir dir; chmod 600 moved");
    ws.fails("rmdir sym");
    let done = [
        ("create", "/dir"),
        ("create", "/sym"),
        ("link", "/hard"),
        ("rename", "/b"),
        ("rename", "/moved"),
        ("remove", "/a"),
        ("remove", "/dir"),
        ("setattr", "/moved"),
    ];
    for (operation, path) in done {
        let entry =
            format!("\"operation\":\"{operation}\",\"path\":\"{path}\",\"decision\":\"granted\"");
        eventually(&entry, || recorded(&file).contains(&entry));
    }
    assert!(!recorded(&file).contains("\"operation\":\"remove\",\"path\":\"/sym\""));
}

#[test]
fn a_hidden_name_is_recorded_whether_or_not_it_exists() {
    require_fuse!();
    let (ws, file) = watched(Workspace::new().preset("agent-safe").file("there.key", "x"));
    ws.fails("cat there.key");
    ws.fails("cat absent.key");
    eventually("both", || {
        let text = recorded(&file);
        text.contains("/there.key") && text.contains("/absent.key")
    });
}

#[test]
fn a_file_that_stays_open_after_it_was_hidden_is_on_record() {
    require_fuse!();
    let ws = Workspace::new().file("kept", "x").file("other", "x");
    let rules = ws.base().with_file_name("policy.toml");
    fs::write(&rules, "preset = \"full-access\"\n").unwrap();
    let (ws, file) = watched(ws.arg("--policy").arg(rules.to_str().unwrap()));
    let _open = fs::File::open(ws.path("kept")).unwrap();
    let hide = "preset = \"full-access\"\n[[rule]]\npattern = \"/kept\"\nlevel = \"none\"\n";
    fs::write(&rules, hide).unwrap();
    ws.server().signal(rustix::process::Signal::HUP);
    eventually("the record names the file", || {
        recorded(&file).contains("\"operation\":\"kept-open\",\"path\":\"/kept\"")
    });
    assert!(!recorded(&file).contains("\"operation\":\"kept-open\",\"path\":\"/other\""));
}
