use super::outside;
use crate::support::{Workspace, require_fuse};

in_both_modes! {
    sqlite_in_wal_mode_keeps_what_two_writers_wrote
    sqlite_in_journal_mode_keeps_what_two_writers_wrote
    a_killed_sqlite_writer_leaves_a_journal_that_the_next_one_rolls_back
    eight_processes_appending_to_one_base_file_lose_nothing
}

const ROWS: u32 = 150;

fn make_database(base: &std::path::Path) {
    outside(
        base,
        "python3 -c 'import sqlite3
db = sqlite3.connect(\"data.db\")
db.execute(\"create table t (writer text, n integer, filler blob)\")
db.executemany(\"insert into t values (?, ?, randomblob(500))\", [(\"base\", i) for i in range(500)])
db.execute(\"create index i on t (writer, n)\")
db.commit()'",
    );
}

fn two_writers(ws: Workspace, mode: &str) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws.preset("development").with_base(make_database).mount();
    let script = format!(
        "import sqlite3, sys
db = sqlite3.connect('data.db', timeout=60, isolation_level=None)
assert db.execute('pragma journal_mode').fetchone()[0] == '{mode}'
for i in range({ROWS}):
    db.execute('begin immediate')
    db.execute('insert into t values (?, ?, randomblob(300))', (sys.argv[1], i))
    seen = db.execute('select count(*) from t where writer = ?', (sys.argv[1],)).fetchone()[0]
    assert seen == i + 1, (seen, i)
    db.execute('commit')
"
    );
    std::fs::write(ws.scratch().join("writer.py"), script).unwrap();
    // Before they start: SQLite answers "locked" at once to two who change the mode at a time.
    ws.ok(&format!(
        "python3 -c 'import sqlite3; sqlite3.connect(\"data.db\").execute(\"pragma journal_mode={mode}\")'"
    ));
    ws.ok("python3 ../writer.py one & first=$!; python3 ../writer.py two && wait $first");
    let ws = ws.remount(None);
    let found = ws.ok(
        "python3 -c 'import sqlite3
db = sqlite3.connect(\"data.db\")
print(db.execute(\"pragma integrity_check\").fetchone()[0])
print(db.execute(\"select writer, count(*), count(distinct n) from t group by 1 order by 1\").fetchall())'",
    );
    let expected =
        format!("ok\n[('base', 500, 500), ('one', {ROWS}, {ROWS}), ('two', {ROWS}, {ROWS})]\n");
    assert_eq!(found, expected);
}

fn sqlite_in_wal_mode_keeps_what_two_writers_wrote(ws: Workspace) {
    two_writers(ws, "wal");
}

fn sqlite_in_journal_mode_keeps_what_two_writers_wrote(ws: Workspace) {
    two_writers(ws, "delete");
}

fn a_killed_sqlite_writer_leaves_a_journal_that_the_next_one_rolls_back(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws.preset("development").with_base(make_database).mount();
    ws.ok("python3 -c 'import sqlite3, os
db = sqlite3.connect(\"data.db\", isolation_level=None)
db.execute(\"pragma cache_size=5\")
db.execute(\"begin immediate\")
db.execute(\"update t set filler = randomblob(600)\")
db.execute(\"delete from t where n < 400\")
os.kill(os.getpid(), 9)' ; test -s data.db-journal");
    let ws = ws.remount(None);
    let found = ws.ok("python3 -c 'import sqlite3
db = sqlite3.connect(\"data.db\")
print(db.execute(\"pragma integrity_check\").fetchone()[0])
print(db.execute(\"select count(*), max(length(filler)) from t\").fetchone())'");
    assert_eq!(found, "ok\n(500, 500)\n");
}

fn eight_processes_appending_to_one_base_file_lose_nothing(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws.preset("development").file("logs/all.log", "head\n").mount();
    let script = "import os, sys
fd = os.open('logs/all.log', os.O_WRONLY | os.O_APPEND)
for i in range(250):
    line = f'{sys.argv[1]} {i} {\"x\" * (i % 60)}\\n'.encode()
    assert os.write(fd, line) == len(line)
";
    std::fs::write(ws.scratch().join("append.py"), script).unwrap();
    ws.ok("for w in 1 2 3 4 5 6 7 8; do python3 ../append.py $w & all=\"$all $!\"; done
        for pid in $all; do wait $pid || exit 1; done");
    let ws = ws.remount(None);
    let text = std::fs::read_to_string(ws.path("logs/all.log")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "head");
    assert_eq!(lines.len(), 1 + 8 * 250);
    for writer in 1..=8 {
        let own: Vec<_> = lines.iter().filter(|l| l.starts_with(&format!("{writer} "))).collect();
        assert_eq!(own.len(), 250);
        for (i, line) in own.iter().enumerate() {
            assert_eq!(**line, format!("{writer} {i} {}", "x".repeat(i % 60)));
        }
    }
}
