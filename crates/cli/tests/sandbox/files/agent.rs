//! Files in the agent's view: what a call may do is what a program may do.

use ringfence_link::client::ClientError;
use ringfence_link::files::View;
use ringfence_link::warden::Code;

use super::refused;
use crate::support::{Maker, Sandbox, code_of, require_sandbox};

const AGENT: View = View::Agent;
const OWNER: View = View::Owner;

#[test]
fn the_policy_decides_for_the_agent_and_not_for_the_owner() {
    require_sandbox!();
    let maker =
        Maker::new().file("src/.env", "KEY").file("src/main", "x").file("docs/a", "read me");
    let sandbox = maker
        .rule("none:**/.env*@100")
        .rule("read:/docs/**@10")
        .rule("view:/seen/**@10")
        .file("seen/a", "x")
        .start();
    assert_eq!(sandbox.names(AGENT, "/", true), ["/docs/a", "/seen/a", "/src/main"]);
    assert_eq!(sandbox.names(OWNER, "/src", false), ["/src/.env", "/src/main"]);
    assert_eq!(code_of(sandbox.get(AGENT, "src/.env")), Code::FileNotFound);
    assert_eq!(sandbox.get(OWNER, "src/.env").unwrap(), b"KEY");
    assert_eq!(code_of(sandbox.remove(AGENT, "src/.env", false)), Code::FileNotFound);
    for (path, needed, level, rule) in [
        ("docs/a", "write", "read", "read:/docs/**@10"),
        ("src/.env", "write", "none", "none:**/.env*@100"),
        ("src/.env.new", "write", "none", "none:**/.env*@100"),
    ] {
        let failure = refused(sandbox.put(AGENT, path, b"x"));
        assert_eq!(failure.code, Code::PermissionDenied, "{path}");
        assert_eq!(failure.detail("path"), Some(&*format!("/{path}")));
        assert_eq!(failure.detail("needed"), Some(needed));
        assert_eq!(failure.detail("level"), Some(level));
        assert_eq!(failure.detail("rule"), Some(rule));
        assert!(failure.message.contains(rule), "{}", failure.message);
    }
    let unread = refused(sandbox.get(AGENT, "seen/a"));
    assert_eq!(unread.detail("needed"), Some("read"));
    let hidden = refused(sandbox.get(AGENT, "src/.env"));
    assert_eq!((hidden.detail("rule"), hidden.detail("path")), (None, Some("/src/.env")));
    sandbox.put(OWNER, "src/.env", b"KEY2").unwrap();
    assert_eq!(sandbox.sh("cat src/.env; ls -a src | grep -c env").out(), "0\n");
    let rules = serde_json::json!([{"pattern": "**/*", "level": "write"}]).to_string();
    let rules = ringfence_link::warden::Request::SetPolicy { rules };
    sandbox.client.ask(rules).unwrap();
    assert_eq!(sandbox.get(AGENT, "src/.env").unwrap(), b"KEY2");
    assert_eq!(sandbox.ok("cat src/.env"), "KEY2");
}

/// Names of error numbers, as a program of the sandbox prints them.
fn of_program(sandbox: &Sandbox, code: &str) -> String {
    let text = format!(
        "python3 - <<'END'\nimport os, errno\ntry:\n    {code}\n    print('OK')\n\
         except OSError as e:\n    print(errno.errorcode[e.errno])\nEND\n"
    );
    sandbox.ok(&text).trim().to_owned()
}

fn of_call<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    let name = match result {
        Ok(_) => "OK",
        Err(ClientError::Refused(failure)) => match failure.code {
            Code::FileNotFound => "ENOENT",
            Code::PermissionDenied => "EACCES",
            Code::FileExists => "EEXIST",
            other => panic!("{other:?}: {failure}"),
        },
        other => panic!("{other:?}"),
    };
    name.to_owned()
}

#[test]
fn permission_bits_hold_for_the_agent_as_they_do_for_programs() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    if !sandbox.sh("command -v python3").out().contains("python3") {
        return;
    }
    let make = "for who in program call; do for mode in 000 200 400 600; do \
                echo x > $who.f$mode; chmod $mode $who.f$mode; done; \
                for mode in 000 100 300 400 500 700; do mkdir -p $who.d$mode/empty; \
                echo x > $who.d$mode/f; chmod $mode $who.d$mode; done; done";
    sandbox.ok(make);
    for mode in ["000", "200", "400", "600"] {
        let (path, own) = (format!("call.f{mode}"), format!("program.f{mode}"));
        let program = of_program(&sandbox, &format!("open('{own}').read()"));
        assert_eq!(of_call(sandbox.get(AGENT, &path)), program, "read {mode}");
        let program = of_program(&sandbox, &format!("open('{own}', 'w')"));
        assert_eq!(of_call(sandbox.put(AGENT, &path, b"x")), program, "write {mode}");
        assert_eq!(sandbox.get(OWNER, &path).unwrap().len(), if program == "OK" { 1 } else { 2 });
    }
    for mode in ["000", "100", "300", "400", "500", "700"] {
        let (dir, own) = (format!("call.d{mode}"), format!("program.d{mode}"));
        let program = |code: &str| of_program(&sandbox, &code.replace('D', &own));
        let check = |what: &str, call: String, code: &str| {
            assert_eq!(call, program(code), "{what} {mode}");
        };
        let at = |name: &str| format!("{dir}/{name}");
        check("list", of_call(sandbox.list(AGENT, &dir, false)), "os.listdir('D')");
        check("stat", of_call(sandbox.stat(AGENT, &at("f"))), "os.stat('D/f')");
        check("read", of_call(sandbox.get(AGENT, &at("f"))), "open('D/f').read()");
        check("write", of_call(sandbox.put(AGENT, &at("f"), b"")), "open('D/f', 'w')");
        check("create", of_call(sandbox.put(AGENT, &at("n"), b"")), "open('D/n', 'w')");
        check("mkdir", of_call(sandbox.make_dir(AGENT, &at("m"), false)), "os.mkdir('D/m')");
        let link = sandbox.make_link(AGENT, &at("l"), "x");
        check("symlink", of_call(link), "os.symlink('x', 'D/l')");
        let moved = sandbox.rename(AGENT, &at("f"), &format!("call.m{mode}"));
        check("rename", of_call(moved), &format!("os.rename('D/f', 'program.m{mode}')"));
        check("rmdir", of_call(sandbox.remove(AGENT, &at("empty"), false)), "os.rmdir('D/empty')");
        let moved = sandbox.rename(AGENT, &dir, &format!("call.e{mode}"));
        check("own name", of_call(moved), &format!("os.rename('D', 'program.e{mode}')"));
    }
}
