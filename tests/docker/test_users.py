"""Who one is in an image: nobody else, or whom the image names."""

import os

import grpc
import pytest

from engine import name_of
from server import Server
from wire import Client, refused, v1

CODE = grpc.StatusCode
DOCKER = {"runtime": v1.RUNTIME_TYPE_DOCKER}

NAMED = {
    "app": ("1234", "2345", "2345 3456", "app"),
    "1234": ("1234", "2345", "2345 3456", "app"),
    "app:0": ("1234", "0", "0", "app"),
    "4321:5432": ("4321", "5432", "5432", "user"),
    "": ("0", "0", "0", "root"),
}
"""What `USER` of an image means: the number of the user, of the group, of all groups, and the name."""


@pytest.fixture(scope="module")
def image(engine):
    """An image that names a user."""
    def make(user):
        name = f"ringfence-test-user-{user.replace(':', '-') or 'none'}:1"
        engine.load("busybox", name, [f"USER {user}"] if user else [])
        return name

    return make


@pytest.mark.parametrize("user", NAMED, ids=lambda user: user or "nobody")
def test_the_user_of_the_image_is_used_when_asked_for(client, codebase, image, user):
    uid, gid, groups, name = NAMED[user]
    box = client.new_sandbox(codebase, image=image(user), image_user=True, **DOCKER)
    shown = client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=box))
    assert shown.image_user and shown.confinement.uid == int(uid)
    said = client.run(box, "id -u; id -g; id -G; id -un; echo x > new; stat -c %u:%g new hello.txt; echo x > ~/x;"
                           " echo x > /tmp/x; cat ~/x /tmp/x; grep Cap /proc/self/status | sort -u -k 2")
    lines = said.stdout.splitlines()
    assert lines[:3] == [uid, gid, groups] and said.stderr == "", said
    assert lines[3] == name
    assert lines[4:8] == [f"{uid}:{gid}"] * 2 + ["x"] * 2
    # Nothing can be done with it, not even as root.
    assert [line.split()[1] for line in lines[8:]] == ["0" * 16]
    for place in ("/", "/bin", "/etc", "/proc/sys/kernel", "/sys", "/run/ringfence/link"):
        assert client.run(box, f"touch {place}/x").exit_code != 0, place
    for refused_command in ("echo x > /proc/sys/kernel/hostname", "mount -t tmpfs x /tmp", "chown 1:1 new",
                            "echo b > /proc/sysrq-trigger", "unshare -U true", "mknod /tmp/d c 1 3"):
        assert client.run(box, refused_command).exit_code != 0, refused_command


def test_processes_are_counted_even_those_of_root(client, codebase, image):
    for user in ("", "app"):
        box = client.new_sandbox(codebase, image=image(user), image_user=True, **DOCKER)
        shown = client.run(box, "cat /proc/self/cgroup").stdout
        group = next(line.split(":")[2] for line in shown.splitlines() if ":pids:" in line or line.startswith("0::"))
        found = [place for place in (f"/sys/fs/cgroup/pids{group}", f"/sys/fs/cgroup{group}")
                 if os.path.exists(f"{place}/pids.max")]
        above = found[0][:found[0].index(box) + len(box)]
        assert int(open(f"{above}/pids.max").read()) < 10_000


def test_variables_fit_to_the_user(client, codebase, image):
    box = client.new_sandbox(codebase, image=image("app"), image_user=True, **DOCKER)
    assert client.run(box, "echo $USER $HOME").stdout == "app /home/user\n"


def test_what_is_kept_is_given_to_whom_it_is_next(client, codebase, image):
    box = client.new_sandbox(codebase, image=image("app"), image_user=True, **DOCKER)
    client.run(box, "echo kept | tee ~/kept > /tmp/kept; chmod 600 ~/kept /tmp/kept")
    client.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=box))
    client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=box))
    assert client.run(box, "cat ~/kept /tmp/kept").stdout == "kept\n" * 2
    fork = client.workspace.ForkSandbox(v1.ForkSandboxRequest(sandbox_id=box)).id
    client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=fork))
    assert client.run(fork, "id -u").stdout == "1234\n"


def test_otherwise_it_is_somebody_that_nobody_else_is(client, codebase, image):
    boxes = [client.new_sandbox(codebase, image=image("app"), **DOCKER) for _ in range(2)]
    users = {client.run(box, "id -u").stdout for box in boxes}
    assert len(users) == 2 and not users & {"0\n", "1234\n"}


def test_root_does_not_get_the_network_of_the_host(image):
    host = dict(image_user=True, network=v1.NETWORK_MODE_HOST, **DOCKER)
    with Server("--require-token") as server, Client(server.unix) as client:
        codebase = client.new_codebase(hello_txt=b"hello\n")
        with refused() as how:
            client.new_sandbox(codebase, image=image(""), **host)
        assert how.status == CODE.FAILED_PRECONDITION and "root" in how.message
        box = client.new_sandbox(codebase, image=image("app"), **host)
        assert client.run(box, "id -u").stdout == "1234\n"
        client.destroy_all()


def test_it_needs_an_image(client, codebase):
    with refused() as how:
        client.new_sandbox(codebase, image_user=True)
    assert how.status == CODE.INVALID_ARGUMENT and "image_user" in how.message


def test_a_user_that_the_image_does_not_know_is_said(client, codebase, image, engine):
    with refused() as how:
        client.new_sandbox(codebase, image=image("stranger"), image_user=True, **DOCKER)
    assert how.status == CODE.FAILED_PRECONDITION and "stranger" in how.message
    assert engine.containers() == {}
    assert client.run(client.new_sandbox(codebase, image=name_of("busybox"), **DOCKER), "true").exit_code == 0
