//! Texts that other ways of driving a shell stumble over.

use ringfence_link::warden::SessionExec;

use super::{with_env, within};

in_every_shell! {
    /// 20
    fn here_documents_are_texts(s) {
        assert_eq!(s.ok("cat <<EOF\na\nEOF"), "a\n");
        assert_eq!(s.ok("x=5; cat <<E\n$x\n$(echo sub)\nE\necho z"), "5\nsub\nz\n");
        assert_eq!(s.ok("cat <<'E'\n$x\nE"), "$x\n");
        assert!(s.run("cat <<EOF\na").out().starts_with('a'), "an end is missing");
        assert_eq!(s.ok("echo next"), "next\n");
    }

    /// 21
    fn pipes_globs_and_redirections_work(s) {
        let text = "cd /tmp; touch a1 a2; echo a* | tr a b; echo '*' \"$((1+2))\"; ls a1 >f; cat f";
        assert_eq!(s.ok(text), "b1 b2\n* 3\na1\n");
    }

    /// 27
    fn the_last_status_is_the_last_commands(s) {
        s.run("false");
        assert_eq!((s.ok("echo $?"), s.ok("echo $?")), ("1\n".into(), "0\n".into()));
        s.run("(exit 77)");
        assert_eq!(s.ok_exec(with_env("echo $?", &[("A", "x")])), "77\n");
        s.run("(exit 9)");
        assert_eq!(s.ok_exec(within("echo $?; pwd", "/")), "9\n/\n");
        let run = s.run("return 3");
        assert_eq!((run.code(), s.ok("echo $?").as_str()), (3, "3\n"));
    }

    /// 28
    fn nothing_of_ours_is_visible(s) {
        s.ok("log=1 dir=2; trap 'echo bye' EXIT");
        let name = if s.shell == "bash" { "bash" } else { "sh" };
        assert_eq!(s.ok("echo $log $dir $# $0"), format!("1 2 0 {name}\n"));
        let text = "set | grep -i -e ringfence -e '/run/shell' | grep -v -e ^_= -e BASH";
        assert_eq!(s.run(text).out(), "");
        let text = "trap >/tmp/t; grep -c bye /tmp/t; ls -a /workspace | grep -c .";
        assert_eq!(s.ok(text), "1\n2\n");
        let run = s.run("exit 3");
        assert_eq!((run.code(), run.out().as_str()), (3, "bye\n"));
    }

    /// 29
    fn an_unclosed_quote_is_an_error_and_nothing_more(s) {
        s.ok("v=1");
        for text in ["echo 'x", "echo \"x", "echo $(x", "v=2; echo 'x"] {
            let run = s.run(text);
            assert!(run.code() == 2 && run.out().is_empty() && !run.err().is_empty(), "{run:?}");
        }
        assert_eq!(s.ok("echo $? $v"), "2 1\n");
    }

    /// 30
    fn a_syntax_error_is_an_error_and_nothing_more(s) {
        s.ok("v=1; cd /usr");
        for text in ["echo )", "}", "if true; then", "fi; done", "for", "case x in", "a() {"] {
            let run = s.run(text);
            assert!(run.code() == 2 && run.out().is_empty() && !run.err().is_empty(), "{run:?}");
            assert!(!run.outcome.session_ended);
        }
        assert_eq!(s.ok("echo $v; pwd"), "1\n/usr\n");
        let run = s.run("echo a\necho )\necho b");
        assert_eq!((run.code(), run.out().as_str()), (2, "a\n"), "what was before it has run");
    }

    /// 31
    fn a_backslash_at_the_end_is_no_harm(s) {
        let run = s.run("echo a\\");
        assert!(["a\n", "a\\\n"].contains(&run.out().as_str()) && run.code() == 0, "{run:?}");
        assert_eq!(s.ok("echo b \\\n"), "b\n");
        assert_eq!(s.ok("echo next"), "next\n");
    }

    /// 32
    fn set_e_ends_the_shell_and_that_is_said(s) {
        s.ok("set -e");
        assert_eq!(s.ok_exec(within("echo x; false || true", "/")), "x\n");
        let run = s.run("echo a; false; echo b");
        assert_eq!((run.out().as_str(), run.code(), run.outcome.session_ended), ("a\n", 1, true));
    }

    fn a_text_of_a_megabyte_is_a_text(s) {
        let text = format!("x='{}'; echo ${{#x}}", "a".repeat(1 << 20));
        assert_eq!(s.ok(&text), "1048576\n");
        assert_eq!(s.ok("echo ${#x}"), "1048576\n");
        let lines = "n=$((n+1)) # padding padding padding padding\n".repeat(25_000);
        assert_eq!(s.ok(&format!("n=0\n{lines}echo $n")), "25000\n");
    }

    fn tracing_shows_the_text_alone(s) {
        s.run("set -x");
        let run = s.run("echo a");
        assert!(run.out() == "a\n" && run.err().trim_start_matches('+') == " echo a\n", "{run:?}");
        s.run("set +x");
        assert_eq!(s.ok("echo c"), "c\n");
    }

    fn errors_of_expansion_are_results(s) {
        s.ok("v=1; readonly ro=1");
        for (text, message) in [
            ("echo ${nope?msg}; echo after", "msg"),
            ("ro=2; echo after >/dev/null", "ro"),
            ("set -u; echo $nope; echo after", "nope"),
            ("cd /nonexistent", "nonexistent"),
            (". /nonexistent", "nonexistent"),
        ] {
            let run = s.run(text);
            assert!(run.out().is_empty() && run.err().contains(message), "{text}: {run:?}");
            assert!(!run.outcome.session_ended, "{text}: {run:?}");
            s.run("set +u");
        }
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn prompts_and_separators_are_the_users(s) {
        s.ok("PS1='$(echo hacked)'; PS2=x; PS4='$(echo h)'; IFS=':/.0123456789'");
        assert_eq!(s.ok("echo a"), "a\n");
        assert_eq!(s.run("(exit 50)").code(), 50);
        assert_eq!(s.ok("echo \"$?\""), "50\n");
        assert_eq!(s.ok_exec(with_env("echo $A", &[("A", "x")])), "x\n");
        assert_eq!(s.ok_exec(within("pwd", "/usr")), "/usr\n");
    }

    fn aliases_of_builtins_do_not_matter(s) {
        s.ok("alias command=false printf=false export=false .=false return=false");
        s.ok("alias cd=false pwd=false");
        assert_eq!(s.run("(exit 3)").code(), 3);
        assert_eq!(s.ok("echo $?"), "3\n");
        let exec = SessionExec { cwd: Some("/usr".into()), ..with_env("echo $A", &[("A", "x")]) };
        assert_eq!(s.ok_exec(exec), "x\n");
        assert_eq!(s.ok("\\pwd"), "/workspace\n");
    }

    fn functions_named_as_builtins_do_not_matter(s) {
        s.ok("printf() { echo P; }; cd() { echo C; }; pwd() { echo W; }");
        assert_eq!(s.ok("echo a; printf; cd"), "a\nP\nC\n");
        assert_eq!(s.run("(exit 4)").code(), 4);
        assert_eq!(s.ok("echo $?"), "4\n");
        assert_eq!(s.ok_exec(within("pwd; command pwd", "/usr")), "W\n/usr\n");
        assert_eq!(s.ok("command pwd"), "/workspace\n");
    }

    fn without_a_path_builtins_work(s) {
        s.ok("PATH=/nonexistent");
        assert_eq!(s.ok("echo a"), "a\n");
        s.ok("unset PATH");
        assert_eq!(s.ok("echo b"), "b\n");
    }

    fn redirections_of_the_shell_itself_end_with_the_call(s) {
        s.ok("exec >/dev/null");
        assert_eq!(s.ok("echo a"), "a\n");
        s.ok("exec 2>&-; exec 0<&-");
        let run = s.run("echo b; echo c >&2");
        assert_eq!((run.out().as_str(), run.err().as_str()), ("b\n", "c\n"));
        s.ok("exec 3>/tmp/f3");
        s.ok("echo hi >&3");
        assert_eq!(s.ok("exec 3>&-; cat /tmp/f3"), "hi\n");
    }

    fn limits_of_the_shell_are_no_obstacle(s) {
        s.ok("ulimit -n 20");
        assert_eq!(s.ok("ulimit -n"), "20\n");
        s.ok("ulimit -f 0");
        assert_eq!(s.ok("echo a"), "a\n");
    }

    fn files_can_be_sourced_from_the_directory(s) {
        s.ok("cd /tmp; printf 'EV=5\\nfn() { echo fn; }\\n' >.env");
        assert_eq!(s.ok("source .env; echo $EV; fn"), "5\nfn\n");
        assert_eq!(s.ok("echo $EV; fn"), "5\nfn\n");
        assert_eq!(s.ok("echo 'return 7' >s.sh; source ./s.sh; echo $?"), "7\n");
        assert!(s.run("source ./nofile").err().contains("nofile"));
        assert_eq!(s.ok("echo alive"), "alive\n");
    }

    fn loops_and_conditions_over_lines_work(s) {
        let text = "for i in 1 2\ndo\n  echo $i\ndone\nif true\nthen echo y\nfi\n";
        assert_eq!(s.ok(text), "1\n2\ny\n");
        s.run("break; continue");
        assert_eq!(s.ok("echo next"), "next\n");
    }

    fn a_shell_that_cannot_report_any_more_is_ended_and_that_is_said(s) {
        let run = s.run("command() { :; }");
        assert!(run.outcome.session_ended && run.outcome.reason.is_some(), "{run:?}");
        assert_ne!(run.code(), 0);
    }
}
