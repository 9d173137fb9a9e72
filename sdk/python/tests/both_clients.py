"""Programs that need only what this package and the published client `agentfense` both offer.

Each takes the module as `sdk` and what it needs of the test as `at`: `at.server` are the options
that name the server, `at.project(files)` makes a directory. It gives the same with both.
"""

import asyncio
import subprocess
import sys
from datetime import timedelta

from projects import WEB

WAIT = timedelta(seconds=100)
SECONDS = 100

ALL = []
"""Every program, with what it gives as `expected`."""


def gives(expected):
    def registered(program):
        program.expected = expected
        ALL.append(program)
        return program

    return registered


TOP = sorted({name.split("/")[0] for name in WEB})

EXTENDED = [
    ("**/*", "read", 0),
    ("/output/**", "write", 10),
    ("/tmp/**", "write", 10),
    ("**/.env*", "none", 100),
    ("**/secrets/**", "none", 100),
    ("**/*.key", "none", 100),
    ("**/*.pem", "none", 100),
    ("**/credentials*", "none", 100),
    ("**/.git/**", "none", 50),
    ("/extra/**", "write", 0),
    ("/.env.example", "read", 200),
]


@gives([("main\n", 0), ("main.py\n", 0), ("", 1), ("", 2)])
def one_liner(sdk, at):
    files = {"main.py": "print('main')\n", ".env.local": "K=1\n", "secrets/k": "k\n"}
    with sdk.Sandbox.from_local(at.project(files), preset="agent-safe", **at.server) as sandbox:
        results = [sandbox.run(command) for command in
                   ("python3 main.py", "ls -A", "cat secrets/k", "echo x > main.py")]
    return [(result.stdout, result.exit_code) for result in results]


@gives(("\n".join(TOP) + "\n", 1, "cat: README.md: Permission denied\n"))
def default_preset(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), **at.server) as sandbox:
        listed, refused = sandbox.run("ls"), sandbox.run("cat README.md")
        return listed.stdout, refused.exit_code, refused.stderr


@gives(["a\n", "new\n", "/bin/sh: 1: cannot create a.txt: Permission denied\n",
        "cat: secrets/k: No such file or directory\n"])
def own_rules(sdk, at):
    files = {"a.txt": "a\n", "output/.keep": "", "secrets/k": "k\n"}
    with sdk.Sandbox.from_local(
            at.project(files),
            preset="read-only",
            permissions=[
                sdk.PermissionRule(pattern="/output/**", permission=sdk.Permission.WRITE),
                {"pattern": "/secrets/**", "permission": "none"},
            ],
            **at.server) as sandbox:
        commands = ("cat a.txt", "echo new > output/x && cat output/x", "echo new > a.txt",
                    "cat secrets/k")
        return [sandbox.run(command).output for command in commands]


@gives(({"memory_bytes": 64 << 20, "pids_limit": 50}, {"team": "web"}, 137))
def limits(sdk, at):
    with sdk.Sandbox.from_local(
            at.project(WEB), preset="read-only", labels={"team": "web"},
            resources=sdk.ResourceLimits(memory_bytes=64 << 20, pids_limit=50),
            **at.server) as sandbox:
        too_much = sandbox.run("python3 -c 'len(bytearray(400 << 20))'", timeout=SECONDS)
        return sandbox.info.resources.to_dict(), sandbox.info.labels, too_much.exit_code


@gives("./.gitignore\n./a.txt\n")
def ignored_files(sdk, at):
    files = {"a.txt": "a", "b.log": "b", "dist/c": "c", ".gitignore": "*.tmp\n", "d.tmp": "d",
             "node_modules/e/f.js": "f", ".env": "K=1"}
    with sdk.Sandbox.from_local(
            at.project(files), preset="read-only", ignore_patterns=["*.log", "dist/**"],
            **at.server) as sandbox:
        return sandbox.run("find . -type f | sort").stdout


@gives(([2, 0], len(WEB)))
def two_on_one_codebase(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        codebase = client.create_codebase(name="shared", owner_id="team")
        for path, content in sdk.walk_directory(at.project(WEB)):
            client.upload_file(codebase.id, path, content)
        said = []
        for preset in ("read-only", "development"):
            with sdk.Sandbox.from_codebase(
                    codebase.id, preset=preset, **at.server) as sandbox:
                said.append(sandbox.run("make deps test", timeout=SECONDS).exit_code)
        count = client.get_codebase(codebase.id).file_count
        client.delete_codebase(codebase.id)
        return said, count


@gives(("user\n# A web project\n", False))
def reconnect(sdk, at):
    sandbox_id = sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server).id
    sandbox = sdk.Sandbox.connect(sandbox_id, **at.server)
    said = sandbox.run("whoami && cat README.md").stdout
    sandbox.destroy(delete_codebase=True)
    with sdk.SandboxClient(**at.server) as client:
        left = [each.id for each in client.list_sandboxes()]
    return said, sandbox_id in left


@gives("# A web project\n")
def another_process(sdk, at):
    program = (f"import sys, {sdk.__name__} as sdk\n"
               "there = sdk.Sandbox.connect(sys.argv[1], endpoint=sys.argv[2])\n"
               "sys.stdout.write(there.run('cat README.md').stdout)\n")
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        return subprocess.run(
            [sys.executable, "-c", program, sandbox.id, at.server["endpoint"]],
            stdout=subprocess.PIPE, universal_newlines=True, timeout=SECONDS).stdout


@gives(["pending", "running", "stopped", "kept\n", "running"])
def life(sdk, at):
    with sdk.Sandbox.from_local(
            at.project(WEB), preset="full-access", auto_start=False, **at.server) as sandbox:
        seen = [sandbox.status.value]
        seen.append(sandbox.start().status.value)
        sandbox.run("echo kept > state.txt")
        seen.append(sandbox.stop().status.value)
        seen.append(sandbox.start().run("cat state.txt").stdout)
        seen.append(sandbox.refresh().status.value)
        return seen


@gives([0, ("echo why >&2; exit 4", 4, "why\n"), "out of time"])
def failures(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        said = []
        for command, limit in (("true", SECONDS), ("echo why >&2; exit 4", SECONDS),
                               ("sleep 600", 1)):
            try:
                said.append(sandbox.run(command, timeout=limit, raise_on_error=True).exit_code)
            except sdk.CommandTimeoutError:
                said.append("out of time")
            except sdk.CommandExecutionError as failed:
                said.append((failed.command, failed.exit_code, failed.stderr))
        return said


@gives(["refused", "refused", "invalid", "invalid"])
def refusals(sdk, at):
    """Those that both raise as the same class."""
    said = []
    for path, preset in (("no/such/directory", "read-only"), (at.project(WEB), "nonsense")):
        try:
            sdk.Sandbox.from_local(path, preset=preset, **at.server)
        except ValueError:
            said.append("refused")
    with sdk.SandboxClient(**at.server) as client:
        for wrong in (lambda: client.create_codebase(name="", owner_id="o"),
                      lambda: client.exec("sb_0", "")):
            try:
                wrong()
            except sdk.InvalidConfigurationError:
                said.append("invalid")
    return said


@gives(("a\n", b"\x00\xff", "b\n", ["a.txt", "b.txt", "c.bin", "d.txt"]))
def files(sdk, at):
    with sdk.Sandbox.from_local(
            at.project({"a.txt": "a\n"}), preset="full-access", **at.server) as sandbox:
        sandbox.write_file("/workspace/b.txt", "b\n")
        sandbox.write_file("c.bin", b"\x00\xff")
        sandbox.run("cat b.txt > d.txt")
        return (sandbox.read_file("/a.txt"), sandbox.read_file_bytes("/workspace/c.bin"),
                sandbox.read_file("d.txt"), sorted(sandbox.list_files(recursive=True)))


@gives(("in\n1\n/workspace/backend\n", "cat; echo $A; pwd", True, b"1\n2\n3\nend\n"))
def commands(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        given = sandbox.exec("cat; echo $A; pwd", stdin="in\n", env={"A": "1"},
                             workdir="/workspace/backend", timeout=WAIT)
        streamed = b"".join(sandbox.exec_stream("seq 3; echo end", timeout=WAIT))
        return given.stdout, given.command, isinstance(given.duration, timedelta), streamed


@gives((14, "3cd628ed451f2d8cd545022a2517e1d9", ["src/main.py"], "main\n", "/workspace/src\n", True,
        "stopped", b"print('main')\n"))
def by_hand(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        codebase = client.create_codebase(name="by-hand", owner_id="me")
        stored = client.upload_file(codebase.id, "src/main.py", b"print('main')\n")
        listed = [each.path for each in client.list_files(codebase.id, recursive=True)]
        info = client.create_sandbox(codebase.id, [{"pattern": "**/*", "permission": "read"}])
        client.start_sandbox(info.id)
        said = client.exec(info.id, "python3 src/main.py").stdout
        with client.session(info.id) as opened:
            opened.exec("cd src")
            where = client.session_exec(opened.id, "pwd").stdout
            known = client.get_session(opened.id).id in [
                each.id for each in client.list_sessions(info.id)]
        client.stop_sandbox(info.id)
        status = client.get_sandbox(info.id).status.value
        client.destroy_sandbox(info.id)
        content = client.download_file(codebase.id, "src/main.py")
        client.delete_codebase(codebase.id)
        return stored.size, stored.checksum, listed, said, where, known, status, content


@gives((EXTENDED, "a.txt\n"))
def presets(sdk, at):
    rules = sdk.extend_preset(
        "agent-safe", additions=[{"pattern": "/extra/**", "permission": "write"}],
        overrides=[{"pattern": "/.env.example", "permission": "read"}])
    sdk.register_preset("programs", [sdk.PermissionRule("/a.txt", sdk.Permission.READ)])
    with sdk.Sandbox.from_local(
            at.project({"a.txt": "a\n", "b.txt": "b\n"}), preset="programs",
            **at.server) as sandbox:
        seen = sandbox.run("ls").stdout
    return [(rule.pattern, rule.permission.value, int(rule.priority)) for rule in rules], seen


@gives([f"project {n}\n" for n in range(10)])
def ten_at_once(sdk, at):
    paths = [at.project({"Makefile": f"test:\n\t@echo project {n}\n"}) for n in range(10)]

    async def one(path):
        async with await sdk.AsyncSandbox.from_local(
                path, preset="read-only", **at.server) as sandbox:
            return (await sandbox.run("make test", timeout=SECONDS)).stdout

    async def main():
        return await asyncio.gather(*map(one, paths))

    return asyncio.run(main())
