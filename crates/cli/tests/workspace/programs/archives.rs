use std::path::Path;

use super::outside;
use crate::support::{Workspace, require_fuse};

in_both_modes! {
    a_tree_survives_tar_in_and_out_unchanged
    rsync_copies_in_and_out_and_has_nothing_to_do_the_second_time
    cp_keeps_everything_or_makes_hard_links_as_asked
    install_puts_files_in_place_of_old_ones_with_the_mode_asked_for
    times_before_1970_are_kept_to_the_nanosecond
}

/// Everything a copy must keep: kinds, modes, times to the nanosecond, targets, link counts and
/// content. Only the sizes and link counts of directories are the filesystem's own business.
const DESCRIBE: &str = r"
    find . -mindepth 1 \( -type d -printf 'd %m %T@ %P\n' -o -printf '%y %m %n %s %T@ %l %P\n' \) |
        LC_ALL=C sort
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum";

/// A tree with one of each: hard links, symlinks, odd modes, times, holes, long and strange names.
const MAKE_TREE: &str = r#"set -e; mkdir tree && cd tree
    mkdir -p plain/deep/deeper empty closed
    for i in 1 2 3 4 5 6 7 8 9; do seq $((i * 300)) > plain/f$i; done
    echo one > plain/deep/linked && ln plain/deep/linked plain/other && ln plain/other third
    ln -s plain/f1 good && ln -s /nonexistent/target broken && ln -s .. plain/deep/up
    echo x > run && chmod 755 run && echo y > secret && chmod 600 secret
    echo z > readonly && chmod 444 readonly && chmod 1777 empty && echo in > closed/in
    chmod 555 closed && mkfifo pipe
    truncate -s 50M sparse && printf middle | dd of=sparse bs=1 seek=20000000 conv=notrunc status=none
    long=$(printf 'n%.0s' $(seq 255)) && echo long > "$long"
    deep=. && for i in $(seq 12); do deep=$deep/directory_number_$i; done
    mkdir -p $deep && echo end > $deep/end
    echo odd > "$(printf 'a \n\t\\ \303\251 \377 name')"
    touch -d '1999-12-31 23:59:59.123456789' plain/f1 && touch -h -d '2001-02-03 04:05:06.7' good
    touch -d '2038-01-20 00:00:00.5' plain/f2 && touch -d '1960-05-06 07:08:09' plain/f3
    touch -d '2010-10-10 10:10:10.101010101' plain/deep empty closed plain"#;

fn describe(dir: &Path) -> Vec<String> {
    outside(dir, DESCRIBE).lines().map(String::from).collect()
}

fn assert_same(found: &[String], expected: &[String]) {
    let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    let extra: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:#?}\nextra: {extra:#?}");
}

/// Versions of some files that the tree will replace.
fn older(ws: Workspace) -> Workspace {
    ws.preset("full-access")
        .file("tree/plain/f1", "old")
        .file("tree/plain/deep/linked", "old")
        .file("tree/sparse", "old")
        .file("tree/empty", "a file where a directory will be")
        .dir("tree/good")
}

fn a_tree_survives_tar_in_and_out_unchanged(ws: Workspace) {
    require_fuse!();
    let ws = older(ws).mount();
    outside(ws.scratch(), MAKE_TREE);
    outside(ws.scratch(), "tar --format=posix --sparse -cf in.tar tree");
    ws.ok("tar -xpf ../in.tar");
    let original = describe(&ws.scratch().join("tree"));
    assert_same(&describe(&ws.path("tree")), &original);
    let blocks = |path: &Path| outside(path, "stat -c %b sparse").trim().parse::<u64>().unwrap();
    assert!(blocks(&ws.path("tree")) < 1000, "the holes were filled");
    let ws = ws.remount(None);
    assert_same(&describe(&ws.path("tree")), &original);
    ws.ok("tar --format=posix --sparse -cf back.tar tree && rm -rf tree && tar -xpf back.tar");
    assert_same(&describe(&ws.path("tree")), &original);
    outside(
        ws.scratch(),
        &format!("mkdir out && tar -xpf {} -C out", ws.path("back.tar").display()),
    );
    assert_same(&describe(&ws.scratch().join("out/tree")), &original);
    assert!(blocks(&ws.scratch().join("out/tree")) < 1000, "the holes were not seen");
    assert!(std::fs::metadata(ws.path("back.tar")).unwrap().len() < 5_000_000);
}

fn rsync_copies_in_and_out_and_has_nothing_to_do_the_second_time(ws: Workspace) {
    require_fuse!();
    require_programs!("rsync");
    let ws = older(ws).mount();
    outside(ws.scratch(), MAKE_TREE);
    let original = describe(&ws.scratch().join("tree"));
    let copy = "rsync -aHS --modify-window=-1 --delete --force --itemize-changes";
    assert_ne!(ws.ok(&format!("{copy} ../tree/ tree/")), "");
    assert_same(&describe(&ws.path("tree")), &original);
    assert_eq!(ws.ok(&format!("{copy} ../tree/ tree/")), "");
    let ws = ws.remount(None);
    assert_eq!(ws.ok(&format!("{copy} ../tree/ tree/")), "");
    ws.ok(&format!("{copy} tree/ ../out/"));
    assert_same(&describe(&ws.scratch().join("out")), &original);
    assert_eq!(ws.ok(&format!("{copy} --checksum tree/ ../out/")), "");
    ws.ok(&format!("mkdir nothing && {copy} nothing/ tree/ && test -z \"$(ls -A tree)\""));
}

fn cp_keeps_everything_or_makes_hard_links_as_asked(ws: Workspace) {
    require_fuse!();
    let ws = ws
        .preset("full-access")
        .with_base(|base| {
            outside(base, MAKE_TREE);
            // Their link count is not shown while they are in the base, so they would differ.
            outside(base, "cd tree && rm third plain/other");
        })
        .mount();
    let original = describe(&ws.path("tree"));
    assert_same(&original, &describe(&ws.base().join("tree")));
    ws.ok("cp -a tree copied");
    assert_same(&describe(&ws.path("copied")), &original);
    ws.ok("cp -al tree linked");
    let twice = ws.ok("find linked tree -type f -links 2 | wc -l");
    let files = ws.ok("find linked tree -type f | wc -l");
    assert_eq!(twice, files);
    ws.ok("test tree/plain/f4 -ef linked/plain/f4 && echo more >> linked/plain/f4
        cmp tree/plain/f4 linked/plain/f4 && tail -n1 tree/plain/f4 | grep -q more");
    let ws = ws.remount(None);
    assert_same(&describe(&ws.path("copied")), &original);
    ws.ok("test tree/plain/f4 -ef linked/plain/f4 && rm -rf tree && test -s linked/plain/f4
        test \"$(stat -c %h linked/plain/f4)\" = 1");
}

fn install_puts_files_in_place_of_old_ones_with_the_mode_asked_for(ws: Workspace) {
    require_fuse!();
    let ws = ws
        .preset("development")
        .file("src/tool", "#!/bin/sh\necho new\n")
        .file("bin/tool", "#!/bin/sh\necho old\n")
        .mount();
    ws.ok("install -m 755 src/tool bin/tool && test \"$(bin/tool)\" = new
        install -D -m 640 -p src/tool opt/a/b/tool && test \"$(stat -c %a opt/a/b/tool)\" = 640
        test \"$(stat -c %y opt/a/b/tool)\" = \"$(stat -c %y src/tool)\"
        install -d -m 700 opt/c/d && test \"$(stat -c %a opt/c/d)\" = 700
        install -b -m 755 src/tool bin/tool && test -e bin/tool~");
    let ws = ws.remount(None);
    assert_eq!(ws.ok("bin/tool"), "new\n");
}

fn times_before_1970_are_kept_to_the_nanosecond(ws: Workspace) {
    require_fuse!();
    let time = "1960-05-06 07:08:09.250000001";
    let ws = ws
        .preset("development")
        .file("old", "old")
        .with_base(|base| drop(outside(base, &format!("TZ=UTC touch -d '{time}' old"))))
        .mount();
    let check = format!(
        "export TZ=UTC; for f in old new; do test \"$(stat -c %y $f)\" = '{time} +0000' || exit 1; done"
    );
    ws.ok(&format!("cp -p old new && TZ=UTC touch -d '{time}' new && chmod 600 old && {check}"));
    ws.remount(None).ok(&check);
}
