//! `ringfence codebase`.

use crate::support::{Server, failed, put, text};

#[test]
fn a_second_push_of_the_same_tree_sends_nothing() {
    let server = Server::start();
    let tree = server.tree();
    let first = server.ask(&["codebase", "push", tree.to_str().unwrap()]);
    assert!(text(&first.stderr).contains("4 files"), "{}", text(&first.stderr));
    assert!(text(&first.stderr).contains(": 3 sent"), "{}", text(&first.stderr));
    let id = text(&first.stdout).trim().to_owned();
    let push = ["codebase", "push", "--codebase", &id, tree.to_str().unwrap()];
    let second = server.ask(&push);
    assert!(text(&second.stderr).contains(": 0 sent, 0 B"), "{}", text(&second.stderr));
    put(&tree.join("b.txt"), "more");
    let third = server.ask(&push);
    assert!(text(&third.stderr).contains("5 files"), "{}", text(&third.stderr));
    assert!(text(&third.stderr).contains(": 1 sent, 4 B"), "{}", text(&third.stderr));
}

#[test]
fn what_is_pushed_is_what_was_there_without_what_is_ignored() {
    let server = Server::start();
    let id = server.codebase();
    let files = server.json(&["codebase", "files", &id]);
    let find = |name: &str| files.as_array().unwrap().iter().find(|file| file["name"] == name);
    assert!(find("noise.log").is_none());
    assert_eq!(find("empty").unwrap()["isDir"], true);
    assert_eq!(find("link").unwrap()["target"], "a.txt");
    let below = server.json(&["codebase", "files", &id, "sub"]);
    assert_eq!(below[0]["mode"].as_u64().unwrap() & 0o777, 0o755);
    assert_eq!(server.says(&["codebase", "get", &id, "sub/run.sh"]), "#!/bin/sh\necho ran");
}

#[test]
fn ignored_files_come_along_if_asked_for() {
    let server = Server::start();
    let tree = server.tree();
    let id = server.says(&["codebase", "push", "--no-ignore", tree.to_str().unwrap()]);
    assert_eq!(server.says(&["codebase", "get", &id, "noise.log"]), "noise");
}

#[test]
fn a_file_is_saved_whole_or_not_at_all() {
    let server = Server::start();
    let (id, to) = (server.codebase(), server.dir.path().join("out"));
    server.says(&["codebase", "get", &id, "/a.txt", "-o", to.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "hello\n");
    let missing = server.dir.path().join("missing");
    let output = server.ask(&["codebase", "get", &id, "nothing", "-o", missing.to_str().unwrap()]);
    failed(&output, 2, &["error: "]);
    let left = std::fs::read_dir(server.dir.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains("missing") || name.contains("part")), "{left:?}");
}

#[test]
fn lists_are_tables_for_people_and_arrays_for_programs() {
    let server = Server::start();
    assert_eq!(server.json(&["codebase", "ls"]), serde_json::json!([]));
    let tree = server.tree();
    let push = ["codebase", "push", "--name", "api", "--owner", "team", tree.to_str().unwrap()];
    let id = server.says(&push);
    let table = server.says(&["codebase", "ls"]);
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("ID"), "{table}");
    let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(row[..4], [id.as_str(), "api", "team", "4"]);
    let list = server.json(&["codebase", "ls", "--owner", "team"]);
    assert_eq!((&list[0]["id"], &list[0]["fileCount"]), (&id.clone().into(), &4.into()));
    assert_eq!(server.json(&["codebase", "ls", "--owner", "other"]), serde_json::json!([]));
    assert_eq!(server.json(&["codebase", "show", &id])["name"], "api");
    server.says(&["codebase", "rm", &id]);
    assert_eq!(server.json(&["codebase", "ls"]), serde_json::json!([]));
}

#[test]
fn a_push_that_fails_leaves_no_codebase() {
    use std::os::unix::ffi::OsStrExt;
    let server = Server::start();
    let tree = server.tree();
    std::fs::write(tree.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let output = server.ask(&["codebase", "push", tree.to_str().unwrap()]);
    failed(&output, 2, &["not UTF-8", "hint: "]);
    assert_eq!(server.json(&["codebase", "ls"]), serde_json::json!([]));
}

#[test]
fn files_of_all_sizes_arrive_as_they_are() {
    let server = Server::start();
    let tree = server.dir.path().join("sizes");
    let sizes = [0, 1, 262_143, 262_144, 262_145, 1_048_576, 5_000_001];
    for size in sizes {
        put(&tree.join(size.to_string()), &"x".repeat(size));
    }
    for number in 0..300 {
        put(&tree.join(format!("small/{number}")), &number.to_string());
    }
    let id = server.says(&["codebase", "push", tree.to_str().unwrap()]);
    for size in sizes {
        let to = server.dir.path().join("out");
        let (path, to) = (size.to_string(), to.to_str().unwrap());
        server.says(&["codebase", "get", &id, &path, "-o", to]);
        assert!(std::fs::read(to).unwrap() == "x".repeat(size).into_bytes(), "{size}");
    }
    for number in ["0", "7", "299"] {
        assert_eq!(server.says(&["codebase", "get", &id, &format!("small/{number}")]), number);
    }
    assert_eq!(server.json(&["codebase", "show", &id])["fileCount"], 307);
}
