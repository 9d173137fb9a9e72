//! What a command begins with, and what cannot be run.

use ringfence_link::warden::{Code, Exec};

use super::argv;
use crate::support::{Maker, code_of, sandbox};

fn variable(name: &str, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value.to_vec())
}

#[test]
fn files_of_the_workspace_are_there() {
    let sandbox = sandbox!(Maker::new().file("test.txt", "hello world"));
    assert_eq!(sandbox.ok("pwd"), "/workspace\n");
    assert_eq!(sandbox.ok("cat test.txt"), "hello world");
    assert_eq!(sandbox.ok("ls -1"), "test.txt\n");
}

#[test]
fn nothing_is_kept_between_two() {
    let sandbox = sandbox!();
    sandbox.ok("cd /tmp; export A=1; f() { :; }; umask 077");
    let left = sandbox.ok("pwd; echo \"[$A]\"; umask; command -v f || echo none");
    assert_eq!(left, "/workspace\n[]\n0022\nnone\n");
}

#[test]
fn what_cannot_be_run_says_so_with_the_codes_of_a_shell() {
    let sandbox = sandbox!(Maker::new().file("data", "not a program"));
    for exec in [argv(&["no-such-program"]), Exec::shell("no-such-program")] {
        let run = sandbox.exec(exec).unwrap();
        assert_eq!(run.code(), 127);
        assert!(
            run.err().contains("no-such-program") && run.err().contains("not found"),
            "{run:?}"
        );
    }
    for exec in [argv(&["./data"]), Exec::shell("./data"), argv(&["/tmp"])] {
        let run = sandbox.exec(exec).unwrap();
        assert_eq!(run.code(), 126, "{run:?}");
        assert!(run.err().contains("data") || run.err().contains("/tmp"), "{run:?}");
    }
}

#[test]
fn a_bad_directory_is_a_result_with_exit_1_that_names_it() {
    let sandbox = sandbox!(Maker::new().file("file", ""));
    for bad in ["/no/where", "missing", "/workspace/file"] {
        let run = sandbox.exec(Exec { cwd: Some(bad.into()), ..Exec::shell("true") }).unwrap();
        assert_eq!((run.code(), run.out().as_str()), (1, ""));
        assert!(run.err().contains(bad), "{run:?}");
    }
    let run = sandbox.exec(Exec { cwd: Some(b"/tmp".to_vec()), ..Exec::shell("pwd") }).unwrap();
    assert_eq!(run.out(), "/tmp\n");
    let nul = Exec { cwd: Some(b"/a\0b".to_vec()), ..Exec::shell("true") };
    assert_eq!(code_of(sandbox.exec(nul)), Code::InvalidArgument);
}

#[test]
fn values_of_variables_are_data_and_their_names_are_checked() {
    let sandbox = sandbox!(Maker::new().change(|c| c.env = vec![("OWN".into(), "sandbox".into())]));
    let value = b"$(touch /tmp/x); `id` 'q' \"d\" \\ * \n end \xff";
    let exec =
        Exec { env: vec![variable("MY_VAR", value)], ..Exec::shell("printf %s \"$MY_VAR\"") };
    assert_eq!(sandbox.exec(exec).unwrap().stdout, value);
    assert_eq!(sandbox.sh("[ -e /tmp/x ] || echo \"[$MY_VAR]\"").out(), "[]\n");
    let over = Exec { env: vec![variable("OWN", b"call")], ..Exec::shell("echo $OWN") };
    assert_eq!(sandbox.exec(over).unwrap().out(), "call\n");
    assert_eq!(sandbox.ok("echo $OWN"), "sandbox\n");
    for name in ["A-B", "1A", "A B", "", "A=B", "é"] {
        let bad = Exec { env: vec![variable(name, b"x")], ..Exec::shell("true") };
        assert_eq!(code_of(sandbox.exec(bad)), Code::InvalidArgument, "{name:?}");
    }
    let nul = Exec { env: vec![variable("A", b"x\0y")], ..Exec::shell("true") };
    assert_eq!(code_of(sandbox.exec(nul)), Code::InvalidArgument);
}

#[test]
fn nothing_of_the_hosts_environment_is_inside() {
    let sandbox = sandbox!();
    let names = sandbox.ok("env | cut -d= -f1 | sort | tr '\\n' ' '");
    assert_eq!(names, "HOME LANG PATH PWD TERM TMPDIR USER ");
}

#[test]
fn a_nul_in_the_command_is_refused() {
    let sandbox = sandbox!();
    assert_eq!(code_of(sandbox.exec(Exec::shell("echo a\0b"))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&["echo", "a\0b"]))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&[]))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.exec(argv(&[""]))), Code::InvalidArgument);
}

#[test]
fn arguments_without_a_shell_arrive_as_they_are() {
    let sandbox = sandbox!();
    let words = ["a b", "$(id)", "`id`", "it's", "\"q\"", "tab\there", "new\nline", "\\", "*", ""];
    let run = sandbox.exec(argv(&[&["printf", "<%s>"], &words[..]].concat())).unwrap();
    assert_eq!(run.out(), words.map(|word| format!("<{word}>")).concat());
}

#[test]
fn a_command_text_of_a_mebibyte_runs() {
    let sandbox = sandbox!();
    let text = format!("x='{}'\necho ${{#x}}; exit 3", "y".repeat(1 << 20));
    let run = sandbox.exec(Exec::shell(text)).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("1048576\n", 3), "{}", run.err());
}
