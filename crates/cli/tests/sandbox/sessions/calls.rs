//! What belongs to one call only: its environment, its directory.

use ringfence_link::warden::{Code, OpenSession, SessionExec};

use crate::support::code_of;

use super::{limited, options, variables, with_env, within};

const NASTY: &str = "o'l\"d $(x) `y` \\ *\nline2\n";

in_every_shell! {
    /// 8
    fn a_variable_of_a_call_is_unset_in_the_next(s) {
        assert_eq!(s.ok_exec(with_env("echo $A; env | grep -c ^A=", &[("A", "x")])), "x\n1\n");
        assert_eq!(s.ok("echo ${A-unset}"), "unset\n");
    }

    /// 9
    fn a_variable_of_the_session_comes_back_after_the_call(s) {
        let set = with_env("A=$V; export A", &[("V", NASTY)]);
        s.ok_exec(set);
        assert_eq!(s.ok_exec(with_env("echo \"$A\"", &[("A", "new")])), "new\n");
        assert_eq!(s.ok("printf %s \"$A\"; env | grep -c ^A="), format!("{NASTY}1\n"));
    }

    fn a_variable_that_was_not_exported_is_not_exported_after_the_call(s) {
        s.ok("A=old");
        assert_eq!(s.ok_exec(with_env("env | grep ^A=", &[("A", "new")])), "A=new\n");
        assert_eq!(s.run("echo $A; env | grep -c ^A=").out(), "old\n0\n");
    }

    fn a_variable_comes_back_after_an_error_and_a_timeout(s) {
        s.ok("A=old");
        assert_eq!(s.exec(with_env("echo 'x", &[("A", "new")])).code(), 2);
        assert_eq!(s.run("echo $A; env | grep -c ^A=").out(), "old\n0\n");
        let env = variables(&[("A", "new"), ("N", "1")]);
        let run = s.exec(SessionExec { env, ..limited("sleep 100", 200) });
        assert!(run.outcome.timed_out);
        assert_eq!(s.run("echo $A ${N-none}; env | grep -c ^A=").out(), "old none\n0\n");
    }

    fn what_a_call_with_variables_defines_stays(s) {
        let text = "A=2; export B=3; C=4; d() { echo d; }; cd /usr";
        s.ok_exec(with_env(text, &[("A", "new")]));
        assert_eq!(s.ok("echo ${A-unset} $B $C; d; pwd"), "unset 3 4\nd\n/usr\n");
    }

    /// 10
    fn a_name_that_is_none_is_refused_and_the_session_goes_on(s) {
        s.ok("v=1");
        for bad in ["A-B", "1A", "A B", "", "A=B", "Ä"] {
            let (code, message) = s.refusal(with_env("echo ran >/tmp/ran", &[(bad, "x")]));
            assert!(code == Code::InvalidArgument && message.contains(bad), "{message}");
        }
        assert_eq!(s.refusal(with_env("true", &[("A", "x\0y")])).0, Code::InvalidArgument);
        assert_eq!(s.refusal(SessionExec::new("true\0")).0, Code::InvalidArgument);
        assert_eq!(s.refusal(within("true", "/a\0b")).0, Code::InvalidArgument);
        assert_eq!(s.ok("echo $v; ls /tmp"), "1\n");
    }

    /// 11
    fn values_are_data(s) {
        let value = "$(rm x); 'q' \"d\" \\ *\n\u{e4} \u{1}";
        assert_eq!(s.ok_exec(with_env("printf %s \"$V\"", &[("V", value)])), value);
        let long = format!("'\n$\"{}", "v".repeat(200_000));
        assert_eq!(s.ok_exec(with_env("echo ${#BIG}", &[("BIG", &long)])), "200004\n");
        assert_eq!(s.ok("echo ${BIG-unset}"), "unset\n");
    }

    /// 12
    fn a_directory_applies_once(s) {
        assert_eq!(s.ok_exec(within("pwd; echo $PWD", "/usr")), "/usr\n/usr\n");
        assert_eq!(s.ok("pwd; echo $PWD ${OLDPWD-unset}"), "/workspace\n/workspace unset\n");
        assert_eq!(s.info().cwd, "/workspace");
    }

    fn the_previous_directory_is_the_sessions_own(s) {
        s.ok("cd /var; cd /tmp");
        assert_eq!(s.ok_exec(within("cd /etc; pwd; cd - >/dev/null; pwd", "/usr")), "/etc\n/usr\n");
        assert_eq!(s.ok("pwd; cd - >/dev/null; pwd"), "/tmp\n/var\n");
    }

    fn a_directory_is_left_after_an_error_and_a_timeout(s) {
        assert_eq!(s.exec(within("echo 'x", "/usr")).code(), 2);
        assert_eq!(s.ok("pwd; echo ${OLDPWD-unset}"), "/workspace\nunset\n");
        let cwd = Some(b"/usr".to_vec());
        assert!(s.exec(SessionExec { cwd, ..limited("sleep 100", 200) }).outcome.timed_out);
        assert_eq!(s.ok("pwd; echo ${OLDPWD-unset}"), "/workspace\nunset\n");
    }

    fn directories_may_have_any_name(s) {
        let odd = "/tmp/a'b\nc \"d\" $x -";
        s.ok_exec(with_env("mkdir \"$D\"; cd \"$D\"", &[("D", odd)]));
        assert_eq!(s.ok_exec(within("pwd", "/usr")), "/usr\n");
        assert_eq!(s.ok("pwd"), format!("{odd}\n"));
        s.ok("cd /");
        assert_eq!(s.ok_exec(within("pwd", odd)), format!("{odd}\n"));
    }

    fn a_directory_reached_by_a_link_keeps_its_name(s) {
        s.ok("ln -s /usr/share /tmp/link; cd /tmp/link");
        assert_eq!(s.ok_exec(within("pwd", "/")), "/\n");
        assert_eq!(s.ok("pwd; cd ..; pwd"), "/tmp/link\n/tmp\n");
    }

    fn a_relative_directory_is_below_that_of_the_session(s) {
        s.ok("cd /tmp; mkdir sub; CDPATH=/usr; export CDPATH");
        assert_eq!(s.ok_exec(within("pwd", "sub")), "/tmp/sub\n");
        assert_eq!(s.ok("pwd"), "/tmp\n");
    }

    /// 13
    fn a_directory_that_is_missing_is_a_result(s) {
        for env in [vec![], variables(&[("A", "1")])] {
            let run = s.exec(SessionExec { env, ..within("echo ran", "/no/such") });
            assert_eq!((run.code(), run.out().as_str()), (1, ""), "{run:?}");
            assert!(run.err().contains("/no/such"), "{run:?}");
        }
        assert_eq!(s.ok("pwd"), "/workspace\n");
    }

    /// 14: an error, not another directory.
    fn a_session_cannot_start_in_a_directory_that_is_missing(s) {
        let before = s.sandbox.ok("ls /run/shell");
        for cwd in ["/no/such", "/etc/passwd", "no/such"] {
            let open = OpenSession { cwd: Some(cwd.into()), ..options(s.shell) };
            let error = s.sandbox.open(open).unwrap_err();
            assert!(error.to_string().contains(cwd), "{error}");
            assert_eq!(code_of(Err::<(), _>(error)), Code::InvalidArgument);
        }
        assert_eq!(crate::sessions::list(&s.sandbox).len(), 1);
        assert_eq!(s.sandbox.ok("ls /run/shell"), before);
    }

    fn a_session_starts_in_its_directory_with_its_variables(s) {
        let env = variables(&[("INIT_VAR", "a'b\n"), ("ENV", "prod"), ("PATH", "/usr/bin:/bin")]);
        let open = OpenSession { cwd: Some("/usr".into()), env, ..options(s.shell) };
        let id = s.sandbox.open(open).unwrap().id;
        let text = "pwd; printf %s \"$INIT_VAR\"; echo $ENV $PATH; \
            env | grep -c -e ^INIT_VAR -e ^ENV=; echo ${OLDPWD-unset}";
        let run = s.sandbox.in_session(&id, SessionExec::new(text)).unwrap();
        assert_eq!(run.out(), "/usr\na'b\nprod /usr/bin:/bin\n2\nunset\n");
        assert_eq!(crate::sessions::info(&s.sandbox, &id).unwrap().cwd, "/usr");
    }

    /// 15
    fn a_directory_that_was_deleted_is_no_obstacle(s) {
        s.ok("mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone");
        assert_eq!(s.run("echo hi").out(), "hi\n");
        assert_eq!(s.exec(within("pwd", "/usr")).out(), "/usr\n");
        assert_eq!(s.run("cd /; pwd").out(), "/\n");
    }

    /// 16
    fn a_directory_that_became_a_link_is_no_obstacle(s) {
        s.ok("mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d; ln -s /usr /tmp/d");
        assert_eq!(s.run("echo hi; ls >/dev/null").out(), "hi\n");
        assert_eq!(s.run("cd /tmp; pwd").out(), "/tmp\n");
    }

    fn everything_at_once(s) {
        s.run("false");
        let env = variables(&[("A", "x y")]);
        let exec = SessionExec { stdin: true, env, ..within("echo $? $A; pwd; cat", "/usr") };
        let run = s.sandbox.in_session_with_input(&s.id, exec, b"input").unwrap();
        assert_eq!(run.out(), "1 x y\n/usr\ninput");
        assert_eq!(s.ok("pwd; echo ${A-unset}; cat"), "/workspace\nunset\n");
    }

    /// 57
    fn a_plain_command_keeps_nothing(s) {
        s.sandbox.ok("cd /usr; export A=1");
        assert_eq!(s.sandbox.ok("pwd; echo ${A-unset}"), "/workspace\nunset\n");
        assert_eq!(s.ok("pwd; echo ${A-unset}"), "/workspace\nunset\n");
    }
}
