use super::site::{Site, User};
use crate::support::{require_fuse, require_root};

fn small(site: Site, kind: &str) -> Site {
    match kind {
        "tmpfs" => site.mount("store", "-t tmpfs -o size=8m tmpfs"),
        "ext4" => {
            site.prepare("truncate -s 12M disk && mkfs.ext4 -q -m 0 disk");
            let disk = site.path("disk");
            site.mount("store", &format!("-o loop {}", disk.display()))
        }
        _ => unreachable!(),
    }
}

#[test]
fn a_full_disk_is_told_to_the_program_and_harms_nothing() {
    require_fuse!();
    require_root!();
    for kind in ["tmpfs", "ext4"] {
        for args in [&[][..], &["--no-passthrough"]] {
            full_disk(small(Site::new(User::Root), kind).args(args));
        }
    }
}

fn full_disk(site: Site) {
    site.prepare("cd base; mkdir dir; echo before > big; dd if=/dev/urandom of=big bs=1M count=20 seek=1 status=none
        cp big huge; echo a > dir/small; echo b > other");
    let sum = site.prepare("cksum < base/big");
    let site = site.args(&["--preset", "full-access"]).start();
    // The copy does not fit.
    let errors = site.fails("echo more >> big");
    assert!(errors.contains("No space left on device"), "{errors}");
    assert_eq!(site.ok("cksum < big"), sum);
    assert_eq!(site.prepare("ls -A store/layer/work"), "", "the half copy is still there");
    // What was not copied still can be, and so can small files.
    site.ok("echo more >> dir/small; echo new > dir/new; : > huge; test ! -s huge");
    // A new file that does not fit.
    let errors = site.fails("dd if=/dev/zero of=fill bs=1M count=30 conv=fsync");
    assert!(errors.contains("No space left on device"), "{errors}");
    // With the disk full, nothing that is there is lost, and deleting is possible.
    site.ok("test \"$(cat dir/small | xargs)\" = 'a more'; test \"$(cat other)\" = b");
    assert_eq!(site.ok("cksum < big"), sum);
    let site = site.remount();
    site.ok("test \"$(cat dir/small | xargs)\" = 'a more'; test -e fill; test ! -s huge");
    assert_eq!(site.ok("cksum < big"), sum);
    site.ok("rm fill; test ! -e fill; rm big; test ! -e big");
    site.ok("dd if=/dev/urandom of=again bs=1M count=4 conv=fsync status=none; echo x > big");
    let site = site.crash();
    site.ok("test \"$(stat -c %s again)\" = 4194304; test \"$(cat big)\" = x; test ! -e fill");
    assert!(site.ok("df --output=size . | tail -n1").trim().parse::<u32>().unwrap() < 13_000);
}

/// 30 000 directories, and a server that may hold a thousand descriptors.
#[test]
fn a_tree_with_more_directories_than_the_server_has_descriptors_can_be_walked() {
    require_fuse!();
    require_root!();
    let site = Site::new(User::Root).descriptors(1024);
    let base = site.path("base");
    for i in 0..30_000 {
        std::fs::create_dir_all(base.join(format!("{}/{}/{i}", i % 30, i % 900))).unwrap();
    }
    let site = site.args(&["--preset", "full-access"]).start();
    let expected = site.prepare("cd base; find . | wc -l");
    assert_eq!(site.ok("find . | wc -l"), expected);
    site.ok("find . -printf '%m %T@\\n' > /dev/null");
    // Copying up needs the live directories as well.
    site.ok("for d in $(find . -mindepth 3 | head -n 3000); do echo $d; done | sed 's,$,/new,' | xargs touch");
    assert_eq!(site.ok("find . -name new | wc -l").trim(), "3000");
    site.ok("rm -rf 0 1 2; mv 3 three; test \"$(find three -type d | wc -l)\" = 1031");
    site.remount().ok("test ! -e 0; test \"$(find three -type d | wc -l)\" = 1031");
}

/// The kernel caches what is open in the server's name too: files must not run out either.
#[test]
fn more_files_than_the_server_has_descriptors_can_be_read_one_after_the_other() {
    require_fuse!();
    require_root!();
    for args in [&[][..], &["--no-passthrough"]] {
        let site = Site::new(User::Root).descriptors(256);
        site.prepare("cd base; for d in $(seq 30); do mkdir $d; for f in $(seq 50); do echo $f > $d/$f; done; done");
        let site = site.args(&["--preset", "full-access"]).args(args).start();
        assert_eq!(site.ok("find . -type f | xargs cat | wc -l").trim(), "1500");
        site.ok("for f in $(find . -type f); do echo more >> $f; done");
        assert_eq!(site.ok("find . -type f | xargs cat | wc -l").trim(), "3000");
        site.ok("find . -type f | xargs rm; test -z \"$(find . -type f)\"");
    }
}
