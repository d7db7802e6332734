"""Fixtures: a store of the test's own, and no sidecar left behind by any test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import end_sidecars


@pytest.fixture(scope="session", autouse=True)
def _no_settings() -> None:  # pyright: ignore[reportUnusedFunction]
    """A developer's own settings must not reach the tests."""
    for name in [each for each in os.environ if each.startswith("MNEM_")]:
        del os.environ[name]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "store"
    end_sidecars()
