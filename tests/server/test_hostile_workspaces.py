"""What an agent plants in its workspace never leads a call out of it."""

import threading

import grpc
import pytest

from hostile import Canary, Prober, links, plant, swapped
from in_image import RUNTIME
from rest import Rest
from server import Server
from waiting import until
from wire import Client, v1


@pytest.fixture(scope="module")
def trapped():
    """A server of its own: it must live to the end."""
    with Server() as running:
        yield running
        assert "panicked" not in running.log.read_text()


@pytest.fixture
def local(trapped):
    """Who may name directories of the host."""
    with Client(trapped.unix) as client:
        yield client
        client.destroy_all()
        assert Rest(trapped.endpoint).raw("GET", "/healthz")[0] == 200


@pytest.fixture
def canary(tmp_path):
    made = Canary(tmp_path / "outside")
    yield made
    made.assert_untouched()


@pytest.fixture(params=["stored", "in place"] if RUNTIME == "bwrap" else ["stored"])
def codebase(request, local, tmp_path):
    if request.param == "stored":
        return local.new_codebase(hello_txt=b"hello\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "hello.txt").write_text("hello\n")
    asked = v1.CreateCodebaseRequest(name="work", owner_id="tests", local_path=str(work))
    return local.codebase.CreateCodebase(asked).id


@pytest.fixture
def agent(local, codebase):
    return local.new_sandbox(codebase)


@pytest.fixture
def prober(local, canary, agent, codebase):
    return Prober(local, canary, agent, codebase)


@pytest.fixture(params=["running", "stopped"])
def state(request, local, agent):
    """Called when everything has been planted."""
    def settle():
        if request.param == "stopped":
            local.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=agent))

    return settle


def test_links_are_not_followed_out_by_who_reads(local, canary, agent, prober, state):
    to_files, to_directories = plant(local, agent, canary)
    state()
    for name in to_files:
        prober.read(name)
        prober.read(f"{name}/secret")
    for name in to_directories:
        for below in ("", "/secret", "/below/secret", "/below", "/..", f"/{canary.place}/secret"):
            prober.read(name + below)
    prober.whole()
    # The links themselves can be looked at, in both views.
    assert prober.answered >= 2 * len(to_files + to_directories)


def test_links_are_not_followed_out_by_who_writes(local, canary, agent, prober, state):
    to_files, to_directories = plant(local, agent, canary)
    state()
    for name in to_directories:
        prober.write(f"{name}/secret")
        prober.write(f"{name}/below/secret")
        prober.write(f"{name}/new/file")
        prober.make(f"{name}/made")
        prober.move(f"{name}/secret", "stolen")
        prober.read("stolen")
        prober.move("hello.txt", f"{name}/moved")
        prober.move(f"{name}/moved", "hello.txt")
        prober.remove(f"{name}/secret")
        prober.remove(f"{name}/below")
        canary.assert_untouched()
    for name in to_files:
        prober.make(name)
        prober.write(name)
        canary.assert_untouched()
    prober.whole()


def test_what_is_removed_or_moved_is_the_link(local, canary, agent, prober, state):
    to_files, to_directories = plant(local, agent, canary)
    state()
    for number, name in enumerate(to_files + to_directories):
        if number % 2:
            prober.move(name, f"moved-{number}")
            prober.read(f"moved-{number}")
            name = f"moved-{number}"
        prober.remove(name)
        canary.assert_untouched()
    listed = local.workspace.ListDirectory(v1.ListDirectoryRequest(sandbox_id=agent)).files
    assert [each.name for each in listed] == ["hello.txt"]


def applied(local, sandbox):
    """Its changes are in the codebase, and it is gone."""
    local.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=sandbox))
    assert local.workspace.Apply(v1.ApplyRequest(sandbox_id=sandbox)).written
    local.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))


def test_apply_does_not_write_through_links(local, canary, agent, codebase):
    """Links become links of the codebase; files take their place, and not the place they point to."""
    to_files, to_directories = plant(local, agent, canary)
    applied(local, agent)
    canary.assert_untouched()
    second = local.new_sandbox(codebase)
    lines = [f"rm '{name}'; echo hostile > '{name}'" for name in to_files]
    lines += [f"rm '{name}'; mkdir '{name}' '{name}/below'; echo hostile > '{name}/secret'; "
              f"echo hostile > '{name}/below/secret'" for name in to_directories]
    done = local.run(second, "; ".join(["set -e", *lines]))
    assert done.exit_code == 0, done.stderr
    Prober(local, canary, second, codebase).whole()
    applied(local, second)
    canary.assert_untouched()
    for name in [*to_files, *(f"{each}/secret" for each in to_directories)]:
        assert local.download(codebase, name) == b"hostile\n"


def test_links_of_a_codebase_lead_nowhere_either(local, canary, codebase):
    """Without a sandbox its files are read and written where they are stored."""
    agent = local.new_sandbox(codebase)
    to_files, to_directories = plant(local, agent, canary)
    applied(local, agent)
    prober = Prober(local, canary, agent, codebase)
    for name in [*to_files, *(f"{each}/secret" for each in to_directories), *to_directories]:
        prober.read(name)
        prober.write(name)
        canary.assert_untouched()
    prober.whole()


def test_snapshots_and_forks_take_links_as_they_are(local, canary, agent, codebase):
    to_files, to_directories = plant(local, agent, canary)
    taken = local.workspace.CreateSnapshot(v1.CreateSnapshotRequest(sandbox_id=agent)).id
    forked = local.workspace.ForkSandbox(v1.ForkSandboxRequest(sandbox_id=agent)).id
    asked = v1.CreateSandboxRequest(codebase_id=codebase, snapshot_id=taken, preset="full-access")
    made = local.sandbox.CreateSandbox(asked).id
    for each in (forked, made):
        prober = Prober(local, canary, each, codebase)
        for name in [*to_files, *(f"{directory}/secret" for directory in to_directories)]:
            prober.read(name)
            prober.write(name)
        canary.assert_untouched()
    local.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=agent))
    local.workspace.RestoreSnapshot(v1.RestoreSnapshotRequest(sandbox_id=agent, snapshot_id=taken))
    for name, target in links(canary)[0].items():
        found = local.workspace.StatFile(v1.FileRequest(sandbox_id=agent, path=name))
        assert (found.kind, found.target) == (v1.FILE_KIND_SYMLINK, target)


def test_what_is_swapped_in_the_middle_of_calls(local, canary, agent, prober):
    """A directory that is a link the next moment: every call is inside, or is refused."""
    local.process.StartProcess(v1.StartProcessRequest(sandbox_id=agent, id="swapper", command=f"""
        mkdir real; echo inside > real/secret; ln -s {canary.place} link; echo ready
        while :; do mv -T real d; mv -T d real; mv -T link d; mv -T d link; done"""))
    local.process.WaitProcess(v1.WaitProcessRequest(
        sandbox_id=agent, process_id="swapper", text="ready"))
    for number in range(60):
        prober.read("d/secret")
        prober.write(f"d/new-{number}")
        prober.write("d/secret")
        prober.make(f"d/made-{number}")
        prober.move("d/secret", "stolen")
        prober.move("stolen", "d/secret")
        prober.remove("d/below")
        if number % 10 == 0:
            prober.whole()
            local.workspace.CreateSnapshot(v1.CreateSnapshotRequest(sandbox_id=agent))
    canary.assert_untouched()


@pytest.mark.parametrize("codebase", ["in place"], indirect=True)
def test_what_is_swapped_below_a_codebase_in_place(local, canary, agent, prober, tmp_path):
    """By somebody on the host, while the sandbox reads and changes are applied."""
    # What is compared may be gone between two looks.
    gone = grpc.StatusCode.INTERNAL
    stop = threading.Event()
    swapper = threading.Thread(target=swapped, args=(tmp_path / "work", "d", canary.place, stop))
    swapper.start()
    try:
        for number in range(20):
            prober.read("d/secret")
            canary.assert_not_in(local.run(agent, "cat d/secret d/*; ls -R").stdout)
            local.run(agent, "mkdir -p d; echo hostile > d/secret; echo hostile > d/new")
            prober.whole(also=gone)
            local.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=agent))
            prober.read("d/secret")
            prober.call(local.workspace.Apply, v1.ApplyRequest(sandbox_id=agent, force=True), also=gone)
            canary.assert_untouched()
            local.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=agent))
    finally:
        stop.set()
        swapper.join()


ODD = r"""
    mkfifo fifo
    perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("socket")) or die'
    truncate -s 1T sparse
    mkdir many; cd many; seq 5000 | xargs touch; cd ..
    touch -- "$(printf 'new\nline')" "$(printf 'bad\377name')" ' ' '*' '-rf' "$(printf '\033[2J')"
    mkdir "$(printf 'dir\376')"; echo inside > "$(printf 'dir\376/file\375')"
    mkdir -p "$(printf 'd/%.0s' $(seq 500))"
"""
ODD_NAMES = [b"fifo", b"socket", b"sparse", b"many", b"new\nline", b"bad\xffname", b" ", b"*", b"-rf",
             b"\x1b[2J", b"dir\xfe", b"d"]


@pytest.fixture
def odd(local, agent):
    done = local.run(agent, "set -e\n" + ODD)
    assert done.exit_code == 0, done.stderr
    return agent


def in_both_states(local, sandbox):
    yield "running"
    local.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=sandbox))
    yield "stopped"


def names_of(files):
    return {(each.raw_path or each.full_path.encode())[1:]: each.kind for each in files}


def test_odd_things_are_listed_as_what_they_are(local, odd):
    def listed(**fields):
        return local.workspace.ListDirectory(v1.ListDirectoryRequest(sandbox_id=odd, **fields)).files

    for _ in in_both_states(local, odd):
        kinds = names_of(listed())
        assert set(kinds) == {b"hello.txt", *ODD_NAMES}
        assert kinds[b"fifo"] == kinds[b"socket"] == v1.FILE_KIND_OTHER
        assert kinds[b"dir\xfe"] == v1.FILE_KIND_DIRECTORY
        assert sorted(int(each.name) for each in listed(path="many")) == list(range(1, 5001))
        assert b"dir\xfe/file\xfd" in names_of(listed(recursive=True))


def test_odd_things_hold_up_no_call(local, codebase, canary, odd):
    """Nobody opens a FIFO and waits, or reads a terabyte of nothing."""
    prober = Prober(local, canary, odd, codebase)
    for _ in in_both_states(local, odd):
        for name in ("fifo", "socket", "new\nline", " ", "*", "-rf", "\x1b[2J", "d/" * 500):
            prober.read(name)
        sparse = v1.ReadFileRequest(sandbox_id=odd, path="sparse", offset=(1 << 40) - 3, length=100)
        assert b"".join(each.data for each in local.workspace.ReadFile(sparse)) == b"\0\0\0"
        begun = local.workspace.ReadFile(v1.ReadFileRequest(sandbox_id=odd, path="sparse"))
        assert set(next(begun).data) == {0}
        begun.cancel()
        prober.whole()
        assert len(local.workspace.Changes(v1.ChangesRequest(sandbox_id=odd)).changes) > 5000
    for name in ("fifo", "socket"):
        prober.write(name)


def test_odd_things_are_kept_forked_and_removed(local, codebase, odd):
    for _ in in_both_states(local, odd):
        local.workspace.CreateSnapshot(v1.CreateSnapshotRequest(sandbox_id=odd))
        forked = local.workspace.ForkSandbox(v1.ForkSandboxRequest(sandbox_id=odd)).id
        for path in ("fifo", "socket", "sparse", "many", "d", "new\nline", "*", "-rf", " "):
            local.workspace.RemoveFile(
                v1.RemoveFileRequest(sandbox_id=forked, path=path, recursive=True))
        left = local.workspace.ListDirectory(v1.ListDirectoryRequest(sandbox_id=forked)).files
        assert set(names_of(left)) == {b"hello.txt", b"bad\xffname", b"dir\xfe", b"\x1b[2J"}


def test_odd_things_are_applied(local, codebase, odd):
    local.run(odd, "rm sparse; truncate -s 1M sparse")
    applied(local, odd)
    listed = local.codebase.ListFiles(v1.ListFilesRequest(codebase_id=codebase)).files
    expected = {b"hello.txt", b"many", b"new\nline", b"bad\xffname", b"dir\xfe", b"sparse"}
    assert expected <= set(names_of(listed))
    again = local.new_sandbox(codebase)
    assert local.run(again, "cat dir*/file*; ls many | wc -l").stdout.split() == ["inside", "5000"]


def test_a_fifo_with_somebody_at_its_end(local, agent):
    """Opened by the agent to trap who opens it too."""
    local.process.StartProcess(v1.StartProcessRequest(
        sandbox_id=agent, id="trap", command="mkfifo fifo; echo ready; exec 3<>fifo; exec sleep 1000"))
    local.process.WaitProcess(v1.WaitProcessRequest(sandbox_id=agent, process_id="trap", text="ready"))
    until(lambda: local.workspace.StatFile(v1.FileRequest(sandbox_id=agent, path="fifo")))
    for _ in range(3):
        try:
            assert not list(local.workspace.ReadFile(
                v1.ReadFileRequest(sandbox_id=agent, path="fifo"), timeout=20))
        except Exception as refusal:
            assert "INVALID_ARGUMENT" in str(refusal), refusal


#: Makes directories in each other, deeper than the stack of whoever follows them. In pieces that are
#: put together by renames: the deeper one is, the longer each takes.
DIG = """cd %s && python3 -c "
import os
top, pieces = os.getcwd(), 0
try:
    for pieces in range(20):
        os.chdir(top)
        for depth in range(1000):
            os.mkdir(f'd{pieces}' if depth == 0 else 'd')
            os.chdir(f'd{pieces}' if depth == 0 else 'd')
        if pieces:
            os.rename(f'{top}/d{pieces - 1}', 'd')
except OSError as refused:
    print(refused.strerror)
print(pieces)
" """


def test_trees_without_end_end_nobody(local, trapped):
    agent = local.new_sandbox(local.new_codebase(hello_txt=b"hello\n"))
    assert local.run(agent, DIG % "/tmp").stdout.split() == ["19"]
    assert local.run(agent, DIG % "/workspace").stdout.splitlines() == ["File name too long", "2"]
    for _ in in_both_states(local, agent):
        changes = local.workspace.Changes(v1.ChangesRequest(sandbox_id=agent)).changes
        assert len(changes) == 3000
    local.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=agent))
    assert trapped.process.poll() is None
