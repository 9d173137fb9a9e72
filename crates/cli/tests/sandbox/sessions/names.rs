//! Which sessions there are, and what they are called.

use ringfence_link::warden::{Code, OpenSession, SessionExec};

use crate::support::{Sandbox, code_of, require_sandbox};

use super::{close, info, list, named, options};

fn run(sandbox: &Sandbox, which: &str, text: &str) -> String {
    let run = sandbox.in_session(which, SessionExec::new(text)).unwrap();
    assert_eq!(run.code(), 0, "{run:?}");
    run.out()
}

in_every_shell! {
    fn a_session_has_an_id_a_name_and_a_shell(s) {
        let info = s.info();
        assert!(info.id.len() == 21 && info.id.starts_with("sess_"), "{info:?}");
        assert!(info.id[5..].bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!((info.name.as_str(), info.shell.as_str()), ("session-1", s.shell));
        assert_eq!((info.cwd.as_str(), info.busy, info.ended), ("/workspace", false, false));
        assert!(info.created_ms > 1_700_000_000_000 && info.last_used_ms >= info.created_ms);
        assert_eq!(crate::sessions::info(&s.sandbox, "session-1").unwrap(), info);
    }

    /// 35, 36
    fn a_name_is_taken_until_its_session_ends(s) {
        let first = s.sandbox.open(named(s.shell, "work")).unwrap().id;
        run(&s.sandbox, "work", "A=1");
        assert_eq!(code_of(s.sandbox.open(named(s.shell, "work"))), Code::SessionExists);
        assert_eq!(run(&s.sandbox, "work", "echo $A"), "1\n", "the first one is as it was");
        s.sandbox.in_session("work", SessionExec::new("exit 1")).unwrap();
        let second = s.sandbox.open(named(s.shell, "work")).unwrap().id;
        assert_ne!(first, second);
        assert_eq!(run(&s.sandbox, "work", "echo ${A-unset}"), "unset\n");
        assert_eq!(code_of(info(&s.sandbox, &first)), Code::SessionNotFound);
        close(&s.sandbox, "work").unwrap();
        s.sandbox.open(named(s.shell, "work")).unwrap();
    }

    /// 37
    fn of_two_that_are_made_at_once_one_gets_the_name(s) {
        let results: Vec<_> = std::thread::scope(|scope| {
            let make = |_| scope.spawn(|| s.sandbox.open(named(s.shell, "twin")));
            let threads: Vec<_> = (0..4).map(make).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (made, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 3));
        assert!(refused.into_iter().all(|error| code_of(error) == Code::SessionExists));
        assert_eq!(list(&s.sandbox).len(), 2);
    }

    /// 52
    fn the_list_is_by_age_and_tells_what_each_does(s) {
        s.sandbox.open(named(s.shell, "b")).unwrap();
        s.sandbox.open(named(s.shell, "a")).unwrap();
        run(&s.sandbox, "b", "cd /tmp");
        let exec = SessionExec::new("echo up; sleep 100");
        let (call, _) = crate::sessions::begin(&s.sandbox, "a", exec);
        crate::sessions::until(&call, "up");
        let all = list(&s.sandbox);
        let names: Vec<_> = all.iter().map(|info| info.name.as_str()).collect();
        assert_eq!(names, ["session-1", "b", "a"]);
        let cwds: Vec<_> = all.iter().map(|info| info.cwd.as_str()).collect();
        assert_eq!(cwds, ["/workspace", "/tmp", "/workspace"]);
        let busy: Vec<_> = all.iter().map(|info| info.busy).collect();
        assert_eq!(busy, [false, false, true]);
        assert!(all[1].last_used_ms >= all[1].created_ms);
    }

    /// 41
    fn sessions_do_not_see_each_others_state(s) {
        for name in ["a", "b"] {
            s.sandbox.open(named(s.shell, name)).unwrap();
            let define = format!("V={name}; f() {{ echo f-{name}; }}");
            run(&s.sandbox, name, &format!("{define}; mkdir /tmp/{name}; cd /tmp/{name}"));
        }
        assert_eq!(run(&s.sandbox, "a", "echo $V; f; pwd"), "a\nf-a\n/tmp/a\n");
        assert_eq!(run(&s.sandbox, "b", "echo $V; f; pwd"), "b\nf-b\n/tmp/b\n");
    }

    /// 42
    fn sessions_see_each_others_files_and_processes(s) {
        s.sandbox.open(named(s.shell, "b")).unwrap();
        let long = crate::sessions::long();
        s.ok(&format!("echo shared >/workspace/f; sleep {long} & echo $! >/tmp/pid"));
        crate::sessions::there(&long, 1);
        assert_eq!(run(&s.sandbox, "b", "cat /workspace/f; kill -9 $(cat /tmp/pid)"), "shared\n");
        crate::sessions::gone(&long);
    }
}

#[test]
fn what_does_not_exist_is_not_found() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    assert_eq!(list(&sandbox), []);
    for which in ["nope", "", "sess_0123456789abcdef"] {
        assert_eq!(code_of(info(&sandbox, which)), Code::SessionNotFound);
        let exec = sandbox.in_session(which, SessionExec::new("echo"));
        assert_eq!(code_of(exec), Code::SessionNotFound);
        assert_eq!(code_of(close(&sandbox, which)), Code::SessionNotFound);
    }
    assert_eq!(list(&sandbox), [], "and asking for it does not make it");
}

/// 50: no effect.
#[test]
fn the_default_session_is_made_at_first_use_and_stays() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    close(&sandbox, "default").unwrap();
    assert_eq!(list(&sandbox), []);
    let first = info(&sandbox, "default").unwrap();
    assert_eq!(first.name, "default");
    run(&sandbox, "default", "A=1");
    close(&sandbox, "default").unwrap();
    close(&sandbox, &first.id).unwrap();
    assert_eq!(run(&sandbox, &first.id, "echo $A"), "1\n");
    assert_eq!(code_of(sandbox.open(named("bash", "default"))), Code::SessionExists);
    assert_eq!(list(&sandbox).len(), 1);
}

/// 38
#[test]
fn several_first_uses_make_one_default_session() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| run(&sandbox, "default", "echo x >>/tmp/all"));
        }
    });
    assert_eq!(list(&sandbox).len(), 1);
    assert_eq!(sandbox.ok("grep -c x /tmp/all"), "5\n");
}

#[test]
fn the_default_shell_is_bash_and_sh_is_what_it_is_inside() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let plain = sandbox.open(OpenSession::default()).unwrap();
    assert!(plain.shell.ends_with("bash"), "{plain:?}");
    assert_ne!(run(&sandbox, &plain.id, "echo ${BASH_VERSION-none}"), "none\n");
    let sh = sandbox.open(options("/bin/sh")).unwrap();
    assert_eq!(sh.shell, "/bin/sh");
    assert_eq!(run(&sandbox, &sh.id, "echo works $0"), "works sh\n");
}

#[test]
fn a_shell_that_is_none_is_refused_and_leaves_nothing() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    for shell in ["nosuchshell", "fish", "/nonexistent/bash", "python3", "/etc/passwd", "", "/tmp"]
    {
        let error = sandbox.open(options(shell)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{shell:?}")) && text.contains("bash, sh, dash"), "{text}");
        assert_eq!(code_of(Err::<(), _>(error)), Code::InvalidArgument);
    }
    for name in ["", "a\nb", "sess_0123456789abcdef", &"x".repeat(200)] {
        let result = sandbox.open(named("bash", name));
        assert_eq!(code_of(result), Code::InvalidArgument, "{name:?}");
    }
    let env = crate::sessions::variables(&[("A-B", "x")]);
    let open = OpenSession { env, ..options("bash") };
    assert_eq!(code_of(sandbox.open(open)), Code::InvalidArgument);
    assert_eq!(list(&sandbox), []);
    assert_eq!(sandbox.sh("ls /run/shell/*").out(), "");
    assert_eq!(crate::sessions::jobs::groups(&sandbox), 0);
}

#[test]
fn sixty_four_are_enough() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..16).for_each(|_| drop(sandbox.open(options("dash")).unwrap())));
        }
    });
    let all = list(&sandbox);
    assert_eq!(all.len(), 64);
    assert_eq!(code_of(sandbox.open(options("dash"))), Code::LimitReached);
    assert_eq!(code_of(info(&sandbox, "default")), Code::LimitReached);
    close(&sandbox, &all[0].id).unwrap();
    sandbox.open(options("dash")).unwrap();
    sandbox.in_session(&all[1].id, SessionExec::new("exit")).unwrap();
    sandbox.open(options("dash")).unwrap();
}
