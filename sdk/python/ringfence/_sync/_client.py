# Made from _async/_client.py by generate.py.
"""Every call of the API."""

from __future__ import annotations

from ._codebases import Codebases
from ._commands import Commands
from ._process import Processes
from ._record import Records
from ._sandboxes import Sandboxes
from ._terminal import Terminals
from ._workspace import Workspaces


class SandboxClient(
    Codebases,
    Sandboxes,
    Commands,
    Processes,
    Terminals,
    Workspaces,
    Records,
):
    """Every call of the API, one method each. `Sandbox` is made of these.

    >>> with SandboxClient("localhost:9000") as client:  # doctest: +SKIP
    ...     codebase = client.create_codebase("project", owner_id="me")
    ...     client.upload_directory(codebase.id, "./project")
    ...     sandbox = client.create_sandbox(
    ...         codebase.id, [{"pattern": "**/*", "permission": "read"}], start=True)
    ...     print((client.exec(sandbox.id, "ls")).stdout)
    ...     client.destroy_sandbox(sandbox.id)

    Args:
        endpoint: `HOST:PORT`, `https://HOST:PORT` or `unix:///PATH`. Without one:
            RINGFENCE_ENDPOINT, else a Ringfence server on localhost:9000, else a private server of
            this process.
        secure: speak TLS.
        token: who you are, for a server that wants to know; else RINGFENCE_TOKEN.
        ca_certificate: a file; trust what it has signed, instead of the usual authorities.
    """
