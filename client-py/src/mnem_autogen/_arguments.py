"""Checks of what callers give beside content: names, directories, places in history, sizes."""

from __future__ import annotations

import os
import unicodedata
from typing import Any

from ._errors import TooLargeError, refused
from ._json import check_integer, check_text

_NAME_BYTES = 255


def check_name(name: object) -> str:
    """Check a memory's name and return it.

    Raises:
        InvalidContentError: Saying which rule it breaks.
    """
    text = check_text(name, "name")
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise refused("name", "holds a control character; use printable text")
    size = len(text.encode("utf-8"))
    if not 1 <= size <= _NAME_BYTES:
        raise refused("name", f"has {size} UTF-8 bytes; a memory's name has 1 to {_NAME_BYTES}")
    return text


def check_store(store: str | os.PathLike[str]) -> str:
    """The absolute path of a store directory, which need not exist.

    Raises:
        ValueError: It can't be a directory's path.
    """
    path = os.fspath(store)
    if "://" in path:
        raise ValueError(f"store {path!r} is no directory; this version keeps its stores in directories")
    if not path or "\0" in path:
        raise ValueError("store is empty or holds a NUL; give the path of a directory")
    # Absolute from now on: a later chdir must not lead to another store, nor a dump that is loaded elsewhere.
    return os.path.abspath(path)  # noqa: PTH100 (Path.absolute() leaves `..` in)


def at_field(at: str | int | None) -> dict[str, Any]:
    """The parameter `at`: a commit-ish, or a time in Unix ms; left out when None.

    Raises:
        InvalidContentError: It is neither.
    """
    if at is None:
        return {}
    return {"at": check_text(at, "at") if isinstance(at, str) else check_integer(at, "at")}


def too_large(what: str, limit: int, actual: int) -> TooLargeError:
    """The error for something over a limit that the sidecar told."""
    return TooLargeError(
        f"{what}; the sidecar takes at most {limit}: store it in parts",
        kind="too_large",
        data={"limit": limit, "actual": actual},
    )
