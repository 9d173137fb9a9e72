//! What any command may expect: its output, its input, its status.

use ringfence_link::client::Event;
use ringfence_link::warden::{Control, SessionExec};

use crate::support::collect;

use super::until;

in_every_shell! {
    /// 1
    fn a_command_prints_and_ends_with_zero(s) {
        let run = s.run("echo 'Hello'");
        assert_eq!((run.out().as_str(), run.err().as_str(), run.code()), ("Hello\n", "", 0));
        assert!(run.outcome.command.starts_with("cmd_") && run.outcome.duration_micros > 0);
        assert_eq!((run.outcome.stdout_bytes, run.outcome.stderr_bytes), (6, 0));
    }

    /// 2
    fn streams_are_apart(s) {
        let run = s.run("echo out; echo err >&2; echo out2");
        assert_eq!((run.out().as_str(), run.err().as_str()), ("out\nout2\n", "err\n"));
    }

    /// 3
    fn a_failure_is_a_result(s) {
        let run = s.run("ls /nope");
        assert!(run.code() != 0 && run.err().contains("/nope"), "{run:?}");
        assert_eq!(s.run("(exit 42)").code(), 42);
        assert_eq!((s.run("true").code(), s.run("false").code()), (0, 1));
    }

    /// 4
    fn an_unknown_program_is_127(s) {
        let run = s.run("nosuchprogram");
        assert!(run.code() == 127 && run.err().contains("not found"), "{run:?}");
    }

    /// 5
    fn variables_are_kept_exported_or_not(s) {
        assert_eq!(s.ok("export A=1; B=2"), "");
        assert_eq!(s.ok("echo $A $B; env | grep -c -e ^A= -e ^B="), "1 2\n1\n");
    }

    /// 6
    fn the_directory_is_kept(s) {
        assert_eq!(s.ok("pwd"), "/workspace\n");
        s.ok("cd /tmp");
        assert_eq!(s.ok("pwd; echo $PWD $OLDPWD"), "/tmp\n/tmp /workspace\n");
        assert_eq!(s.info().cwd, "/tmp");
    }

    /// 7
    fn functions_and_aliases_are_kept(s) {
        s.ok("f() { echo f:$1; }");
        assert_eq!(s.ok("f x"), "f:x\n");
        s.ok("alias ll='echo LL'");
        assert_eq!(s.ok("ll y"), "LL y\n");
    }

    fn options_umask_and_arguments_are_kept(s) {
        s.ok("set -f; umask 027; set -- a b");
        assert_eq!(s.ok("echo * $1 $#; umask | tail -c 4"), "* a 2\n027\n");
    }

    fn work_goes_on_over_several_calls(s) {
        s.ok("mkdir -p /workspace/project");
        s.ok("cd /workspace/project");
        s.ok("echo 'test content' >file");
        assert_eq!(s.ok("cat file"), "test content\n");
    }

    /// 17
    fn lines_keep_their_order(s) {
        assert_eq!(s.ok("echo a; echo b; echo c"), "a\nb\nc\n");
    }

    /// 18
    fn a_hundred_thousand_lines_arrive(s) {
        let out = s.ok("seq 1 100000");
        assert!(out.len() == 588_895 && out.ends_with("\n100000\n"));
        assert!(out.lines().map(|line| line.parse::<u32>().unwrap()).eq(1..=100_000));
    }

    /// 19
    fn megabytes_arrive_on_both_streams(s) {
        let run = s.run("head -c 12000000 /dev/zero; head -c 3000000 /dev/zero >&2");
        assert_eq!((run.stdout.len(), run.stderr.len()), (12_000_000, 3_000_000));
        assert_eq!(run.outcome.stdout_bytes, 12_000_000);
    }

    /// 22
    fn input_that_was_not_given_has_ended(s) {
        assert_eq!(s.ok("cat"), "");
        assert_eq!(s.run("read x").code(), 1);
    }

    /// 23
    fn input_arrives_exactly_and_then_ends(s) {
        let with = |text: &str, input: &[u8]| {
            let exec = SessionExec { stdin: true, ..SessionExec::new(text) };
            let run = s.sandbox.in_session_with_input(&s.id, exec, input).unwrap();
            assert_eq!(run.code(), 0, "{run:?}");
            run.stdout
        };
        assert_eq!(with("cat", b"a\0b\xff'"), b"a\0b\xff'");
        assert_eq!(with("read x; echo $x; cat", b"l1\nl2\n"), b"l1\nl2\n");
        assert_eq!(with("cat", b""), b"");
        assert_eq!(with("wc -c", &vec![b'x'; 3_000_000]).trim_ascii(), b"3000000");
        assert_eq!(with("true", &vec![b'x'; 3_000_000]), b"");
        assert_eq!(s.ok("cat"), "", "the next one has none");
    }

    fn input_reaches_a_command_that_runs(s) {
        let text = "while read x; do echo got $x; done";
        let exec = SessionExec { stdin: true, ..SessionExec::new(text) };
        let (call, _) = s.begin(exec);
        for word in ["one", "two", "three"] {
            call.input(format!("{word}\n").as_bytes()).unwrap();
            until(&call, &format!("got {word}\n"));
        }
        call.control(Control::EndOfInput).unwrap();
        assert_eq!(collect(&call).unwrap().code(), 0);
    }

    /// 24
    fn the_last_newline_is_there_or_not(s) {
        assert_eq!((s.ok("printf a"), s.ok("printf 'a\\n'")), ("a".into(), "a\n".into()));
    }

    /// 25
    fn bytes_are_bytes(s) {
        assert_eq!(s.run("printf 'a\\0b\\377'").stdout, b"a\0b\xff");
    }

    /// 26
    fn nothing_to_do_is_done(s) {
        for text in ["", "# comment", "\n\n  \n", "echo a # comment\n# more"] {
            assert_eq!(s.run(text).code(), 0, "{text:?}");
        }
    }

    fn output_arrives_as_it_is_written(s) {
        let wait = s.gate("gate");
        let (call, _) = s.begin(SessionExec::new(format!("printf part; {wait}; echo ' end'")));
        assert_eq!(until(&call, "part"), "part");
        s.open_gate("gate");
        let run = collect(&call).unwrap();
        assert_eq!(run.out(), " end\n");
    }

    fn a_caller_that_does_not_read_makes_the_command_wait(s) {
        let text = "head -c 20000000 /dev/zero; echo done >/tmp/done";
        let (call, _) = s.begin(SessionExec::new(text));
        assert_eq!(s.sandbox.sh("test -e /tmp/done").code(), 1);
        let run = collect(&call).unwrap();
        assert_eq!(run.stdout.len(), 20_000_000);
        assert_eq!(s.sandbox.sh("test -e /tmp/done").code(), 0);
    }

    fn streams_can_be_opened_by_name(s) {
        let run = s.run("echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/stderr");
        assert_eq!((run.out().as_str(), run.err().as_str()), ("a\nc\n", "b\nc\n"));
    }

    fn what_was_denied_and_changed_is_in_the_result(s) {
        let exec = SessionExec { changes: true, ..SessionExec::new("echo x >/workspace/new") };
        let run = s.exec(exec);
        let changes = run.outcome.changes.unwrap();
        assert!(changes.iter().any(|change| change.path.ends_with("new")), "{changes:?}");
        let exec = SessionExec { changes: true, ..SessionExec::new("true") };
        assert_eq!(s.exec(exec).outcome.changes, Some(vec![]), "only its own");
    }

    fn a_session_starts_with_its_own_variables_and_none_of_the_hosts(s) {
        let out = s.ok("env");
        for (name, value) in [("HOME", "/home/user"), ("USER", "user"), ("TERM", "dumb")] {
            assert!(out.contains(&format!("{name}={value}\n")), "{out}");
        }
        assert!(!out.contains("CARGO"), "{out}");
    }

    fn the_events_of_a_call_are_in_order(s) {
        let (call, command) = s.begin(SessionExec::new("echo a; echo b >&2"));
        let mut seen = Vec::new();
        let reply = call.finish(|event| match event {
            Event::Output(_) => seen.push("out"),
            Event::Error(_) => seen.push("err"),
            Event::Reply(..) => seen.push("reply"),
        });
        let ringfence_link::warden::Reply::Done(outcome) = reply.unwrap() else { panic!() };
        assert_eq!(outcome.command, command);
        seen.sort_unstable();
        assert_eq!(seen, ["err", "out"]);
    }
}
