"""The same sandbox in any image."""

import io
import json
import os
import tarfile

import grpc
import pytest

from engine import name_of, tree_of
from wire import refused, v1

CODE = grpc.StatusCode
DOCKER = {"runtime": v1.RUNTIME_TYPE_DOCKER}


@pytest.fixture
def made(client, codebase):
    """Makes a sandbox in an image."""
    def make(image="full", **fields):
        return client.new_sandbox(codebase, image=name_of(image), **DOCKER, **fields)

    return make


def test_a_command_sees_the_workspace_and_the_image(client, made):
    box = made()
    shown = client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=box))
    assert (shown.runtime, shown.image) == (v1.RUNTIME_TYPE_DOCKER, name_of("full"))
    said = client.run(box, "cat hello.txt; echo new > new; ls; pwd; whoami; test ! -e /usr/games; echo $HOME")
    assert said.stdout.split() == ["hello", "hello.txt", "new", "/workspace", "user", "/home/user"]
    changes = client.workspace.Changes(v1.ChangesRequest(sandbox_id=box)).changes
    assert [change.path for change in changes] == ["/new"]


def test_rules_hold(client, codebase):
    rules = [v1.PermissionRule(pattern="**/*", permission=v1.PERMISSION_READ),
             v1.PermissionRule(pattern="**/hello.txt", permission=v1.PERMISSION_NONE, priority=10)]
    asked = v1.CreateSandboxRequest(
        codebase_id=codebase, permissions=rules, start=True, image=name_of("full"), **DOCKER)
    box = client.sandbox.CreateSandbox(asked).id
    done = client.run(box, "cat hello.txt; echo x > new")
    assert done.exit_code != 0 and "No such file" in done.stderr and "ermission denied" in done.stderr


def test_nothing_is_privileged(client, made):
    box = made()
    status = client.run(box, "cat /proc/self/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert {fields[name].strip("0\n") for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {""}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert fields["Uid"].split()[0] != "0"
    for place in ("/", "/usr", "/etc", "/bin", "/opt", "/run/ringfence/link", "/sys", "/dev"):
        assert client.run(box, f"touch {place}/x").exit_code != 0, place
    for place in ("/tmp", "/var/tmp", "/home/user", "/run", "/dev/shm", "/workspace"):
        assert client.run(box, f"touch {place}/x").exit_code == 0, place
    assert client.run(box, "ls /run/ringfence/link").stdout == ""
    interfaces = client.run(box, "cat /proc/net/dev").stdout
    assert [line.split(":")[0].strip() for line in interfaces.splitlines()[2:]] == ["lo"]


def test_volumes_of_an_image_go_with_the_container(client, codebase, engine):
    engine.load("busybox", "ringfence-test-volume:1", ["VOLUME /var/data", "VOLUME /workspace", "VOLUME /run/ringfence/link"])
    box = client.new_sandbox(codebase, image="ringfence-test-volume:1", **DOCKER)
    assert client.run(box, "cat hello.txt; ls -A /run/ringfence/link").stdout == "hello\n"
    client.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=box))
    assert not json.loads(engine.ask("GET", "/volumes")[1])["Volumes"]


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/etc", "/run", "/home"])
def test_links_of_an_image_lead_nowhere_else(client, codebase, engine, place, tmp_path):
    (tmp_path / "secret").write_text("secret\n")
    name = f"ringfence-test-link{place.replace('/', '-')}:1"
    engine.load_tree(name, with_link("busybox", place, f"../../../../../..{tmp_path}"))
    try:
        box = client.new_sandbox(codebase, image=name, **DOCKER)
    except grpc.RpcError as error:
        assert error.code() == CODE.FAILED_PRECONDITION, error
    else:
        said = client.run(box, f"cat hello.txt {place}/secret; echo x > {place}/new")
        assert said.stdout == "hello\n", said
    assert os.listdir(tmp_path) == ["secret"] and (tmp_path / "secret").read_text() == "secret\n"


def with_link(image, place, target):
    """The tree of an image in which a directory is a link."""
    made, old = io.BytesIO(), tarfile.open(fileobj=io.BytesIO(tree_of(image)))
    with tarfile.open(fileobj=made, mode="w") as new:
        link = tarfile.TarInfo(place.lstrip("/"))
        link.type, link.linkname = tarfile.SYMTYPE, target
        new.addfile(link)
        for entry in old:
            if not f"/{entry.name}/".startswith(f"{place}/"):
                new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
    return made.getvalue()


@pytest.mark.parametrize("image", ["empty", "musl"])
def test_an_image_with_one_program_runs_that(client, made, image):
    box = made(image)
    done = client.sandbox.Exec(v1.ExecRequest(sandbox_id=box, argv=[b"/say", b"it", b"runs"]))
    assert (done.stdout, done.exit_code) == ("it\nruns\n", 0), done
    done = client.run(box, "echo never")
    assert done.exit_code == 127 and "/bin/sh" in done.stderr
    with refused() as how:
        client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=box))
    assert how.status == CODE.INVALID_ARGUMENT and "there is no shell" in how.message


def test_a_session_in_busybox_keeps_its_state(client, made):
    box = made("busybox")
    session = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=box)).id

    def run(command):
        return client.sandbox.SessionExec(v1.SessionExecRequest(session_id=session, command=command))

    run("cd /tmp; x=1; sleep 1000 &")
    assert run("echo $x; pwd; jobs").stdout.split()[:2] == ["1", "/tmp"]
    assert run("exit 3").exit_code == 3


def test_bad_input_is_named_and_leaves_nothing(client, codebase, engine):
    def create(**fields):
        with refused() as how:
            client.new_sandbox(codebase, **fields)
        assert not client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
        assert engine.containers() == {}
        return how

    how = create(**DOCKER)
    assert how.status == CODE.INVALID_ARGUMENT and "image" in how.message
    how = create(image="full")
    assert how.status == CODE.INVALID_ARGUMENT
    for name in ("", " ", "-x", "a b", "../x", "x" * 600, "a\nb"):
        how = create(image=name, **DOCKER)
        assert how.status == CODE.INVALID_ARGUMENT, name
    how = create(image="ringfence-test-none:1", **DOCKER)
    assert how.status == CODE.FAILED_PRECONDITION and "ringfence-test-none:1" in how.message, how.message
    engine.load_foreign("ringfence-test-other:1", "s390x")
    how = create(image="ringfence-test-other:1", **DOCKER)
    assert how.status == CODE.FAILED_PRECONDITION and "linux/s390x" in how.message, how.message
    how = create(image=name_of("full"), resources=v1.ResourceLimits(memory_bytes=5 << 20), **DOCKER)
    assert how.status == CODE.FAILED_PRECONDITION and "emory" in how.message, how.message
    how = create(image=name_of("full"), network=v1.NETWORK_MODE_BRIDGE, runtime=v1.RUNTIME_TYPE_BWRAP)
    assert how.status == CODE.INVALID_ARGUMENT
