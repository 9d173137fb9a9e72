//! Several writers at once, the server killed at a random moment, many times over one layer.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Mounted, Workspace, names_in, require_fuse};

const WRITERS: u64 = 4;
const ROUNDS: u64 = 22;
const HIDDEN: &str = "this must never be seen\n";

/// A small generator, so that a failing run can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            return None;
        }
        items.get(self.below(items.len() as u64) as usize)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Dir,
    File(Vec<u8>),
}

/// What one writer's directory holds, by path.
type Tree = BTreeMap<PathBuf, Entry>;

/// One call into the kernel.
#[derive(Debug, Clone)]
enum Step {
    Create(PathBuf),
    Append(PathBuf, Vec<u8>),
    /// Syncs the file after an append; changes nothing that can be seen.
    Sync,
    Truncate(PathBuf),
    Mkdir(PathBuf),
    Unlink(PathBuf),
    Rmdir(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// What a tree becomes by a step.
fn apply(tree: &mut Tree, step: &Step) {
    match step.clone() {
        Step::Create(path) => drop(tree.insert(path, Entry::File(vec![]))),
        Step::Append(path, data) => {
            if let Some(Entry::File(content)) = tree.get_mut(&path) {
                content.extend(data);
            }
        }
        Step::Sync => {}
        Step::Truncate(path) => drop(tree.insert(path, Entry::File(vec![]))),
        Step::Mkdir(path) => drop(tree.insert(path, Entry::Dir)),
        Step::Unlink(path) | Step::Rmdir(path) => drop(tree.remove(&path)),
        Step::Rename(from, to) => {
            let moved: Vec<_> = tree.keys().filter(|p| p.starts_with(&from)).cloned().collect();
            for path in moved {
                let entry = tree.remove(&path).unwrap();
                let rest = path.strip_prefix(&from).unwrap();
                let new = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                tree.insert(new, entry);
            }
        }
    }
}

/// Does a step for real. Files are kept open between appends, as programs do.
fn perform(root: &Path, step: &Step, open: &mut Option<(PathBuf, File)>) -> std::io::Result<()> {
    match step {
        Step::Create(path) => {
            let file = File::options().append(true).create_new(true).open(root.join(path))?;
            *open = Some((path.clone(), file));
            Ok(())
        }
        Step::Append(path, data) => {
            if open.as_ref().is_none_or(|(at, _)| at != path) {
                let file = File::options().append(true).open(root.join(path))?;
                *open = Some((path.clone(), file));
            }
            open.as_ref().unwrap().1.try_clone()?.write_all(data)
        }
        Step::Sync => match open {
            Some((_, file)) => file.sync_all(),
            None => Ok(()),
        },
        Step::Truncate(path) => {
            File::options().write(true).truncate(true).open(root.join(path)).map(drop)
        }
        Step::Mkdir(path) => fs::create_dir(root.join(path)),
        Step::Unlink(path) => fs::remove_file(root.join(path)),
        Step::Rmdir(path) => fs::remove_dir(root.join(path)),
        Step::Rename(from, to) => fs::rename(root.join(from), root.join(to)),
    }
}

/// How a step ended that was not done: the server was gone, or it was refused as it should be.
fn is_gone(e: &std::io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOTCONN | libc::ECONNABORTED | libc::EIO))
}

/// A step that a writer may take on its tree; `None` if the one drawn is impossible.
fn draw(random: &mut Random, tree: &Tree, serial: u64) -> Option<Step> {
    let is_dir = |entry: &Entry| matches!(entry, Entry::Dir);
    let dirs: Vec<_> = tree.iter().filter(|(_, e)| is_dir(e)).map(|(p, _)| p.clone()).collect();
    let files: Vec<_> = tree.iter().filter(|(_, e)| !is_dir(e)).map(|(p, _)| p.clone()).collect();
    let empty = |dir: &PathBuf| !tree.keys().any(|p| p.parent() == Some(dir));
    let place = |random: &mut Random| match random.below(4) {
        0 => PathBuf::new(),
        _ => random.of(&dirs).cloned().unwrap_or_default(),
    };
    Some(match random.below(12) {
        0 | 1 => Step::Create(place(random).join(format!("n{serial}"))),
        2 | 3 => Step::Append(random.of(&files)?.clone(), format!("line {serial}\n").into()),
        4 => Step::Truncate(random.of(&files)?.clone()),
        5 => Step::Mkdir(place(random).join(format!("d{serial}"))),
        6 => Step::Unlink(random.of(&files)?.clone()),
        7 => Step::Rmdir(dirs.iter().find(|dir| empty(dir))?.clone()),
        8 => Step::Rename(random.of(&files)?.clone(), place(random).join(format!("r{serial}"))),
        9 => {
            let (from, to) = (random.of(&files)?.clone(), random.of(&files)?.clone());
            (from != to).then_some(Step::Rename(from, to))?
        }
        _ => {
            let from = random.of(&dirs)?.clone();
            let to = place(random).join(format!("m{serial}"));
            (!to.starts_with(&from)).then_some(Step::Rename(from, to))?
        }
    })
}

/// What a writer says it did when the server was killed.
struct Outcome {
    tree: Tree,
    /// The step that had not returned.
    unsure: Option<Step>,
}

/// Hidden files that the base holds below this writer's directory, which keep their parents from
/// being moved or removed.
fn holds_hidden(path: &Path) -> bool {
    path == Path::new("kept") || path == Path::new("kept/in")
}

fn write_until_killed(
    root: &Path,
    mut tree: Tree,
    mut random: Random,
    done: &AtomicU64,
    stop: &AtomicBool,
) -> Outcome {
    let mut open = None;
    let mut next: Option<Step> = None;
    while !stop.load(Ordering::Acquire) {
        let serial = done.fetch_add(1, Ordering::AcqRel);
        let Some(step) = next.take().or_else(|| draw(&mut random, &tree, serial)) else { continue };
        let result = perform(root, &step, &mut open);
        match (&step, result) {
            (_, Err(e)) if is_gone(&e) => return Outcome { tree, unsure: Some(step) },
            (Step::Rename(from, _), Err(e)) if holds_hidden(from) => {
                assert_eq!(e.raw_os_error(), Some(libc::EACCES), "{step:?}");
            }
            (Step::Rmdir(path), Err(e)) if holds_hidden(path) => {
                assert_eq!(e.raw_os_error(), Some(libc::ENOTEMPTY), "{step:?}");
            }
            (Step::Rename(path, _) | Step::Rmdir(path), Ok(())) if holds_hidden(path) => {
                panic!("hidden files were moved or removed by {step:?}");
            }
            (Step::Rmdir(path), Err(e)) => {
                panic!("{step:?}: {e}, holding {:?}", names_in(&root.join(path)));
            }
            (_, Err(e)) => panic!("{step:?}: {e}"),
            (_, Ok(())) => {
                apply(&mut tree, &step);
                if !matches!(step, Step::Append(..) | Step::Create(_)) {
                    open = None;
                }
                next = match &step {
                    Step::Create(path) => Some(Step::Append(path.clone(), b"first\n".into())),
                    Step::Append(..) => Some(Step::Sync),
                    _ => None,
                };
            }
        }
    }
    Outcome { tree, unsure: None }
}

fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_path_buf();
            let meta = path.symlink_metadata();
            let meta = meta.unwrap_or_else(|e| panic!("listed: {}: {e}", path.display()));
            if meta.is_dir() {
                dirs.push(path);
                tree.insert(name, Entry::Dir);
            } else {
                let mut content = vec![];
                File::open(&path).unwrap().read_to_end(&mut content).unwrap();
                tree.insert(name, Entry::File(content));
            }
        }
    }
    tree
}

/// The tree is what the writer had done, with or without the step that had not returned.
fn check(found: &Tree, outcome: &Outcome, context: &str) {
    if *found == outcome.tree {
        return;
    }
    let mut after = outcome.tree.clone();
    if let Some(step) = &outcome.unsure {
        apply(&mut after, step);
        if *found == after {
            return;
        }
    }
    let differs = |a: &Tree, b: &Tree| -> Vec<String> {
        let other = a.iter().filter(|(path, entry)| b.get(*path) != Some(entry));
        other.map(|(path, entry)| format!("{} {}", path.display(), short(entry))).collect()
    };
    panic!(
        "{context}: unsure {:?}\nexpected but not found: {:#?}\nfound but not expected: {:#?}",
        outcome.unsure,
        differs(&outcome.tree, found),
        differs(found, &outcome.tree)
    );
}

fn short(entry: &Entry) -> String {
    match entry {
        Entry::Dir => "directory".into(),
        Entry::File(content) => {
            format!("{} bytes, {:?}", content.len(), String::from_utf8_lossy(content))
        }
    }
}

fn base(mut ws: Workspace) -> Workspace {
    for writer in 0..WRITERS {
        for dir in 0..4 {
            for file in 0..4 {
                ws = ws
                    .file(format!("w{writer}/b{dir}/f{file}"), format!("base {file}\n"))
                    .file(format!("w{writer}/b{dir}/sub/g{file}"), format!("base {file}\n"));
            }
        }
        ws = ws
            .file(format!("w{writer}/kept/visible"), "visible\n")
            .file(format!("w{writer}/kept/in/hidden.key"), HIDDEN)
            .file(format!("w{writer}/secret/one"), HIDDEN);
    }
    ws
}

fn nothing_hidden_is_visible(ws: &Mounted) {
    for writer in 0..WRITERS {
        for hidden in ["secret", "secret/one", "kept/in/hidden.key"] {
            let path = format!("w{writer}/{hidden}");
            assert!(!ws.path(&path).exists(), "{path} is visible");
            let in_base = ws.base().join(&path);
            assert!(in_base.is_dir() || fs::read_to_string(in_base).unwrap() == HIDDEN);
        }
    }
    let found =
        ws.ok("find . -name '*.key' -o -name 'secret*'; grep -rl 'never be seen' . || true");
    assert_eq!(found, "");
}

/// `RINGFENCE_STORM_SEED` repeats a run, or tries another one.
fn storm(ws: Workspace, seed: u64) {
    let given = std::env::var("RINGFENCE_STORM_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(seed);
    let mut random = Random(seed);
    let mut ws =
        base(ws).preset("full-access").rule("none:**/*.key").rule("none:/*/secret/**").mount();
    let started = Instant::now();
    for round in 0..ROUNDS {
        let context = format!("seed {seed}, round {round}");
        let outcomes = one_round(&mut ws, &mut random);
        ws = ws.crash();
        assert!(fs::read_dir(ws.layer.join("work")).unwrap().next().is_none(), "{context}");
        let writers: Vec<_> = (0..WRITERS).map(|writer| format!("w{writer}")).collect();
        assert_eq!(ws.names("/"), writers, "{context}");
        for (writer, outcome) in outcomes.iter().enumerate() {
            let found = read_tree(&ws.path(format!("w{writer}")));
            check(&found, outcome, &format!("{context}, writer {writer}"));
        }
        nothing_hidden_is_visible(&ws);
        assert!(started.elapsed() < Duration::from_secs(55), "too slow: round {round}");
    }
}

/// Writers work until the server is killed, after a random number of their steps.
fn one_round(ws: &mut Mounted, random: &mut Random) -> Vec<Outcome> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let target = 10 + random.below(600);
    let serial = random.below(1 << 40) << 12;
    done.store(serial, Ordering::Release);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let root = ws.path(format!("w{writer}"));
                let tree = read_tree(&root);
                let random = Random(random.below(u64::MAX - 1) + 1);
                let (done, stop) = (&done, &stop);
                scope.spawn(move || write_until_killed(&root, tree, random, done, stop))
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(10);
        while done.load(Ordering::Acquire) < serial + target
            && Instant::now() < deadline
            && threads.iter().all(|thread| !thread.is_finished())
        {
            std::thread::yield_now();
        }
        let aside = Instant::now() + Duration::from_micros(random.below(500));
        while Instant::now() < aside {
            std::hint::spin_loop();
        }
        ws.server().signal(rustix::process::Signal::KILL);
        // A writer that only used passed-through files has not noticed.
        let patience = Instant::now() + Duration::from_secs(5);
        while Instant::now() < patience && threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Release);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_killed_server_loses_nothing_that_had_returned_and_shows_nothing_hidden() {
    require_fuse!();
    storm(Workspace::new(), 0x5eed_0001);
}

#[test]
fn a_killed_server_without_passthrough_loses_nothing_that_had_returned() {
    require_fuse!();
    storm(Workspace::new().no_passthrough(), 0x5eed_0002);
}
