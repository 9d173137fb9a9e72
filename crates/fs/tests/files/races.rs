//! Callers and programs in the same directories at the same time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringfence_fs::files::{Files, View};
use ringfence_fs::mount::Mounted;

use crate::support::{Place, Quick, can_mount, content, listed, owner, p};

const EIO: i32 = 5;
const ESTALE: i32 = 116;

/// A small source of numbers, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn name(&mut self) -> String {
        let dir = ["", "d/", "e/", "d/s/"][self.roll(4) as usize];
        format!("{dir}n{}", self.roll(6))
    }
}

fn program(place: &Place, dice: &mut Dice) -> Option<i32> {
    let (path, other) = (place.mnt(&dice.name()), place.mnt(&dice.name()));
    let done = match dice.roll(8) {
        0 | 1 => fs::write(path, "program"),
        2 => fs::read(path).map(drop),
        3 => fs::remove_file(path),
        4 => fs::rename(path, other),
        5 => fs::create_dir(path),
        6 => fs::remove_dir(path),
        _ => fs::read_dir(place.mnt("d")).map(|entries| entries.for_each(drop)),
    };
    // The kernel gives up when a name changes under its walk for the second time.
    done.err().and_then(|e| e.raw_os_error()).filter(|errno| *errno != ESTALE)
}

fn caller(files: &Files, dice: &mut Dice) -> Option<i32> {
    let (path, other) = (dice.name(), dice.name());
    let done = match dice.roll(8) {
        0 | 1 => files.try_put(&path, "caller").map(drop),
        2 => files.try_get(&path).map(drop),
        3 => files.remove(&p(&path), false),
        4 => files.rename(&p(&path), &p(&other)),
        5 => files.mkdir(&p(&path), None, false).map(drop),
        6 => files.remove(&p(&path), true),
        _ => files.list(&p("d")).map(drop),
    };
    done.err().map(|e| e.errno.raw_os_error())
}

fn place() -> Place {
    let names = ["n0", "n1", "d/n0", "d/n1", "d/s/n0", "e/n5", "d/keep", "d/s/keep", "e/keep"];
    names.iter().fold(Place::new(), |place, name| place.file(name, "base"))
}

#[test]
fn nothing_breaks_and_all_agree_in_the_end() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let place = place();
        let mounted = place.mount(passthrough);
        storm(&place, &mounted);
        let tree = owner(&mounted).tree();
        assert_eq!(seen_by_programs(&place, ""), tree);
        assert_eq!(mounted.files(View::Agent).tree(), tree);
        mounted.unmount().unwrap();
        assert_eq!(place.offline().files(View::Owner).tree(), tree, "and on the disk");
    }
}

fn storm(place: &Place, mounted: &Mounted) {
    let over = AtomicBool::new(false);
    let run = |seed: u64, step: &(dyn Fn(&mut Dice) -> Option<i32> + Sync)| {
        let mut dice = Dice(seed);
        while !over.load(Ordering::Relaxed) {
            let errno = step(&mut dice);
            assert!(!matches!(errno, Some(EIO | ESTALE)), "{errno:?}");
        }
    };
    std::thread::scope(|scope| {
        for (seed, view) in [(0, View::Owner), (1, View::Agent)] {
            scope.spawn(move || run(seed, &|dice| program(place, dice)));
            let files = mounted.files(view);
            scope.spawn(move || run(seed + 100, &move |dice| caller(&files, dice)));
        }
        std::thread::sleep(Duration::from_secs(2));
        over.store(true, Ordering::Relaxed);
    });
}

/// As [`Quick::tree`] has it.
fn seen_by_programs(place: &Place, dir: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for name in listed(place.mnt(dir.trim_start_matches('/'))) {
        let path = format!("{dir}/{name}");
        let mnt = place.mnt(&path[1..]);
        let found = fs::metadata(&mnt).unwrap();
        let mode = found.permissions().mode() & 0o1777;
        match found.is_dir() {
            true => {
                lines.push(format!("{path} directory {mode:o} "));
                lines.extend(seen_by_programs(place, &path));
            }
            false => lines.push(format!("{path} file {mode:o} {}", content(mnt))),
        }
    }
    lines
}
