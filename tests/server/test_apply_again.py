"""Who applies, works on and applies again finds in the codebase what is in the workspace."""

import pytest

from wire import refused, v1


def tree(client, codebase):
    files = client.codebase.ListFiles(v1.ListFilesRequest(codebase_id=codebase, recursive=True)).files
    return {each.full_path: each.target or client.download(codebase, each.full_path) for each in files}


@pytest.mark.parametrize("first, then, expected", [
    ("echo a > f", "echo b > f", {"/f": b"b\n"}),
    ("rm hello.txt", "true", {}),
    ("chmod 755 hello.txt", "echo b > hello.txt", {"/hello.txt": b"b\n"}),
    ("mv hello.txt moved", "echo b > moved", {"/moved": b"b\n"}),
    ("ln -s x link", "true", {"/link": "x"}),
    ("rm hello.txt", "echo b > hello.txt", {"/hello.txt": b"b\n"}),
    ("mv hello.txt moved", "mv moved again", {"/again": b"hello\n"}),
    ("ln -s x link", "ln -sfn y link", {"/link": "y"}),
    ("ln -s x f", "rm f; echo b > f", {"/f": b"b\n"}),
    ("ln -s x d", "rm d; mkdir d; echo b > d/f", {"/d/f": b"b\n"}),
    ("mkdir d; echo a > d/f", "rm -r d; echo b > d", {"/d": b"b\n"}),
    ("echo a > f", "rm f", {}),
    ("ln -s x link", "rm link", {}),
    ("mkdir d; echo a > d/f", "mv d e", {"/e/f": b"a\n"}),
])
def test_a_second_apply_of_the_same_sandbox(client, first, then, expected):
    codebase = client.new_codebase(hello_txt=b"hello\n")
    sandbox = client.new_sandbox(codebase)
    try:
        for command in (first, then):
            assert client.run(sandbox, command).exit_code == 0
            client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
    finally:
        client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
    found = tree(client, codebase)
    if "hello.txt" not in first:
        assert found.pop("/hello.txt") == b"hello\n"
    assert found == expected


def test_the_work_of_others_is_neither_taken_back_nor_written_over(client):
    codebase = client.new_codebase(hello_txt=b"hello\n")
    # Two have been started, so uploads go to what is stored.
    sandbox, other = client.new_sandbox(codebase), client.new_sandbox(codebase)
    try:
        client.run(sandbox, "echo a > f; echo a > g")
        client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
        client.upload(codebase, "f", b"theirs\n")
        client.run(sandbox, "echo b > f; rm g")
        with refused() as how:
            client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
        assert (how.code, how.details["paths"]) == ("APPLY_CONFLICT", "/f")
        assert tree(client, codebase) == {
            "/hello.txt": b"hello\n", "/f": b"theirs\n", "/g": b"a\n"}
        client.run(sandbox, "rm f")
        client.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox))
        assert tree(client, codebase) == {"/hello.txt": b"hello\n", "/f": b"theirs\n"}
    finally:
        for each in (sandbox, other):
            client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=each))
