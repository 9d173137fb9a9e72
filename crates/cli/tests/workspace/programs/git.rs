use std::path::Path;

use super::outside;
use crate::support::{Mounted, Workspace, require_fuse};

in_both_modes! {
    git_works_on_a_repository_of_the_base
    git_works_in_a_repository_made_inside
    git_status_is_clean_after_a_remount
    git_clones_repositories_of_the_base_and_those_made_inside
    git_stash_takes_changes_away_and_brings_them_back
    git_worktrees_can_be_added_and_removed
    git_switches_between_branches_whose_directories_and_files_clash
}

/// No configuration of the machine, and a person to commit as.
const GIT: &str = "set -e
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main
    export GIT_CONFIG_KEY_1=advice.detachedHead GIT_CONFIG_VALUE_1=false
    ";

fn git(ws: &Mounted, script: &str) -> String {
    ws.ok(&format!("{GIT}{script}"))
}

fn make_repository(base: &Path) {
    outside(
        base,
        &format!(
            "{GIT}
            git init -q project && cd project && mkdir -p src/deep docs
            for i in 1 2 3 4 5 6 7 8 9; do echo line $i > src/f$i; echo $i > src/deep/g$i; done
            echo text > docs/readme && echo '*.o' > .gitignore && ln -s src/f1 link
            printf '#!/bin/sh\\n' > run.sh && chmod +x run.sh
            git add . && git commit -qm first
            git checkout -qb other && git rm -qr docs && echo other > src/f1
            git add . && git commit -qm second && git checkout -q main"
        ),
    );
}

fn is_clean(ws: &Mounted, dir: &str) {
    assert_eq!(git(ws, &format!("git -C {dir} status --porcelain")), "", "in {dir}");
}

fn git_works_on_a_repository_of_the_base(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    is_clean(&ws, "project");
    git(
        &ws,
        "cd project && echo more >> src/f2 && git mv src/f3 src/h3 && git rm -q src/f4
        mkdir new && echo n > new/n && git add . && git commit -qm third
        test \"$(git show --name-status --format= HEAD | wc -l)\" -eq 4
        git checkout -q other && test ! -e docs && test \"$(cat src/f1)\" = other
        git checkout -q main && test -e docs/readme && test ! -e src/f4 && test -x run.sh
        git mv src lib && git commit -qm moved && test -e lib/deep/g9 && test ! -e src
        git reset -q --hard HEAD~1 && test -e src/deep/g9 && test ! -e lib
        git merge -q other -m merged && git gc -q --prune=now && git fsck --strict",
    );
    is_clean(&ws, "project");
    let ws = ws.remount(None);
    is_clean(&ws, "project");
    git(
        &ws,
        "git -C project fsck --strict && test \"$(git -C project log --oneline | wc -l)\" -eq 4",
    );
}

fn git_works_in_a_repository_made_inside(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").file("code/a.c", "int a;\n").file("code/b.c", "b\n").mount();
    git(
        &ws,
        "cd code && git init -q . && git add . && git commit -qm one
        echo c > c.c && git add . && git commit -qm two && git checkout -q HEAD~1 && test ! -e c.c
        git checkout -q main && test -e c.c && git gc -q && git fsck --strict
        git tag -a v1 -m v1 && git repack -adq",
    );
    is_clean(&ws, "code");
    let ws = ws.remount(None);
    is_clean(&ws, "code");
    git(&ws, "git -C code fsck --strict && test \"$(git -C code describe)\" = v1");
}

fn git_status_is_clean_after_a_remount(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    git(&ws, "cd project && echo more >> src/f2 && git commit -qam change && git status -s");
    let ws = ws.remount(None);
    is_clean(&ws, "project");
    // The index still describes the files: git has nothing to read again.
    git(&ws, "git -C project diff-files --quiet && git -C project diff-index --quiet HEAD");
    // Not even the inode number may differ from what the index remembers.
    let recorded = git(&ws, "cd project && git ls-files --debug src/f2 | sed -n 's/.*ino: //p'");
    let shown = git(&ws, "stat -c %i project/src/f2");
    let low = shown.trim().parse::<u64>().unwrap() as u32;
    assert_eq!(recorded.trim().parse::<u32>().unwrap(), low, "{shown}");
}

fn git_clones_repositories_of_the_base_and_those_made_inside(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    git(
        &ws,
        "git clone -q project copy && cd copy && echo x > x && git add x && git commit -qm x
        git push -q origin HEAD:refs/heads/pushed && cd ..
        git -C project rev-parse -q --verify pushed
        git clone -q --no-local copy copy2 && git clone -q --shared copy2 copy3
        git init -q --bare bare.git && git -C copy2 push -q ../bare.git --all
        git clone -q bare.git copy4
        for c in project copy copy2 copy3 copy4; do git -C $c fsck --strict; done",
    );
    for dir in ["project", "copy", "copy2", "copy3", "copy4"] {
        is_clean(&ws, dir);
    }
    let ws = ws.remount(None);
    for dir in ["project", "copy", "copy2", "copy3", "copy4"] {
        is_clean(&ws, dir);
    }
}

fn git_stash_takes_changes_away_and_brings_them_back(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    git(
        &ws,
        "cd project && echo changed > src/f5 && rm src/f6 && echo untracked > u
        git stash -q -u && test \"$(cat src/f5)\" = 'line 5' && test -e src/f6 && test ! -e u
        git stash pop -q && test \"$(cat src/f5)\" = changed && test ! -e src/f6 && test -e u
        git checkout -q . && git clean -qfd",
    );
    is_clean(&ws, "project");
}

fn git_worktrees_can_be_added_and_removed(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    git(
        &ws,
        "git -C project worktree add -q ../tree other && test \"$(cat tree/src/f1)\" = other
        cd tree && echo w > w && git add w && git commit -qm w && cd ..
        git -C project worktree move ../tree ../moved && git -C moved status
        git -C project worktree remove ../moved && test ! -e moved
        test \"$(git -C project worktree list | wc -l)\" -eq 1
        git -C project log --oneline other | grep -q ' w$'",
    );
    is_clean(&ws, "project");
}

/// A checkout that turns directories into files and back meets every pair of whiteout and entry.
fn git_switches_between_branches_whose_directories_and_files_clash(ws: Workspace) {
    require_fuse!();
    require_programs!("git");
    let ws = ws.preset("full-access").with_base(make_repository).mount();
    git(
        &ws,
        "cd project && git checkout -qb clash && git rm -qr src docs && echo file > src
        ln -s nowhere docs && mkdir link2 && echo in > link2/in && git rm -q link && mkdir link
        echo in > link/in && git add . && git commit -qm clash
        for i in 1 2 3; do
            git checkout -q main && test -e src/deep/g1 && test -e docs/readme && test -L link
            git checkout -q other && test ! -e docs && test -d src
            git checkout -q clash && test -f src && test -L docs && test -f link/in
        done
        git checkout -q main",
    );
    is_clean(&ws, "project");
    let ws = ws.remount(None);
    is_clean(&ws, "project");
}
