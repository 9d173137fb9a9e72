"""A session takes any text a shell takes, and says what came of it."""

from datetime import timedelta

import pytest
from ringfence import CommandTimeoutError, SessionClosedError

WAIT = 60

TEXTS = {
    "no newline at the end": ("printf no-newline", "no-newline"),
    "a comment at the end": ("echo shown # not shown", "shown\n"),
    "nothing but a comment": ("# nothing", ""),
    "nothing at all": ("", ""),
    "several lines": ("echo one\necho two\n", "one\ntwo\n"),
    "a here-document": ("cat <<END\n$((1 + 1))\nEND", "2\n"),
    "a quoted here-document": ("cat <<'END'\n$((1 + 1))\nEND\n", "$((1 + 1))\n"),
    "quotes of all kinds": ("echo \"it's\" 'a \"b\"' \\'c\\'", "it's a \"b\" 'c'\n"),
    "a loop over lines": ("for n in 1 2\ndo\n  echo $n\ndone", "1\n2\n"),
    "a pipe": ("printf 'b\\na\\n' | sort", "a\nb\n"),
    "spaces and tabs that stay": ("printf '  a\\t \\n\\n'", "  a\t \n\n"),
    "letters of other alphabets": ("echo 'héllo wörld ✓'", "héllo wörld ✓\n"),
    "a carriage return": ("printf 'a\\rb\\n'", "a\rb\n"),
}


@pytest.mark.parametrize("command, said", TEXTS.values(), ids=TEXTS.keys())
def test_a_command_can_be(web, command, said):
    with web.session() as session:
        result = session.exec(command, timeout=WAIT)
        assert (result.stdout, result.stderr, result.exit_code) == (said, "", 0)
        assert session.exec("echo after").stdout == "after\n"


def test_a_here_document_can_make_a_file(web):
    with web.session() as session:
        session.exec("cat > /tmp/settings.ini <<'END'\n[server]\nname = $HOME\nEND")
        assert session.exec("cat /tmp/settings.ini").stdout == "[server]\nname = $HOME\n"


def test_a_long_line_is_not_cut(web):
    with web.session() as session:
        result = session.exec("printf %s " + "x" * 100_000 + " | wc -c", timeout=WAIT)
    assert result.stdout.strip() == "100000"


@pytest.mark.parametrize("command", ["cat", "read line", "wc -c", "python3 -c 'input()'"])
def test_a_command_that_reads_has_nothing_to_wait_for(web, command):
    with web.session() as session:
        session.exec(command, timeout=WAIT)
        assert session.exec("echo after").stdout == "after\n"


def test_a_job_in_the_background_does_not_hold_the_command_up(web):
    with web.session() as session:
        sign = f"/tmp/job-{session.id}"
        assert session.exec(f"(touch {sign}; exec sleep 600) &", timeout=WAIT).exit_code == 0
        # An interactive shell's child ignores SIGTERM, as the shell does, until it has begun.
        session.exec(f"until [ -e {sign} ]; do sleep 0.02; done", timeout=WAIT)
        assert session.exec("kill %1; wait %1; echo $?", timeout=WAIT).stdout == "143\n"


def test_exit_codes_are_those_of_the_command(web):
    with web.session() as session:
        codes = [session.exec(command).exit_code for command in ("true", "false", "(exit 42)")]
        assert codes == [0, 1, 42]
        assert session.exec("echo $?").stdout == "42\n"


def test_a_mistake_in_the_language_is_the_commands_failure(web):
    with web.session() as session:
        wrong = session.exec("if true; then", timeout=WAIT)
        assert wrong.exit_code != 0 and wrong.stderr
        assert session.exec("echo after").stdout == "after\n"


def test_both_streams_are_kept_apart(web):
    with web.session() as session:
        result = session.exec("echo out; echo err >&2")
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_exit_closes_the_session_with_its_code(web):
    with web.session() as session:
        assert session.exec("exit 7").exit_code == 7
        with pytest.raises(SessionClosedError, match="code 7") as closed:
            session.exec("echo never", timeout=WAIT)
        assert closed.value.exit_code == 7 and closed.value.session_id == session.id


def test_a_failure_under_set_e_closes_it_too(web):
    with web.session() as session:
        session.exec("set -e")
        assert session.exec("false; echo never").stdout == ""
        with pytest.raises(SessionClosedError) as closed:
            session.exec("echo never", timeout=WAIT)
        assert closed.value.exit_code == 1


@pytest.mark.parametrize("limit", [1, 0.5, timedelta(seconds=0.5)], ids=repr)
def test_a_command_out_of_time_is_ended_and_the_session_goes_on(blocking_web, limit):
    with blocking_web.session() as session:
        session.exec("cd /tmp")
        with pytest.raises(CommandTimeoutError) as late:
            session.exec("echo begun; sleep 600", timeout=limit)
        assert late.value.command == "echo begun; sleep 600"
        assert late.value.timeout_seconds == (limit if limit != timedelta(seconds=0.5) else 0.5)
        assert late.value.stdout == "begun\n"
        assert session.exec("pwd").stdout == "/tmp\n"


def test_output_of_a_session_can_be_had_as_it_is_made(web):
    with web.session() as session:
        session.exec("name=kept")
        stream = session.exec_stream("echo $name; (exit 3)")
        assert b"".join(stream) == b"kept\n"
        assert stream.exit_code == 3
