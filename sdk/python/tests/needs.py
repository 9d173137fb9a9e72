"""Programs of the host that a test needs."""

import os
import shutil

import pytest


def needs(program):
    """Without it a test is skipped; where everything is required, it runs and fails."""
    required = os.environ.get("RINGFENCE_REQUIRE_KERNEL")
    missing = not shutil.which(program) and not required
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")
