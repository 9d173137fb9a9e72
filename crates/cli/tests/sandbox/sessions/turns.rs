//! Several callers: one command at a time in a session, sessions side by side.

use ringfence_link::warden::{Request, SessionExec};

use crate::support::{Sandbox, collect, eventually};

use super::{begin, named, until};

/// Waits until every call that was sent so far waits for its turn in a session.
pub(crate) fn all_are_queued(sandbox: &Sandbox) {
    // Connections are taken in order: when this one is answered, those before have their threads.
    sandbox.info();
    // A thread that has just begun still has the name of the one that began it.
    let idle = || sandbox.threads("accept") == 1 && sandbox.threads("call") == 0;
    eventually("no thread is busy with a call", idle);
}

in_every_shell! {
    /// 39
    fn commands_run_in_the_order_they_came(s) {
        let wait = s.gate("gate");
        let (first, _) = s.begin(SessionExec::new(format!("echo up; {wait}; echo 0 >>/tmp/order")));
        until(&first, "up");
        let calls: Vec<_> = (1..10).map(|n| {
            let exec = SessionExec::new(format!("echo {n} >>/tmp/order; echo out {n}"));
            let call = s.sandbox.client.call(Request::SessionExec { which: s.id.clone(), exec });
            all_are_queued(&s.sandbox);
            call.unwrap()
        }).collect();
        assert!(s.info().busy);
        s.open_gate("gate");
        for (n, call) in (1..10).zip(&calls) {
            assert_eq!(collect(call).unwrap().out(), format!("out {n}\n"));
        }
        let order: String = (0..10).map(|n| format!("{n}\n")).collect();
        assert_eq!(s.ok("cat /tmp/order"), order);
    }

    fn a_call_that_hangs_up_while_it_waits_is_dropped(s) {
        let wait = s.gate("gate");
        let (first, _) = s.begin(SessionExec::new(format!("echo up; {wait}")));
        until(&first, "up");
        let exec = SessionExec::new("echo ran >/tmp/ran");
        let second = s.sandbox.client.call(Request::SessionExec { which: s.id.clone(), exec });
        all_are_queued(&s.sandbox);
        drop(second);
        s.open_gate("gate");
        assert_eq!(collect(&first).unwrap().code(), 0);
        assert_eq!(s.ok("test -e /tmp/ran || echo no"), "no\n");
    }

    /// 40
    fn sessions_run_side_by_side(s) {
        s.sandbox.open(named(s.shell, "other")).unwrap();
        s.sandbox.ok("mkfifo /tmp/there /tmp/back");
        // Each waits for the other, which would take for ever one after the other.
        let (one, _) = s.begin(SessionExec::new("echo a >/tmp/there; cat /tmp/back"));
        let second = SessionExec::new("cat /tmp/there; echo b >/tmp/back");
        let (two, _) = begin(&s.sandbox, "other", second);
        assert_eq!(collect(&one).unwrap().out(), "b\n");
        assert_eq!(collect(&two).unwrap().out(), "a\n");
    }

    /// 43
    fn twenty_at_once_do_not_mix(s) {
        let open = |n: usize| s.sandbox.open(named(s.shell, &format!("w{n}"))).unwrap().id;
        let ids: Vec<String> = (0..5).map(open).collect();
        std::thread::scope(|scope| {
            for n in 0..20 {
                let (id, sandbox) = (&ids[n % 5], &s.sandbox);
                scope.spawn(move || (0..10).for_each(|round| marked(sandbox, id, n, round)));
            }
        });
    }
}

/// Runs something that prints a mark of its own only.
fn marked(sandbox: &Sandbox, id: &str, n: usize, round: usize) {
    let mark = format!("{n}-{round}");
    let each = format!("echo {mark}; echo {mark} >&2");
    let text = format!("for i in 1 2 3 4 5 6 7 8 9 10; do {each}; done; (exit {n})");
    let run = sandbox.in_session(id, SessionExec::new(text)).unwrap();
    let expected = format!("{mark}\n").repeat(10);
    assert_eq!((run.out(), run.err(), run.code()), (expected.clone(), expected, n as i32));
}
