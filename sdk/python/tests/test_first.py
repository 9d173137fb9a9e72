"""The one-liner, on every kind of server."""

import asyncio

from ringfence import AsyncSandbox, Sandbox


def test_a_directory_a_command_and_nothing_left(where, project):
    with Sandbox.from_local(project, preset="agent-safe", **where.options) as sandbox:
        result = sandbox.run("cat hello.txt")
        assert (result.stdout, result.exit_code) == ("hello\n", 0)
        assert sandbox.run("cat secrets/token.txt").exit_code != 0


def test_the_same_for_asyncio(where, project):
    async def main():
        async with await AsyncSandbox.from_local(
                project, preset="agent-safe", **where.options) as sandbox:
            return await sandbox.run("cat hello.txt")

    assert asyncio.run(main()).stdout == "hello\n"
