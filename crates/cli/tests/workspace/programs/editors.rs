use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::{Workspace, require_fuse};

in_both_modes! {
    sed_in_place_changes_a_base_file_and_keeps_its_mode
    saving_by_renaming_a_new_file_over_the_old_one_works
    saving_with_a_backup_works_the_way_vim_does_it
    vim_itself_saves_a_base_file
    programs_that_watch_files_with_inotify_see_changes_made_inside
    tail_follows_a_base_file_that_others_append_to
}

fn set_mode(base: &std::path::Path, name: &str, mode: u32) {
    std::fs::set_permissions(base.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
}

fn sed_in_place_changes_a_base_file_and_keeps_its_mode(ws: Workspace) {
    require_fuse!();
    let ws = ws
        .preset("development")
        .file("run.sh", "echo old\n")
        .file("dir/conf", "a=old\nb=old\n")
        .with_base(|base| {
            set_mode(base, "run.sh", 0o755);
            set_mode(base, "dir/conf", 0o640);
        })
        .mount();
    ws.ok("sed -i s/old/new/ run.sh dir/conf && sed -i.bak s/a=/c=/ dir/conf");
    let check = "test \"$(./run.sh)\" = new && test \"$(stat -c %a run.sh dir/conf | xargs)\" = '755 640'
        test \"$(cat dir/conf | xargs)\" = 'c=new b=new' && test \"$(cat dir/conf.bak | xargs)\" = 'a=new b=new'
        test \"$(ls dir | xargs)\" = 'conf conf.bak'";
    ws.ok(check);
    ws.remount(None).ok(check);
}

const SAVE_BY_RENAME: &str = "import os
for i in range(20):
    fd = os.open('doc/.text.tmp', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b'version %d\\n' % i)
    os.fsync(fd)
    os.fchmod(fd, os.stat('doc/text').st_mode & 0o7777)
    os.close(fd)
    reader = open('doc/text')
    os.rename('doc/.text.tmp', 'doc/text')
    dir = os.open('doc', os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(dir)
    os.close(dir)
    assert reader.read() == ('version %d\\n' % (i - 1) if i else 'original\\n'), i
    assert open('doc/text').read() == 'version %d\\n' % i
    assert os.listdir('doc') == ['text'], os.listdir('doc')
";

fn saving_by_renaming_a_new_file_over_the_old_one_works(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws
        .preset("development")
        .file("doc/text", "original\n")
        .with_base(|base| set_mode(base, "doc/text", 0o644))
        .mount();
    std::fs::write(ws.scratch().join("save.py"), SAVE_BY_RENAME).unwrap();
    ws.ok("python3 ../save.py");
    let ws = ws.remount(None);
    ws.ok("test \"$(cat doc/text)\" = 'version 19' && test \"$(stat -c %a doc/text)\" = 644");
}

const SAVE_WITH_BACKUP: &str = "import os
for i in range(20):
    os.rename('doc/text', 'doc/text~')
    fd = os.open('doc/text', os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, b'version %d\\n' % i)
    os.fsync(fd)
    os.close(fd)
    assert open('doc/text~').read() == ('version %d\\n' % (i - 1) if i else 'original\\n'), i
    os.unlink('doc/text~')
    assert os.listdir('doc') == ['text'], os.listdir('doc')
";

fn saving_with_a_backup_works_the_way_vim_does_it(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws.preset("development").file("doc/text", "original\n").mount();
    std::fs::write(ws.scratch().join("save.py"), SAVE_WITH_BACKUP).unwrap();
    ws.ok("python3 ../save.py");
    let ws = ws.remount(None);
    ws.ok("test \"$(cat doc/text)\" = 'version 19' && test \"$(ls -A doc)\" = text");
}

fn vim_itself_saves_a_base_file(ws: Workspace) {
    require_fuse!();
    if !super::is_installed("vim") {
        return;
    }
    let ws = ws.preset("development").file("doc/text", "original\nsecond\n").mount();
    for (copy, word) in [("no", "one"), ("yes", "two"), ("auto", "three")] {
        ws.ok(&format!(
            "HOME=/nonexistent vim -es -u NONE -c 'set nocp backupcopy={copy} writebackup fsync' \
             -c '%s/^[a-z]*$/{word}/' -c wq doc/text </dev/null
            test \"$(cat doc/text | xargs)\" = '{word} {word}' && test \"$(ls -A doc)\" = text"
        ));
    }
}

/// Watches a directory and a base file and prints what it is told, one line each.
const WATCH: &str = "import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
MODIFY, CLOSE_WRITE, MOVED_TO, CREATE, DELETE = 2, 8, 0x80, 0x100, 0x200
names = {libc.inotify_add_watch(fd, p.encode(), m): p for p, m in [
    ('dir', CREATE | DELETE | MOVED_TO), ('dir/base.txt', MODIFY | CLOSE_WRITE)]}
print('watching', flush=True)
while True:
    data = os.read(fd, 65536)
    while data:
        watch, mask, _, length = struct.unpack_from('iIII', data)
        name = data[16:16 + length].rstrip(b'\\0').decode()
        data = data[16 + length:]
        print(names[watch], hex(mask & 0xffff), name, flush=True)
";

fn programs_that_watch_files_with_inotify_see_changes_made_inside(ws: Workspace) {
    require_fuse!();
    require_programs!("python3");
    let ws = ws.preset("development").file("dir/base.txt", "base\n").file("dir/x", "x").mount();
    let mut watcher = Command::new("python3")
        .args(["-c", WATCH])
        .current_dir(ws.root())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(watcher.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(told.next().unwrap(), "watching");
    ws.ok("echo more >> dir/base.txt");
    ws.ok("echo new > dir/new && mv dir/new dir/moved && rm dir/x");
    let expected = [
        "dir/base.txt 0x2 ",
        "dir/base.txt 0x8 ",
        "dir 0x100 new",
        "dir 0x80 moved",
        "dir 0x200 x",
    ];
    let heard: Vec<_> = told.by_ref().take(expected.len()).collect();
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert_eq!(heard, expected);
}

fn tail_follows_a_base_file_that_others_append_to(ws: Workspace) {
    require_fuse!();
    let ws = ws.preset("development").file("log", "first\n").mount();
    let mut tail = Command::new("tail")
        .args(["-n", "+1", "-s", "0.02", "-F", "log"])
        .current_dir(ws.root())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "first");
    for i in 0..3 {
        let mut log = std::fs::File::options().append(true).open(ws.path("log")).unwrap();
        writeln!(log, "line {i}").unwrap();
        drop(log);
        assert_eq!(lines.next().unwrap(), format!("line {i}"));
    }
    ws.ok("mv log log.1 && echo rotated > log");
    assert_eq!(lines.next().unwrap(), "rotated");
    tail.kill().unwrap();
    tail.wait().unwrap();
}
