"""The client's presets and tools, and what the presets mean inside a sandbox."""

import agentfense
import pytest
from agentfense import Permission, PermissionRule

from covers import covers

FILES = {
    "app.py": "print('app')\n",
    "conf/.env.local": "SECRET=1\n",
    "secrets/token": "t\n",
    "deep/down/secrets/more/token": "t\n",
    "server.key": "k\n",
    "cert.pem": "p\n",
    "credentials.json": "{}\n",
}
HIDDEN = sorted(set(FILES) - {"app.py"})


@covers("list_presets", "get_preset", "get_preset_dicts")
def test_the_presets_are_the_five_known_ones():
    assert agentfense.list_presets() == [
        "agent-safe",
        "development",
        "full-access",
        "read-only",
        "view-only",
    ]
    for name in agentfense.list_presets():
        rules = [rule.to_dict() for rule in agentfense.get_preset(name)]
        plain = agentfense.get_preset_dicts(name)
        assert [(r["pattern"], r["permission"], str(r["priority"])) for r in rules] == [
            (r["pattern"], r["permission"], r["priority"]) for r in plain
        ]
    with pytest.raises(ValueError, match="nonsense"):
        agentfense.get_preset("nonsense")


def attempt(sandbox, path):
    """What code inside can do with a file: the words of the kernel, or nothing if it worked."""
    script = (
        f"ls '{path}' >/dev/null && printf seen, || printf absent,;"
        f"cat '{path}' >/dev/null && printf read, || printf -- -,;"
        f"echo more >> '{path}' && printf written || printf -- -"
    )
    return sandbox.run(f"exec 2>/dev/null; {script}").stdout


SEEN, READ, WRITTEN, ABSENT = "seen,-,-", "seen,read,-", "seen,read,written", "absent,-,-"


@pytest.mark.parametrize(
    ("preset", "app", "hidden"),
    [
        ("view-only", SEEN, SEEN),
        ("read-only", READ, READ),
        ("full-access", WRITTEN, WRITTEN),
        ("development", WRITTEN, ABSENT),
        ("agent-safe", READ, ABSENT),
    ],
)
def test_a_preset_means_inside_what_it_says(open_sandbox, preset, app, hidden):
    sandbox = open_sandbox(FILES, preset=preset)
    assert attempt(sandbox, "app.py") == app
    # Only `agent-safe` knows of credentials.
    names = [name for name in HIDDEN if preset != "development" or "credentials" not in name]
    assert {name: attempt(sandbox, name) for name in names} == dict.fromkeys(names, hidden)


def test_agent_safe_lets_the_agent_make_its_output_directory(open_sandbox):
    sandbox = open_sandbox(FILES, preset="agent-safe")
    result = sandbox.run(
        "mkdir -p output tmp && echo r > output/r.txt && echo t > tmp/t && cat output/r.txt"
    )
    assert (result.stdout, result.exit_code) == ("r\n", 0)
    refused = sandbox.run("mkdir other")
    assert refused.exit_code != 0 and "Permission denied" in refused.stderr


@covers("extend_preset")
def test_an_extended_preset_is_obeyed(client, codebase):
    client.upload_file(codebase.id, ".env", b"A=1\n")
    client.upload_file(codebase.id, "logs/a.log", b"log\n")
    rules = agentfense.extend_preset(
        "agent-safe",
        additions=[{"pattern": "/logs/**", "permission": "write"}],
        overrides=[PermissionRule(pattern="/.env", permission=Permission.READ)],
    )
    assert len(rules) == 11 and rules[-1].priority == 200
    sandbox = client.create_sandbox(codebase.id, permissions=rules)
    client.start_sandbox(sandbox.id)
    result = client.exec(sandbox.id, "cat .env; echo more >> logs/a.log; cat logs/a.log")
    assert (result.stdout, result.stderr) == ("A=1\nlog\nmore\n", "")


@covers("register_preset")
def test_a_preset_of_ones_own_is_obeyed(open_sandbox, monkeypatch):
    monkeypatch.setattr(agentfense.presets, "PRESETS", dict(agentfense.PRESETS))
    agentfense.register_preset("notes", [{"pattern": "/notes/**", "permission": "read"}])
    sandbox = open_sandbox({"notes/a.txt": "a\n", "other.txt": "o\n"}, preset="notes")
    assert sandbox.run("ls; cat notes/a.txt").stdout == "notes\na\n"
    with pytest.raises(ValueError, match="already exists"):
        agentfense.register_preset("read-only", [])


def test_a_users_rule_beats_the_preset_it_extends(open_sandbox):
    rule = PermissionRule(pattern="**/*", permission=Permission.READ)
    sandbox = open_sandbox({"a.txt": "a\n"}, preset="view-only", permissions=[rule])
    assert sandbox.run("cat a.txt").stdout == "a\n"


def test_without_rules_everything_is_hidden(client, codebase):
    client.upload_file(codebase.id, "a.txt", b"a\n")
    sandbox = client.create_sandbox(codebase.id)
    client.start_sandbox(sandbox.id)
    assert client.exec(sandbox.id, "ls -A").stdout == ""


@covers("walk_directory", "count_files", "parse_ignore_file")
def test_what_the_client_finds_is_what_the_sandbox_has(open_sandbox, make_project):
    files = {
        "keep.py": "1\n",
        "drop.log": "2\n",
        "sub/drop.log": "3\n",
        "node_modules/x.js": "4\n",
        ".gitignore": "# logs\n*.log\n",
    }
    path = make_project(files)
    assert agentfense.parse_ignore_file(f"{path}/.gitignore") == ["*.log"]
    found = dict(agentfense.walk_directory(path))
    assert sorted(found) == [".gitignore", "keep.py"]
    assert agentfense.count_files(path) == (2, sum(map(len, found.values())))
    assert open_sandbox(files).list_files(recursive=True) == sorted(found)


@covers("generate_codebase_name", "generate_owner_id", "human_readable_size")
def test_names_that_the_client_makes_up_are_accepted(open_sandbox, make_project, client):
    sandbox = open_sandbox({"a": "a"})
    assert (
        sandbox.codebase.name
        == agentfense.generate_codebase_name(make_project({"a": "a"}, "project"))[:7]
    )
    assert sandbox.codebase.owner_id == agentfense.generate_owner_id()
    size = client.get_codebase(sandbox.codebase_id).size
    assert agentfense.human_readable_size(size) == "1.0 B"
