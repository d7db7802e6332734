"""JSON without loss: what may be stored, where it may not (by path), and its text."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from ._errors import refused

MAX_DEPTH = 100
"""Deepest nesting of dicts and lists in one stored value; the value itself is level 1."""

_MIN_INTEGER = -(2**63)
_MAX_INTEGER = 2**64 - 1

_INSTEAD = {
    "set": "a list",
    "frozenset": "a list",
    "tuple": "a list",
    "date": "its isoformat() string",
    "datetime": "its isoformat() string",
    "time": "its isoformat() string",
    "timedelta": "its total_seconds()",
    "Decimal": "a string or a float",
    "bytes": "its base64 as a string, or the bytes as the whole content",
    "bytearray": "its base64 as a string, or the bytes as the whole content",
    "UUID": "its string",
    "Image": "the image as the whole content",
}


class _RefusedError(Exception):
    """A value was refused; `steps` grows from the value outwards as the walk unwinds."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[object] = []


def check_json(value: object, path: str) -> None:
    """Check that `value` is made of exact JSON types that the store keeps without loss.

    Allowed are `dict` with `str` keys, `list`, `str`, `int`, `float`, `bool` and `None`, no subclasses, at
    most `MAX_DEPTH` levels deep.

    Raises:
        InvalidContentError: Naming the path of the first value that isn't.
    """
    try:
        _check(value, 1, set())
    except _RefusedError as error:
        steps = "".join(_show(step) for step in reversed(error.steps))
        raise refused(path + steps, error.reason) from None


def check_text(value: object, path: str) -> str:
    """Check that `value` is an exact `str` without lone surrogates, and return it.

    Raises:
        InvalidContentError: Naming `path`.
    """
    if type(value) is not str:
        raise refused(path, _wrong_type(value, "a str"))
    if (reason := _bad_text(value)) is not None:
        raise refused(path, reason)
    return value


def check_integer(value: object, path: str) -> int:
    """Check that `value` is an exact `int` that fits 64 bits, and return it.

    Raises:
        InvalidContentError: Naming `path`.
    """
    if type(value) is not int:
        raise refused(path, _wrong_type(value, "an int"))
    if (reason := _bad_integer(value)) is not None:
        raise refused(path, reason)
    return value


def dumps(value: object) -> bytes:
    """The UTF-8 JSON text of a checked value: no white space, keys in their order, floats with `.` or `e`."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def loads(body: bytes) -> Any:
    """Read UTF-8 JSON text: integers of any size exactly, floats as the nearest double."""
    return json.loads(body)


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if type(value) is dict:
        return {key: copy_json(member) for key, member in cast("dict[str, Any]", value).items()}
    if type(value) is list:
        return [copy_json(member) for member in cast("list[Any]", value)]
    return value


def _check(value: object, depth: int, around: set[int]) -> None:
    kind = type(value)
    if kind is dict or kind is list:
        _check_container(value, depth, around)
        return
    reason: str | None = None
    if kind is str:
        reason = _bad_text(cast("str", value))
    elif kind is int:
        reason = _bad_integer(cast("int", value))
    elif kind is float:
        if not math.isfinite(cast("float", value)):
            reason = f"is {value}, which JSON has no number for; store None or a string"
    elif kind is not bool and value is not None:
        reason = _wrong_type(value, "a JSON value (dict, list, str, int, float, bool or None)")
    if reason is not None:
        raise _RefusedError(reason)


def _check_container(value: object, depth: int, around: set[int]) -> None:
    if id(value) in around:
        raise _RefusedError("contains itself; store a copy without the cycle")
    if depth > MAX_DEPTH:
        raise _RefusedError(f"nests deeper than {MAX_DEPTH} levels; store a flatter value")
    around.add(id(value))
    step: object = None
    is_dict = type(value) is dict
    items = cast("dict[object, object]", value).items() if is_dict else None
    members = enumerate(cast("list[object]", value)) if items is None else items
    try:
        for step, member in members:
            if is_dict:
                _check_key(step)
            _check(member, depth + 1, around)
    except _RefusedError as error:
        error.steps.append(step)
        raise
    around.remove(id(value))


def _check_key(key: object) -> None:
    if type(key) is not str:
        raise _RefusedError(f"is a key of type {_type_name(key)}; keys are str, so use str() on it")
    if (reason := _bad_text(key)) is not None:
        raise _RefusedError(f"is a key that {reason}")


def _bad_text(text: str) -> str | None:
    if text.isascii():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return (
            f"holds half of a surrogate pair (U+{ord(text[error.start]):04X} at index {error.start}), "
            "which no UTF-8 can carry; remove it or replace it with U+FFFD"
        )
    return None


def _bad_integer(value: int) -> str | None:
    if _MIN_INTEGER <= value <= _MAX_INTEGER:
        return None
    return "is an integer outside -2^63 to 2^64-1; store it as a string"


def _wrong_type(value: object, wanted: str) -> str:
    kind = type(value)
    instead = next((_INSTEAD[base.__name__] for base in kind.__mro__ if base.__name__ in _INSTEAD), None)
    if instead is None:
        exact = next((base for base in kind.__mro__[1:] if base in (dict, list, str, int, float)), None)
        instead = f"{exact.__name__}(...) of it" if exact is not None else "one"
    return f"is a {_type_name(value)}, not {wanted}; store {instead}"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _show(step: object) -> str:
    if type(step) is int:
        return f"[{step}]"
    if type(step) is str:
        return f".{step}" if step.isascii() and step.isidentifier() else f"[{json.dumps(step)}]"
    return f"[{step!a}]"
