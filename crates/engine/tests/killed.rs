//! A server that is killed while files are sent to it, by a real SIGKILL at some moment.
//!
//! The test starts itself again as the server that will be killed: see [`be_killed`].

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use ringfence_engine::codebases::{Codebases, Content, Limits, ManifestEntry};
use ringfence_engine::codebases::{NewCodebase, UploadTarget};
use ringfence_engine::id::Kind;
use ringfence_engine::problem::Result;
use ringfence_engine::store::{CodebaseFilter, LOCAL, Page, SandboxRecord, Store};

const STATE: &str = "RINGFENCE_TEST_STATE";
const ROUND: &str = "RINGFENCE_TEST_ROUND";
const FLEETING: &str = "fleeting";

fn open(state: &Path) -> (Store, Codebases) {
    let store = Store::open(state).unwrap();
    let codebases = Codebases::new(store.clone(), Limits::default()).unwrap();
    (store, codebases)
}

#[test]
fn a_killed_server_leaves_no_half_file_and_forgets_nothing_it_has_answered() {
    if let Some(state) = std::env::var_os(STATE) {
        return be_killed(Path::new(&state));
    }
    let state = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let answered = run_and_kill(state.path(), round, 20 + 13 * round);
        check(state.path(), round, &answered);
    }
}

/// Waits for so many answers, then kills without a warning. Returns what was answered.
fn run_and_kill(state: &Path, round: usize, answers: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("a_killed_server_leaves_no_half_file_and_forgets_nothing_it_has_answered")
        .env(STATE, state)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map_while(std::result::Result::ok);
    let mut answered = lines.filter(|line| line.starts_with("done "));
    let mut seen: Vec<String> = answered.by_ref().take(answers).collect();
    assert_eq!(seen.len(), answers, "the server has ended by itself");
    child.kill().unwrap();
    seen.extend(answered);
    child.wait().unwrap();
    seen
}

/// Sends files, stands on versions, commits trees and deletes codebases until it is killed.
fn be_killed(state: &Path) {
    let round = std::env::var(ROUND).unwrap();
    let (store, codebases) = open(state);
    codebases.reconcile().unwrap();
    let wanted =
        NewCodebase { owner_id: round.clone(), name: "n".into(), ..NewCodebase::default() };
    let id = codebases.create(LOCAL, wanted.clone()).unwrap().id;
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (codebases, id) = (&codebases, &id);
            scope.spawn(move || {
                for file in 0.. {
                    let path = format!("w{writer}/d{}/f{file}", file % 5);
                    send(codebases, id, &path).unwrap();
                    println!("done {path}");
                }
            });
        }
        scope.spawn(|| {
            loop {
                stand_on_newest(&store, &codebases, &id).unwrap();
                let other = codebases.create(LOCAL, wanted.clone()).unwrap().id;
                // A file that was listed may not be on record yet, and then its content is missing.
                let _ = commit_somewhere(&codebases, &id, &other);
                codebases.delete(LOCAL, &other).unwrap();
                codebases.sweep(&[]).unwrap();
            }
        });
        scope.spawn(|| {
            loop {
                come_and_go(&store, &codebases).unwrap();
            }
        });
    });
}

/// A file says how it goes on, so half of one can be told.
fn text_of(path: &str) -> Vec<u8> {
    format!("{path}\n").repeat(2000).into_bytes()
}

fn send(codebases: &Codebases, id: &str, path: &str) -> Result<()> {
    let target = UploadTarget::File { path: path.into(), mode: None };
    let mut upload = codebases.begin_upload(LOCAL, id, target)?;
    for part in text_of(path).chunks(4096) {
        upload.write(part)?;
    }
    upload.finish().map(|_| ())
}

fn stand_on_newest(store: &Store, codebases: &Codebases, id: &str) -> Result<()> {
    let pinned = codebases.pin(LOCAL, id, None)?;
    let sandbox = SandboxRecord {
        id: Kind::Sandbox.random(),
        account: LOCAL.into(),
        codebase_id: id.into(),
        codebase_version: Some(pinned.version),
        ..SandboxRecord::default()
    };
    store.insert_sandbox(&sandbox, usize::MAX)?;
    // About every second one is left standing.
    if sandbox.id.ends_with(['0', '2', '4', '6', '8', 'a', 'c', 'e']) {
        store.delete_sandbox(&sandbox.id)?;
        codebases.unpin(id, pinned.version)?;
    }
    Ok(())
}

/// A codebase for one sandbox, and gone with it.
fn come_and_go(store: &Store, codebases: &Codebases) -> Result<()> {
    let (owner_id, name) = (FLEETING.into(), "n".into());
    let wanted = NewCodebase { owner_id, name, fleeting: true, ..NewCodebase::default() };
    let id = codebases.create(LOCAL, wanted)?.id;
    send(codebases, &id, "file")?;
    let pinned = codebases.pin(LOCAL, &id, None)?;
    let sandbox = SandboxRecord {
        id: Kind::Sandbox.random(),
        account: LOCAL.into(),
        codebase_id: id.clone(),
        ..SandboxRecord::default()
    };
    store.insert_sandbox(&sandbox, usize::MAX)?;
    store.delete_sandbox(&sandbox.id)?;
    codebases.release(&id, Some(pinned.version))
}

/// Commits what one codebase holds to another.
fn commit_somewhere(codebases: &Codebases, from: &str, to: &str) -> Result<()> {
    let found = codebases.list_files(LOCAL, from, "", true)?;
    let entries: Vec<ManifestEntry> = found
        .iter()
        .map(|entry| {
            let path = entry.path.display().to_string();
            let text = text_of(&path);
            let digest = blake3::hash(&text).to_string();
            let content = Content::File { mode: None, size: text.len() as u64, digest };
            ManifestEntry { path, content }
        })
        .collect();
    codebases.commit(LOCAL, to, &entries).map(|_| ())
}

fn check(state: &Path, round: usize, answered: &[String]) {
    let (store, codebases) = open(state);
    codebases.reconcile().unwrap();
    assert_eq!(codebases.reconcile().unwrap(), Vec::<String>::new(), "once is enough");
    let page = Page::default();
    let all = codebases.list(LOCAL, &CodebaseFilter::default(), &page).unwrap().items;
    for codebase in &all {
        let files = codebases.list_files(LOCAL, &codebase.id, "", true).unwrap();
        for entry in &files {
            let path = entry.path.display().to_string();
            let mut bytes = Vec::new();
            let mut file = codebases.open_file(LOCAL, &codebase.id, &path).unwrap();
            file.read_to_end(&mut bytes).unwrap();
            assert!(bytes == text_of(&path), "{path} is half a file");
        }
        assert_eq!(codebase.file_count, files.len() as u64);
        assert_eq!(codebase.size, files.iter().map(|entry| entry.size).sum::<u64>());
    }
    let mine = all.iter().find(|codebase| codebase.owner_id == round.to_string()).unwrap();
    for answer in answered {
        let path = answer.strip_prefix("done ").unwrap();
        codebases.stat(LOCAL, &mine.id, path).unwrap();
    }
    for sandbox in store.all_sandboxes().unwrap() {
        codebases.pin(LOCAL, &sandbox.codebase_id, sandbox.codebase_version).unwrap();
    }
    // Of each round the one that was just being used or made, at most.
    let left = all.iter().filter(|codebase| codebase.owner_id == FLEETING).count();
    assert!(left <= round + 1, "{left} fleeting codebases are left");
    let ids: BTreeSet<String> = all.iter().map(|codebase| codebase.id.clone()).collect();
    let entries = std::fs::read_dir(state.join("codebases")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name != "trash").collect::<BTreeSet<_>>(), ids);
}
