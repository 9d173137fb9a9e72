"""What is wrong with a call is said in a sentence, and nothing is left of what it began."""

import pytest
import ringfence
from ringfence import InvalidConfigurationError, ResourceLimits, RuntimeType, Sandbox, SandboxClient

import complaints

LONG = "x" * 1_000_000
HALF = "\udc80"
"""Half of a character, as it comes from a name of a file that is no text."""


def refused(call, match, kind=InvalidConfigurationError):
    with pytest.raises(ringfence.SandboxError, match=match) as caught:
        call()
    assert type(caught.value) is kind
    complaints.assert_helpful(caught.value)


def rule(**fields):
    return {"permissions": [{"pattern": "/a", **fields}]}


MAKING = [
    ("a preset that is close to one", {"preset": "agent-save"}, "agent-safe, development"),
    ("a preset that is a number", {"preset": 5}, "there is no preset 5"),
    ("a preset without end", {"preset": LONG}, "there is no preset"),
    ("a level that is none", rule(permission="execute"), "none, view, read, write"),
    ("a type that is none", rule(type="regex"), "glob, directory, file"),
    ("a priority that is none", rule(priority="high"), "number"),
    ("a key that is none", rule(level="read"), "'level'"),
    ("a rule without a pattern", {"permissions": [{"permission": "read"}]}, "needs a pattern"),
    ("a rule with an empty pattern", rule(pattern=""), "needs a pattern"),
    ("a rule that is a text", {"permissions": ["/a"]}, "not a rule"),
    ("rules that are a text", {"permissions": "/a"}, "list"),
    ("a glob that is not closed", rule(pattern="**/[ab"), r"\[ab"),
    ("a pattern with NUL", rule(pattern="a\0b"), "NUL"),
    ("a pattern that is no text", rule(pattern=HALF), "udc80"),
    ("a pattern without end", rule(pattern=LONG), "longer than 4096"),
    ("an unknown network", {"network": "internet"}, "none, host or bridge"),
    ("an unknown runtime", {"runtime": "podman"}, "bwrap or docker"),
    ("an image without Docker", {"image": "debian"}, "takes no image"),
    ("Docker without an image", {"runtime": RuntimeType.DOCKER}, "needs an image"),
    ("a bridge without Docker", {"network": "bridge"}, "docker"),
    ("no memory", {"resources": ResourceLimits(memory_bytes=0)}, "memory_bytes"),
    ("processes in words", {"resources": ResourceLimits(pids_limit="many")}, "pids_limit"),
    ("an expiry in the past", {"expires_in": -1}, "expiry"),
    ("one pattern instead of a list", {"ignore_patterns": "*.o"}, "list of patterns"),
    ("an ignore pattern that is none", {"ignore_patterns": [5]}, "ignore pattern"),
    ("labels that are a list", {"labels": ["a"]}, "labels"),
    ("a label that is a number", {"labels": {"a": 5}}, "labels"),
    ("a label that is no text", {"labels": {"a": HALF}}, "labels"),
    ("a variable that is a number", {"env": {"A": 5}}, "'A'"),
    ("an environment that is a list", {"env": ["A=b"]}, "dictionary"),
    ("a name that is no text", {"codebase_name": HALF}, "name"),
    ("a name without end", {"codebase_name": LONG}, "1,000,000 characters"),
    ("an owner that is no text", {"owner_id": HALF}, "owner"),
    ("an owner without end", {"owner_id": LONG}, "1,000,000 characters"),
]


@pytest.mark.parametrize("options, match", [pytest.param(*case, id=name) for name, *case in MAKING])
def test_a_sandbox_is_not_made_of_it(where, project, options, match):
    with complaints.nothing_made(where):
        refused(lambda: Sandbox.from_local(project, **where.options, **options), match)


@pytest.mark.parametrize("path, match", [
    pytest.param("no/such/directory", "there is no directory", id="missing"),
    pytest.param(__file__, "is not a directory", id="a file"),
    pytest.param("", "not a path", id="empty"),
    pytest.param(None, "not a path", id="nothing"),
    pytest.param(b"/tmp", "not a path", id="bytes"),
    pytest.param("a\0b", r"a\\x00b", id="NUL"),
    pytest.param(HALF, "udc80", id="no text"),
    pytest.param(LONG, "there is no directory x", id="without end"),
])
def test_what_is_no_directory_is_refused(where, path, match):
    with complaints.nothing_made(where):
        refused(lambda: Sandbox.from_local(path, **where.options), match)


def test_a_runtime_that_the_host_lacks_is_named(where, project):
    with complaints.nothing_made(where):
        refused(lambda: Sandbox.from_local(
            project, runtime=RuntimeType.DOCKER, image="debian", **where.options),
            "docker", ringfence.UnsupportedError)


def test_directories_of_the_host_are_for_its_own_user_only(tls_server, project):
    with complaints.nothing_made(tls_server):
        refused(lambda: Sandbox.from_local(project, upload=False, **tls_server.options), "upload")
        refused(lambda: Sandbox.from_local(
            project, read_only_paths=["/usr"], **tls_server.options), "Unix socket")


@pytest.fixture(scope="module")
def stages(tls_server, tmp_path_factory):
    """One sandbox for each server, which every call here leaves as it is."""
    made = {}

    def stage(where):
        if where.name not in made:
            root = tmp_path_factory.mktemp("stage")
            (root / "hello.txt").write_text("hello\n")
            made[where.name] = Sandbox.from_local(root, preset="full-access", **where.options)
        return made[where.name]

    yield stage
    for sandbox in made.values():
        sandbox.destroy()


def run(command="true", **options):
    return lambda sandbox: sandbox.run(command, **options)


WORK = [
    ("an empty command", run(""), "command is required"),
    ("a command with NUL", run("a\0b"), "NUL"),
    ("a command that is no text", run(HALF), "command"),
    ("a command that is a list", run(["ls"]), "command"),
    ("no time", run(timeout=0), "timeout"),
    ("less than no time", run(timeout=-1), "timeout"),
    ("a time in words", run(timeout="5"), "timeout"),
    ("a time that is no number", run(timeout=float("nan")), "timeout"),
    ("a time that is a truth", run(timeout=True), "timeout"),
    ("a variable that is a number", run(env={"A": 5}), "'A': 5"),
    ("a variable that is nothing", run(env={"A": None}), "'A': None"),
    ("a variable called by a number", run(env={5: "A"}), "5: 'A'"),
    ("a variable without a name", run(env={"": "x"}), "name for a variable"),
    ("a variable with NUL", run(env={"A": "a\0b"}), "NUL"),
    ("a variable that is no text", run(env={"A": HALF}), "env"),
    ("a directory with NUL", run(workdir="a\0b"), "NUL"),
    ("a directory that is no text", run(workdir=HALF), "workdir"),
    ("a directory without end", run(workdir=LONG), "1,000,000 characters"),
    ("an input that is a number", run(stdin=5), "input"),
    ("an input that is no text", run(stdin=HALF), "input"),
    ("a stream of nothing", lambda sandbox: list(sandbox.exec_stream("")), "command"),
    ("a stream in no time", lambda sandbox: sandbox.exec_stream("true", timeout=0), "timeout"),
    ("a session with a name of two lines", lambda sandbox: sandbox.session(name="a\nb"), "name"),
    ("a session without end", lambda sandbox: sandbox.session(name=LONG), "1,000,000"),
    ("a shell with NUL", lambda sandbox: sandbox.session(shell="a\0b"), "NUL"),
    ("an empty process", lambda sandbox: sandbox.start_process(""), "command"),
    ("a process that is no name", lambda sandbox: sandbox.start_process("true", name="a/b"), "id"),
    ("a terminal of no size", lambda sandbox: sandbox.terminal(cols=-1), "columns"),
    ("a snapshot without end", lambda sandbox: sandbox.snapshot(LONG), "1,000,000"),
    ("a view that is none", lambda sandbox: sandbox.read_file("a", view="root"), "owner or agent"),
    ("a way out", lambda sandbox: sandbox.read_file("../../etc/passwd"), r"\.\."),
    ("a file with NUL", lambda sandbox: sandbox.read_file("a\0b"), "NUL"),
    ("a file that is no text", lambda sandbox: sandbox.read_file(HALF), "path"),
    ("a file without end", lambda sandbox: sandbox.read_file(LONG), "1,000,000"),
    ("a file that is a number", lambda sandbox: sandbox.read_file(5), "path cannot be 5"),
    ("a directory as a file", lambda sandbox: sandbox.read_file("/"), "directory"),
    ("a file as a directory", lambda sandbox: sandbox.list_files("hello.txt"), "directory"),
    ("writing to no text", lambda sandbox: sandbox.write_file(HALF, "x"), "path"),
    ("writing without end", lambda sandbox: sandbox.write_file(LONG, "x"), "1,000,000"),
    ("writing what is no text", lambda sandbox: sandbox.write_file("a", HALF), "content"),
    ("writing a number", lambda sandbox: sandbox.write_file("a", 5), "content"),
    ("writing the root", lambda sandbox: sandbox.write_file("/", "x"), "path"),
    ("a name that is no text", lambda sandbox: sandbox.rename("hello.txt", HALF), "to"),
    ("the name of no text", lambda sandbox: sandbox.rename(HALF, "a"), "start from"),
    ("a link to NUL", lambda sandbox: sandbox.symlink("a", "b\0"), "zero byte"),
    ("a policy of nonsense", lambda sandbox: sandbox.set_policy("nonsense"), "agent-safe"),
    ("explaining no text", lambda sandbox: sandbox.explain(HALF), "paths"),
    ("a signal that is none", lambda sandbox: sandbox.start_process("true").kill("SIGNO"), "SIGNO"),
]


@pytest.mark.parametrize("call, match", [pytest.param(*case, id=name) for name, *case in WORK])
def test_a_sandbox_does_not_do_it(where, stages, call, match):
    sandbox = stages(where)
    with complaints.nothing_made(where):
        refused(lambda: call(sandbox), match)
        assert sandbox.changes() == []
        assert (sandbox.sessions(), sandbox.terminals(), sandbox.snapshots()) == ([], [], [])


@pytest.mark.parametrize("name", ["", "a\0b", "sb_../../etc", "é" * 100], ids=repr)
def test_an_id_that_is_none_is_not_found(where, name):
    for call, kind in ((Sandbox.connect, ringfence.SandboxNotFoundError),
                       (Sandbox.from_codebase, ringfence.CodebaseNotFoundError)):
        with pytest.raises((InvalidConfigurationError, kind)) as caught:
            call(name, **where.options)
        complaints.assert_helpful(caught.value)


@pytest.mark.parametrize("name", [HALF, LONG, 5], ids=["no text", "without end", "a number"])
def test_an_id_that_cannot_be_sent_is_refused(where, name):
    refused(lambda: Sandbox.connect(name, **where.options), "sandbox id")
    refused(lambda: Sandbox.from_codebase(name, **where.options), "codebase id")


def test_long_commands_and_inputs_are_not_held_against_anybody(where, stages):
    sandbox = stages(where)
    assert sandbox.run(f"true {LONG}").exit_code == 0
    assert sandbox.exec("wc -c", stdin=LONG).stdout.split() == ["1000000"]


def test_a_codebase_takes_no_names_that_lead_out(where):
    with complaints.nothing_made(where), SandboxClient(**where.options) as client:
        codebase = client.create_codebase("names", "tests")
        try:
            for name in ("../x", "/../x", "a/../../x", "", "a\0b", HALF, LONG):
                refused(lambda: client.upload_file(codebase.id, name, b"x"), "path")
            assert client.list_files(codebase.id) == []
        finally:
            client.delete_codebase(codebase.id)
