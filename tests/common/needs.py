"""What a test needs of the machine. Without it the test is skipped; where everything is required, it
runs and fails."""

import os
import shutil
import socket

import pytest

REQUIRED = bool(os.environ.get("RINGFENCE_REQUIRE_KERNEL"))


def needs(program):
    """A program of the host."""
    missing = not shutil.which(program) and not REQUIRED
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")


def needs_free(port):
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", port)) == 0
    return pytest.mark.skipif(taken and not REQUIRED, reason=f"there is a server on port {port}")


needs_root = pytest.mark.skipif(os.geteuid() != 0 and not REQUIRED, reason="only root can do that")
