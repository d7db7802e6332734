"""What environment variables say of a running sidecar: where it is, its token, how long it is waited for."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ._endpoint import Endpoint, read_endpoint
from ._errors import SidecarError

DEFAULT_CONNECT_TIMEOUT = 10.0
"""Seconds that a call waits for a server that is not there yet."""


def find_endpoint() -> Endpoint | None:
    """The endpoint that `MNEM_ENDPOINT` names, if it does.

    Raises:
        SidecarError: It names something else.
    """
    text = os.environ.get("MNEM_ENDPOINT")
    if not text:
        return None
    try:
        return read_endpoint(text)
    except ValueError as error:
        raise SidecarError(f"MNEM_ENDPOINT can't be used: {error}; or unset it") from error


def find_token(explicit: str | None) -> str | None:
    """The token to show: the one given, else `MNEM_TOKEN`, else what the file `MNEM_TOKEN_FILE` holds now.

    Raises:
        SidecarError: The file can't be read, or what was found is no token. It never quotes one.
    """
    if explicit is not None:
        return explicit
    variable = os.environ.get("MNEM_TOKEN")
    if variable:
        return _checked(variable, "MNEM_TOKEN")
    name = os.environ.get("MNEM_TOKEN_FILE")
    if not name:
        return None
    where = f"the file {name} that MNEM_TOKEN_FILE names"
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise SidecarError(
            f"{where} can't be read ({error.strerror}); let this user read it, or set MNEM_TOKEN_FILE to "
            "another"
        ) from error
    # Undecodable bytes become lone surrogates, which the check finds; an error of decoding would quote them.
    token = content.decode("utf-8", "surrogateescape").strip()
    if not token:
        raise SidecarError(f"{where} is empty; write the token into it")
    return _checked(token, where)


def _checked(token: str, where: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in token):
        raise SidecarError(f"{where} holds something else than UTF-8 text; put the token there")
    return token


def check_connect_timeout(seconds: object) -> float:
    """Check a bound in seconds and return it.

    Raises:
        ValueError: It is no positive, finite number.
    """
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not math.isfinite(seconds)
        or seconds <= 0
    ):
        raise ValueError(f"connect_timeout is {seconds!r}; give a number of seconds over 0")
    return float(seconds)


def find_connect_timeout(explicit: float | None) -> float:
    """The bound given, else `MNEM_CONNECT_TIMEOUT`, else 10 s.

    Raises:
        SidecarError: The variable holds no number of seconds.
    """
    if explicit is not None:
        return explicit
    variable = os.environ.get("MNEM_CONNECT_TIMEOUT")
    if not variable:
        return DEFAULT_CONNECT_TIMEOUT
    try:
        return check_connect_timeout(float(variable))
    except ValueError as error:
        raise SidecarError(
            f"MNEM_CONNECT_TIMEOUT is {variable!r}; set it to a number of seconds over 0, or unset it"
        ) from error
