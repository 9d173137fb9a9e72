//! Whatever is done to a journal afterwards is noticed.

use super::*;

#[test]
fn what_was_written_verifies() {
    let dir = finished(ID);
    let verified = verify(dir.path(), ID).unwrap();
    assert_eq!((verified.head.seq, verified.ending), (14, Ending::InOrder));
}

#[test]
fn any_changed_byte_of_the_journal_or_its_head_is_noticed() {
    let dir = finished(ID);
    for name in [JOURNAL_FILE, HEAD_FILE] {
        let path = dir.path().join(name);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            for mask in [1, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[at] ^= mask;
                fs::write(&path, bad).unwrap();
                assert!(verify(dir.path(), ID).is_err(), "{name}: byte {at} ^ {mask:#x}");
            }
        }
        fs::write(&path, good).unwrap();
    }
    verify(dir.path(), ID).unwrap();
}

#[test]
fn the_first_changed_entry_is_named() {
    let dir = finished(ID);
    let mut lines = lines(dir.path());
    lines[4] = lines[4].replace("/.env", "/.txt");
    assert!(lines[3].contains("/.env"), "{}", lines[3]);
    lines[3] = lines[3].replace("denied", "grants");
    put_lines(dir.path(), &lines);
    assert_eq!(broken(dir.path()), Broken { line: 4, reason: Reason::WrongHash });
}

#[test]
fn a_removed_line_is_noticed() {
    let dir = finished(ID);
    let good = lines(dir.path());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad.remove(at);
        put_lines(dir.path(), &bad);
        let found = broken(dir.path());
        assert_eq!(found.line, at as u64 + 1, "{found}");
        let truncated = matches!(found.reason, Reason::Truncated { head: 14 });
        assert_eq!(truncated, at == good.len() - 1, "{found}");
    }
}

#[test]
fn swapped_lines_are_noticed() {
    let dir = finished(ID);
    let good = lines(dir.path());
    for at in 0..good.len() - 1 {
        let mut bad = good.clone();
        bad.swap(at, at + 1);
        put_lines(dir.path(), &bad);
        let found = broken(dir.path());
        let wrong = Reason::WrongNumber { found: at as u64 + 2 };
        assert_eq!(found, Broken { line: at as u64 + 1, reason: wrong });
    }
}

#[test]
fn a_journal_cut_anywhere_is_truncated() {
    let dir = finished(ID);
    let good = fs::read(file(dir.path())).unwrap();
    for length in 0..good.len() {
        fs::write(file(dir.path()), &good[..length]).unwrap();
        assert!(matches!(broken(dir.path()).reason, Reason::Truncated { head: 14 }), "{length}");
    }
    fs::remove_file(file(dir.path())).unwrap();
    assert_eq!(broken(dir.path()), Broken { line: 1, reason: Reason::Truncated { head: 14 } });
}

#[test]
fn an_inserted_line_is_noticed() {
    let dir = finished(ID);
    let good = lines(dir.path());
    for at in 0..=good.len() {
        for line in [good[2].clone(), "{}".to_owned(), String::new()] {
            let mut bad = good.clone();
            bad.insert(at, line);
            put_lines(dir.path(), &bad);
            let found = broken(dir.path()).line;
            // A copy is the original where it lands beside it, and what follows is then wrong.
            assert!(found == at as u64 + 1 || (at == 2 && found == 4), "{at}: {found}");
        }
    }
}

#[test]
fn something_behind_the_end_is_noticed() {
    let dir = finished(ID);
    let mut bytes = fs::read(file(dir.path())).unwrap();
    bytes.extend_from_slice(b"{\"seq\"");
    fs::write(file(dir.path()), bytes).unwrap();
    assert_eq!(broken(dir.path()), Broken { line: 15, reason: Reason::AfterTheEnd });
}

#[test]
fn an_entry_that_fits_the_chain_behind_the_end_is_noticed() {
    let dir = finished(ID);
    let head = verify(dir.path(), ID).unwrap().head;
    let mut bytes = fs::read(file(dir.path())).unwrap();
    line::seal(&mut bytes, 15, head.hash, &started("cmd_x"), std::time::SystemTime::now());
    fs::write(file(dir.path()), bytes).unwrap();
    assert_eq!(broken(dir.path()), Broken { line: 15, reason: Reason::AfterTheEnd });
}

#[test]
fn the_journal_of_another_sandbox_is_noticed_even_with_its_head() {
    let (dir, other) = (finished(ID), finished("sb_two"));
    fs::copy(file(other.path()), file(dir.path())).unwrap();
    let reason = Reason::OtherSandbox { found: "sb_two".into() };
    assert_eq!(broken(dir.path()), Broken { line: 1, reason: reason.clone() });
    fs::copy(other.path().join(HEAD_FILE), dir.path().join(HEAD_FILE)).unwrap();
    assert_eq!(broken(dir.path()), Broken { line: 1, reason });
}

#[test]
fn a_chain_made_again_from_some_entry_on_does_not_fit_the_head() {
    let dir = finished(ID);
    rewrite(dir.path());
    assert_eq!(broken(dir.path()), Broken { line: 14, reason: Reason::Rewritten });
}

/// Who can write both files can forge both; a head kept elsewhere still tells.
#[test]
fn a_forged_head_is_noticed_by_one_who_kept_the_true_one() {
    let dir = finished(ID);
    let kept = verify(dir.path(), ID).unwrap().head;
    let kept: Head = kept.to_string().parse().unwrap();
    let forged = rewrite(dir.path());
    head::create(dir.path(), head::Record { head: forged, closed: true }).unwrap();
    verify(dir.path(), ID).unwrap();
    let found = verify_against(dir.path(), ID, kept).unwrap_err();
    assert!(matches!(found, VerifyError::Broken(Broken { line: 14, reason: Reason::Rewritten })));
}

/// Leaves the denials out of the record and seals everything again.
fn rewrite(dir: &Path) -> Head {
    let (mut hash, mut bytes, mut seq) = (line::origin(ID), vec![], 0);
    for entry in entries(dir) {
        let event = if entry.event.is_denial() { access("/README", true) } else { entry.event };
        seq += 1;
        hash = line::seal(&mut bytes, seq, hash, &event, std::time::SystemTime::now());
    }
    fs::write(file(dir), bytes).unwrap();
    Head { seq, hash }
}

#[test]
fn a_missing_or_damaged_head_is_noticed() {
    let dir = finished(ID);
    fs::write(dir.path().join(HEAD_FILE), "").unwrap();
    assert_eq!(broken(dir.path()).reason, Reason::DamagedHead);
    fs::remove_file(dir.path().join(HEAD_FILE)).unwrap();
    assert_eq!(broken(dir.path()).reason, Reason::NoHead);
}

#[test]
fn a_journal_that_was_tampered_with_is_not_continued() {
    let dir = finished(ID);
    let mut lines = lines(dir.path());
    lines.pop();
    put_lines(dir.path(), &lines);
    let error = Journal::reopen(dir.path(), ID, slow(1 << 30)).unwrap_err();
    assert!(error.to_string().contains("truncated"), "{error}");
    assert_eq!(broken(dir.path()).reason, Reason::Truncated { head: 14 });
}

#[test]
fn a_line_without_end_does_not_take_all_memory() {
    let dir = finished(ID);
    fs::write(file(dir.path()), vec![b'x'; 8 << 20]).unwrap();
    assert_eq!(broken(dir.path()), Broken { line: 1, reason: Reason::NotAnEntry });
    assert!(read(dir.path()).unwrap().next().unwrap().is_err());
}

#[test]
fn random_mutations_are_noticed_and_never_panic() {
    let dir = finished(ID);
    let good = fs::read(file(dir.path())).unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..20_000 {
        let mut bad = good.clone();
        for _ in 0..=random.below(3) {
            mutate(&mut bad, &mut random);
        }
        if bad != good {
            fs::write(file(dir.path()), &bad).unwrap();
            assert!(verify(dir.path(), ID).is_err(), "round {round}");
            read(dir.path()).unwrap().for_each(drop);
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let (at, to) = (random.below(bytes.len()), random.below(bytes.len()));
    let (from, to) = (at.min(to), at.max(to));
    match random.below(7) {
        0 => bytes[at] = random.below(256) as u8,
        1 => bytes.insert(at, random.below(256) as u8),
        2 => drop(bytes.remove(at)),
        3 => bytes.swap(from, to),
        4 => drop(bytes.drain(from..to.min(from + 300))),
        5 => bytes[at] = b'\n',
        _ => {
            let copy = bytes[from..to.min(from + 300)].to_vec();
            bytes.splice(at..at, copy);
        }
    }
    // Every mutation needs something to work on.
    if bytes.is_empty() {
        bytes.push(b'\n');
    }
}

/// xorshift: the same numbers each time, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }
}
