//! After a crash: what is there still verifies, and the journal goes on.

use std::process::{Child, Command, Stdio};

use super::event::JournalResumed;
use super::*;

/// What `kill -9` leaves: the files as they are, nobody to close them.
fn copy_of(kept: &Kept) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in [JOURNAL_FILE, HEAD_FILE] {
        fs::copy(kept.path().join(name), dir.path().join(name)).unwrap();
    }
    dir
}

#[test]
fn a_torn_end_is_told_from_a_forgery_and_cut_off() {
    let kept = Kept::new();
    kept.append(started("cmd_1"));
    kept.journal.flush().unwrap();
    let dir = copy_of(&kept);
    let mut bytes = fs::read(file(dir.path())).unwrap();
    bytes.extend_from_slice(b"{\"seq\":3,\"time\":\"2026");
    fs::write(file(dir.path()), bytes).unwrap();

    let verified = verify(dir.path(), ID).unwrap();
    let ending = Ending::NotClosed { torn_bytes: 21 };
    assert_eq!((verified.head.seq, verified.ending), (2, ending));
    assert_eq!(entries(dir.path()).len(), 2);

    let journal = Journal::reopen(dir.path(), ID, slow(1 << 30)).unwrap();
    journal.append(ended("cmd_1")).unwrap();
    journal.close().unwrap();
    let resumed = Event::JournalResumed(JournalResumed { closed: false, torn_bytes: 21 });
    assert_eq!(entries(dir.path())[2].event, resumed);
    drop(journal);
    let verified = verify(dir.path(), ID).unwrap();
    assert_eq!((verified.head.seq, verified.ending), (4, Ending::InOrder));
}

#[test]
fn a_head_that_lags_behind_is_no_forgery() {
    let kept = Kept::new();
    let early = fs::read(kept.path().join(HEAD_FILE)).unwrap();
    kept.append(started("cmd_1"));
    kept.journal.flush().unwrap();
    let dir = copy_of(&kept);
    fs::write(dir.path().join(HEAD_FILE), early).unwrap();
    let verified = verify(dir.path(), ID).unwrap();
    assert_eq!((verified.head.seq, verified.ending), (2, Ending::NotClosed { torn_bytes: 0 }));
}

#[test]
fn a_crash_during_creation_leaves_something_to_go_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let head = Head { seq: 0, hash: line::origin(ID) };
    head::create(dir.path(), head::Record { head, closed: false }).unwrap();
    assert_eq!(verify(dir.path(), ID).unwrap().head.seq, 0);
    Journal::reopen(dir.path(), ID, slow(1 << 30)).unwrap().close().unwrap();
    assert_eq!(verify(dir.path(), ID).unwrap().head.seq, 1);
}

#[test]
fn a_journal_closed_in_order_can_be_continued() {
    let dir = finished(ID);
    let journal = Journal::reopen(dir.path(), ID, slow(1 << 30)).unwrap();
    let resumed = Event::JournalResumed(JournalResumed { closed: true, torn_bytes: 0 });
    assert_eq!(entries(dir.path())[14].event, resumed);
    drop(journal);
    let verified = verify(dir.path(), ID).unwrap();
    assert_eq!((verified.head.seq, verified.ending), (15, Ending::NotClosed { torn_bytes: 0 }));
}

const CHILD: &str = "RINGFENCE_TEST_JOURNAL";

/// Not a test of its own: the process that is killed in the one below.
#[test]
fn a_writer_to_be_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let options = Options { flush_after: Duration::from_millis(1), ..slow(1 << 30) };
    let journal = Journal::reopen(Path::new(&dir), ID, options).unwrap();
    for number in 0..5_000_000 {
        journal.append(access(&format!("/{number}"), true)).unwrap();
    }
}

/// Killed with SIGKILL when dropped, so that a failing test leaves nothing behind.
struct Writer(Child);

impl Writer {
    fn start(dir: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "journal::tests::crash::a_writer_to_be_killed"])
            .env(CHILD, dir)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn thirty_kills_leave_a_journal_that_verifies_and_goes_on() {
    let dir = finished(ID);
    for round in 0..30 {
        let before = verify(dir.path(), ID).unwrap().head.seq;
        let mut writer = Writer::start(dir.path());
        // Killed at another moment each time, but never before it wrote something.
        let wanted = before + 2 + round * 37;
        while verify(dir.path(), ID).unwrap().head.seq < wanted {
            assert!(writer.0.try_wait().unwrap().is_none(), "the writer ended by itself");
        }
        drop(writer);
        let verified = verify(dir.path(), ID).unwrap();
        assert!(matches!(verified.ending, Ending::NotClosed { .. }), "{verified:?}");
        shorten(dir.path());
    }
}

/// Starts over when the journal has become so long that checking it takes its time.
fn shorten(dir: &Path) {
    if fs::metadata(file(dir)).unwrap().len() > 4 << 20 {
        let fresh = finished(ID);
        for name in [JOURNAL_FILE, HEAD_FILE] {
            fs::copy(fresh.path().join(name), dir.join(name)).unwrap();
        }
    }
}
