"""Files that only look large: they cost what they hold, and limits hold for them too."""

import pytest

from server import Server
from wire import refused, v1

GIB = 1 << 30


@pytest.fixture(scope="module")
def strict():
    with Server("--max-file-size", 1_000_000) as running:
        yield running


def made_inside(client, command):
    codebase = client.new_codebase(hello_txt=b"hello\n")
    sandbox = client.new_sandbox(codebase)
    assert client.run(sandbox, command).exit_code == 0
    return codebase, sandbox


@pytest.mark.parametrize("command", ["head -c 2000000 /dev/urandom > large", "truncate -s 1G large"])
def test_the_limit_for_a_file_holds_for_apply(strict, command):
    """As for UploadFiles and WriteFile."""
    with strict.client() as client:
        codebase, sandbox = made_inside(client, command)
        try:
            with refused() as how:
                client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
            assert (how.code, how.details["limit"]) == ("RESOURCE_LIMIT_EXCEEDED", "max_file_size")
        finally:
            client.destroy_all()
        assert client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase)).file_count == 1


@pytest.mark.parametrize("limit", ["--max-codebase-size", "--max-storage"])
def test_other_limits_hold_for_apply(limit):
    with Server(limit, 1_000_000) as server, server.client() as client:
        codebase, sandbox = made_inside(client, "head -c 2000000 /dev/urandom > large")
        with refused() as how:
            client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
        assert how.code == "RESOURCE_LIMIT_EXCEEDED"
        assert client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase)).file_count == 1


def test_a_hole_is_applied_as_a_hole(server, client):
    """Two gibibytes of nothing take no place in the codebase."""
    codebase, sandbox = made_inside(client, "truncate -s 2G hole")
    client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
    client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
    found = client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase))
    assert found.size == 2 * GIB + 6
    place = server.state / "server" / "codebases" / codebase
    blocks = sum(each.stat().st_blocks for each in place.rglob("hole"))
    assert blocks * 512 < 1 << 20
    client.codebase.DeleteCodebase(v1.DeleteCodebaseRequest(codebase_id=codebase))
