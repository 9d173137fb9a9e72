//! A shell that is used if it is there, as well as it lets itself be used.
//!
//! The promises it keeps as the others do, and those it keeps in its own way. What it does not do:
//! its jobs are counted from 2 (a builtin that runs a text is a job itself), `set -x` shows nothing
//! of later calls (they have another stderr), and a text with a syntax error is not begun.

use ringfence_link::warden::{Code, OpenSession, SessionExec};

use super::log::read;
use super::{Session, gone, keep_promise, limited, long, options, there, variables, within};
use crate::support::{Sandbox, code_of, collect, eventually, require_sandbox};

macro_rules! also_in_zsh {
    ($($module:ident: $($name:ident),+;)+) => { $($(
        #[test]
        fn $name() {
            require_sandbox!();
            keep_promise("zsh", super::$module::$name::promise);
        }
    )+)+ };
}

also_in_zsh! {
    basics: a_command_prints_and_ends_with_zero, streams_are_apart, a_failure_is_a_result,
        an_unknown_program_is_127, variables_are_kept_exported_or_not, the_directory_is_kept,
        functions_and_aliases_are_kept, megabytes_arrive_on_both_streams,
        input_that_was_not_given_has_ended, input_arrives_exactly_and_then_ends,
        input_reaches_a_command_that_runs, the_last_newline_is_there_or_not, bytes_are_bytes,
        nothing_to_do_is_done, output_arrives_as_it_is_written,
        a_session_starts_with_its_own_variables_and_none_of_the_hosts,
        what_was_denied_and_changed_is_in_the_result;
    texts: here_documents_are_texts, pipes_globs_and_redirections_work,
        the_last_status_is_the_last_commands, set_e_ends_the_shell_and_that_is_said,
        a_text_of_a_megabyte_is_a_text, errors_of_expansion_are_results,
        prompts_and_separators_are_the_users, aliases_of_builtins_do_not_matter,
        functions_named_as_builtins_do_not_matter, without_a_path_builtins_work,
        redirections_of_the_shell_itself_end_with_the_call, limits_of_the_shell_are_no_obstacle,
        files_can_be_sourced_from_the_directory, loops_and_conditions_over_lines_work;
    calls: a_variable_of_a_call_is_unset_in_the_next,
        a_variable_of_the_session_comes_back_after_the_call,
        a_variable_that_was_not_exported_is_not_exported_after_the_call,
        what_a_call_with_variables_defines_stays, values_are_data,
        the_previous_directory_is_the_sessions_own, directories_may_have_any_name,
        a_directory_reached_by_a_link_keeps_its_name, a_directory_that_is_missing_is_a_result,
        a_session_cannot_start_in_a_directory_that_is_missing,
        a_directory_that_was_deleted_is_no_obstacle, everything_at_once;
    jobs: a_job_does_not_hold_up_its_command, jobs_can_be_waited_for,
        what_a_job_prints_later_goes_to_the_log, a_job_that_prints_much_is_never_held_up,
        a_stream_that_was_kept_open_goes_to_the_log, closing_ends_everything,
        the_end_of_the_shell_ends_its_jobs, many_jobs_leave_nothing_behind;
    ending: a_command_that_takes_too_long_is_ended_and_its_output_kept, loops_of_builtins_are_left,
        nothing_after_the_ended_command_is_run, the_whole_tree_of_the_command_goes,
        a_command_that_ignores_signals_goes, cancelling_ends_the_command_with_a_result,
        hanging_up_ends_the_command_and_keeps_the_shell, jobs_of_earlier_commands_stay,
        several_in_a_row_are_no_different;
    life: exit_ends_the_session_with_its_code, exec_replaces_the_shell,
        an_ended_shell_is_started_again_if_that_is_asked_for, a_shell_that_kills_itself_is_137,
        traps_of_the_exit_are_run, the_journal_has_all_of_it, nothing_is_left_of_a_closed_session;
    log: it_is_read_from_any_offset;
    memory: the_memory_of_a_program_is_in_the_bill_of_its_command_alone;
    names: a_session_has_an_id_a_name_and_a_shell;
    terminal: a_command_has_no_terminal_as_its_streams, a_password_is_not_waited_for,
        interrupts_from_inside_do_not_end_the_shell;
    turns: twenty_at_once_do_not_mix;
    endurance: ten_thousand_commands_leave_no_trace;
}

/// The promises it keeps in its own way.
macro_rules! in_zsh {
    ($(fn $name:ident($s:ident) $body:block)*) => { $(
        #[test]
        fn $name() {
            fn promise($s: &Session) $body
            require_sandbox!();
            keep_promise("zsh", promise);
        }
    )* };
}

in_zsh! {
    fn it_is_zsh_and_not_something_like_it(s) {
        assert_eq!(s.ok("a=(x y); echo $a[2] ${(U)a[1]} $ZSH_VERSION[1]"), "y X 5\n");
        assert_eq!(s.ok("typeset -A m=(k v); f() { typeset l=1 }; f"), "");
        assert_eq!(s.ok("echo $m[k] ${l-unset}"), "v unset\n", "what was declared stays");
    }

    fn a_syntax_error_keeps_the_session(s) {
        s.ok("v=1; cd /usr");
        for text in ["echo 'x", "echo $(x", "echo )", "}", "if true; then", "fi; done", "a() {"] {
            let run = s.run(text);
            assert!(run.code() == 1 && run.out().is_empty(), "{text}: {run:?}");
            assert!(run.err().starts_with("zsh: "), "{text}: {run:?}");
            assert!(!run.outcome.session_ended, "{text}: {run:?}");
        }
        assert_eq!(s.ok("echo $? $v; pwd"), "1 1\n/usr\n");
    }

    fn no_match_is_a_failure_with_its_usual_status(s) {
        let run = s.run("ls *.nothing");
        assert_eq!((run.code(), run.err().as_str()), (1, "zsh: no matches found: *.nothing\n"));
    }

    fn nothing_is_asked(s) {
        assert_eq!(s.ok("cd /tmp; touch a b; rm *; ls"), "");
        let job = long();
        s.ok(&format!("sleep {job} &"));
        there(&job, 1);
        let run = s.run("exit 7");
        assert_eq!((run.code(), run.outcome.session_ended), (7, true), "{run:?}");
        gone(&job);
    }

    fn nothing_of_ours_is_visible(s) {
        s.ok("log=1 dir=2; trap 'echo bye' EXIT");
        assert_eq!(s.ok("echo $log $dir $# $0"), "1 2 0 zsh\n");
        let text = "{ set; alias; functions; env; } | grep -i -e ringfence -e /run/shell";
        assert_eq!(s.run(text).out(), "");
        let text = "trap >/tmp/t; grep -c bye /tmp/t; ls -a /workspace | grep -c .";
        assert_eq!(s.ok(text), "1\n2\n");
        let run = s.run("exit 3");
        assert_eq!((run.code(), run.out().as_str()), (3, "bye\n"));
    }

    fn files_that_a_user_has_for_it_are_not_read(s) {
        s.sandbox.ok("for f in .zshenv .zshrc .zprofile; do echo 'echo read; V=1' >~/$f; done");
        let home = variables(&[("ZDOTDIR", "/home/user"), ("ENV", "/home/user/.zshrc")]);
        let id = s.sandbox.open(OpenSession { env: home, ..options("zsh") }).unwrap().id;
        let run = s.sandbox.in_session(&id, SessionExec::new("echo ${V-unset}")).unwrap();
        assert_eq!(run.out(), "unset\n");
    }

    fn jobs_are_kept(s) {
        let job = long();
        s.ok(&format!("sleep {job} &"));
        there(&job, 1);
        assert!(s.run("jobs").out().contains(&job));
        eventually("the job has ended", || {
            s.run("kill %%");
            crate::support::processes_with(&job).is_empty()
        });
        let wait = s.gate("gate");
        s.ok(&format!("sh -c '{wait}; echo end' &"));
        let (call, _) = s.begin(SessionExec::new("echo now; fg >/dev/null"));
        super::until(&call, "now");
        s.open_gate("gate");
        assert_eq!(collect(&call).unwrap().code(), 0);
        eventually("what it prints is in the log", || read(s, 0).0.contains("end\n"));
    }

    fn a_directory_and_a_variable_apply_once(s) {
        s.ok("cd /var; cd /tmp; A=old; chpwd() { echo changed; }");
        let env = variables(&[("A", "n'w")]);
        let text = "pwd; env | grep ^A=; A=2; ls *.nothing";
        let run = s.exec(SessionExec { env: env.clone(), ..within(text, "/usr") });
        assert_eq!((run.code(), run.out().as_str()), (1, "/usr\nA=n'w\n"), "{run:?}");
        assert_eq!(s.run("echo $PWD $OLDPWD $A; env | grep -c ^A=").out(), "/tmp /var old\n0\n");
        let cwd = Some(b"/usr".to_vec());
        assert!(s.exec(SessionExec { cwd, env, ..limited("sleep 100", 200) }).outcome.timed_out);
        assert_eq!(s.run("echo $PWD $OLDPWD $A; env | grep -c ^A=").out(), "/tmp /var old\n0\n");
    }

    fn variables_that_mean_something_to_it_apply_once_too(s) {
        let before = s.ok("echo $PATH");
        let exec = super::with_env("echo $path[1]; env | grep ^PATH=", &[("PATH", "/x:/bin")]);
        assert_eq!(s.ok_exec(exec), "/x\nPATH=/x:/bin\n");
        assert_eq!(s.ok("echo $PATH; env | grep ^PATH="), format!("{before}PATH={before}"));
    }

    fn what_it_exports_is_kept_whatever_its_options(s) {
        let value = "it's\n\u{1}\t\\ \u{e4} $(x) \"";
        s.ok_exec(super::with_env("export V=$W", &[("W", value)]));
        s.ok("path+=(/opt/x); typeset -U path; setopt rcquotes kshglob ksharrays; typeset -ix N=7");
        assert!(s.run("exit").outcome.session_ended);
        let text = "printf %s \"$V\"; echo; echo ${PATH##*:} $N";
        let exec = SessionExec { restart: true, ..SessionExec::new(text) };
        assert_eq!(s.ok_exec(exec), format!("{value}\n/opt/x 7\n"));
    }

    fn other_emulations_are_no_obstacle(s) {
        for mode in ["sh", "ksh", "csh", "zsh"] {
            s.ok(&format!("emulate {mode}"));
            assert_eq!(s.run("(exit 5)").code(), 5, "{mode}");
            assert_eq!(s.ok_exec(within("echo $?; pwd", "/usr")), "5\n/usr\n", "{mode}");
            assert_eq!(s.ok("pwd"), "/workspace\n", "{mode}");
        }
    }

    fn a_shell_that_cannot_report_any_more_is_ended_and_that_is_said(s) {
        let run = s.run("builtin() { :; }");
        assert!(run.outcome.session_ended && run.outcome.reason.is_some(), "{run:?}");
    }
}

#[test]
fn where_it_is_missing_that_is_said_and_what_is_possible() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let env = variables(&[("PATH", "/nonexistent")]);
    let error = sandbox.open(OpenSession { env, ..options("zsh") }).unwrap_err();
    let expected = "there is no shell \"zsh\" inside; possible: bash, sh, dash, busybox";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(code_of(Err::<(), _>(error)), Code::InvalidArgument);
}
