"""Where a running sidecar listens, as a text that people write."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from dataclasses import dataclass
from typing import Literal

_FORMS = (
    'give "unix:///PATH/OF/SOCKET", "tcp://HOST:PORT" or "tls://HOST:PORT", an IPv6 host in brackets, such '
    'as "tcp://[::1]:7777"'
)
_PATH_BYTES = 103 if sys.platform == "darwin" else 107
"""Longest path of a Unix socket: the kernel's field less its closing zero."""

Transport = Literal["unix", "tcp", "tls"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A checked address: of a Unix socket its absolute `path`, else `host` (without brackets) and `port`."""

    transport: Transport
    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.transport == "unix":
            return f"unix://{self.path}"
        return f"{self.transport}://{self._host_port()}"

    @property
    def listen(self) -> str:
        """How `mnem-sidecar serve --listen` names it."""
        return f"unix:{self.path}" if self.transport == "unix" else f"{self.transport}:{self._host_port()}"

    def over(self, transport: Transport) -> str:
        """The same host and port over another transport."""
        return f"{transport}://{self._host_port()}"

    def _host_port(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_endpoint(text: object) -> Endpoint:
    """Read `unix:///path`, `tcp://host:port` or `tls://host:port`; the slashes may be left out.

    Raises:
        ValueError: Showing the forms that are accepted.
    """
    if not isinstance(text, str):
        raise ValueError(f"endpoint is of type {type(text).__name__}; {_FORMS}")
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "unix":
        return _unix(text, rest)
    if colon and scheme in {"tcp", "tls"}:
        host, port = _host_port(text, rest.removeprefix("//"))
        return Endpoint("tcp" if scheme == "tcp" else "tls", host=host, port=port)
    raise ValueError(f"endpoint {_shown(text)} is none; {_FORMS}")


def _unix(text: str, rest: str) -> Endpoint:
    if rest.startswith("//"):
        rest = rest[2:]
        if not rest.startswith("/"):
            # What stands after two slashes is a host elsewhere; most likely a slash was forgotten.
            raise ValueError(
                f'endpoint {text!r} has no absolute path; give "unix:///{rest}", or "unix:{rest}" for one '
                "below the working directory"
            )
    if not rest or "\0" in rest:
        raise ValueError(f"endpoint {text!r} has no path of a socket; {_FORMS}")
    # Absolute from now on, as a store's path: a later chdir must not lead to another socket.
    path = os.path.abspath(rest)  # noqa: PTH100 (Path.absolute() leaves `..` in)
    size = len(os.fsencode(path))
    if size > _PATH_BYTES:
        raise ValueError(
            f"endpoint {text!r} has a path of {size} bytes, and a Unix socket's has at most {_PATH_BYTES}; "
            "put the socket at a shorter path"
        )
    return Endpoint("unix", path=path)


def _host_port(text: str, rest: str) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^\[\]:/?#@\s]+)):([0-9]{1,5})", rest)
    if found is None:
        raise ValueError(f"endpoint {_shown(text)} has no HOST:PORT; {_FORMS}")
    bracketed, plain, digits = found.groups(default="")
    if bracketed and not _is_ipv6(bracketed):
        raise ValueError(f"endpoint {text!r} has no IPv6 address in its brackets; {_FORMS}")
    if plain and not _is_host_name(plain):
        raise ValueError(f"endpoint {text!r} has a host that can be none; {_FORMS}")
    port = int(digits)
    if not 1 <= port <= 65_535:
        raise ValueError(f"endpoint {text!r} has port {port}; give one from 1 to 65535")
    return (bracketed or plain).lower(), port


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_host_name(text: str) -> bool:
    try:
        return not text.startswith(".") and bool(text.encode("idna"))
    except UnicodeError:
        return False


def _shown(text: str) -> str:
    """The text for a message, unless a secret could be part of it."""
    return "with an @ (a token has its own argument)" if "@" in text else repr(text)
