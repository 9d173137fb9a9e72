"""What every test of this directory starts from."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place for caches, so that no test finds or leaves anything in the user's own."""
    home = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.delenv("RINGFENCE_NO_CACHE", raising=False)
    return home / "ringfence" / "digests"
