"""Every call of the API."""

from __future__ import annotations

from ._codebases import AsyncCodebases
from ._commands import AsyncCommands
from ._process import AsyncProcesses
from ._record import AsyncRecords
from ._sandboxes import AsyncSandboxes
from ._terminal import AsyncTerminals
from ._workspace import AsyncWorkspaces


class AsyncSandboxClient(
    AsyncCodebases,
    AsyncSandboxes,
    AsyncCommands,
    AsyncProcesses,
    AsyncTerminals,
    AsyncWorkspaces,
    AsyncRecords,
):
    """Every call of the API, one method each. `AsyncSandbox` is made of these.

    >>> async with AsyncSandboxClient("localhost:9000") as client:  # doctest: +SKIP
    ...     codebase = await client.create_codebase("project", owner_id="me")
    ...     await client.upload_directory(codebase.id, "./project")
    ...     sandbox = await client.create_sandbox(
    ...         codebase.id, [{"pattern": "**/*", "permission": "read"}], start=True)
    ...     print((await client.exec(sandbox.id, "ls")).stdout)
    ...     await client.destroy_sandbox(sandbox.id)

    Args:
        endpoint: `HOST:PORT`, `https://HOST:PORT` or `unix:///PATH`. Without one:
            RINGFENCE_ENDPOINT, else a Ringfence server on localhost:9000, else a private server of
            this process.
        secure: speak TLS.
        token: who you are, for a server that wants to know; else RINGFENCE_TOKEN.
        ca_certificate: a file; trust what it has signed, instead of the usual authorities.
    """
