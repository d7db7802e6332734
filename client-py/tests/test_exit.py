"""A script that never closes its memory ends as if it had: status 0, nothing printed, no sidecar left."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, _program
from support import contents, ended, exact, run_script, text, wait_until

SCRIPT = """
import asyncio, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", sys.argv[1])
asyncio.run(memory.add(MemoryContent(content="durable", mime_type="text/plain")))
print(_registry.connections()[0].pid)
"""

THREADED = """
import asyncio, sys, threading
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", sys.argv[1])
def work():
    asyncio.run(memory.add(MemoryContent(content="durable", mime_type="text/plain")))
    print(_registry.connections()[0].pid)
threading.Thread(target=work).start()
"""

LOOP_LEFT_OPEN = """
import asyncio, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory, _registry
memory = MnemosyneMemory("m", sys.argv[1])
async def main():
    await memory.add(MemoryContent(content="durable", mime_type="text/plain"))
    print(_registry.connections()[0].pid)
    sys.exit(0)
asyncio.run(main())
"""

AT_EXIT = """
import atexit, asyncio, sys
def late():
    try:
        asyncio.run(memory.query())
    except Exception as error:
        print(type(error).__name__)
atexit.register(late)  # before ours, so that it runs after it
from mnem_autogen import MnemosyneMemory
memory = MnemosyneMemory("m", sys.argv[1])
"""


@cache
def interpreters() -> dict[str, str | None]:
    """For each CPython that we support: its executable, where one is found on this machine."""
    found: dict[str, str | None] = {}
    root = Path(os.environ.get("PYENV_ROOT", ""))
    for minor in range(10, 15):
        version = f"3.{minor}"
        candidates = [sys.executable] if sys.version_info[:2] == (3, minor) else []
        candidates += (
            [str(path) for path in sorted(root.glob(f"versions/{version}.*/bin/python"))] if root.name else []
        )
        candidates += [path for path in [shutil.which(f"python{version}")] if path is not None]
        found[version] = next((path for path in candidates if _runs(path, version)), None)
    return found


def _runs(path: str, version: str) -> bool:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
    return answer.stdout.strip() == version


@pytest.fixture(params=[f"3.{minor}" for minor in range(10, 15)])
def python(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, str]]:
    """An interpreter, and the environment in which it finds this package."""
    version: str = request.param
    path = interpreters()[version]
    if path is None:
        pytest.skip(f"no CPython {version} on this machine")
    if path == sys.executable:
        return path, {}
    node = _program.find_program().node
    return path, {"PYTHONPATH": _installed(path, version, tmp_path_factory), "MNEM_NODE": node}


_targets: dict[str, str | subprocess.CompletedProcess[str]] = {}


def _installed(python: str, version: str, temporary: pytest.TempPathFactory) -> str:
    """Where another interpreter finds this package and what it needs, which its own pip installed."""
    if version not in _targets:
        target = temporary.mktemp("site") / version
        root = Path(__file__).parents[1]
        done = subprocess.run(
            [
                *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("--only-binary=:all:", "--target", str(target)),
                "autogen-core>=0.7,<0.8",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        _targets[version] = (
            done if done.returncode != 0 else os.pathsep.join([str(root / "src"), str(target)])
        )
    installed = _targets[version]
    if not isinstance(installed, str):
        pytest.skip(f"pip could not install for CPython {version}: {installed.stderr[-300:]}")
    return installed


def assert_ended_well(done: subprocess.CompletedProcess[str], store: Path) -> None:
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: ended(int(done.stdout)), "the sidecar to end with its script")
    assert asyncio.run(contents(MnemosyneMemory("m", store))) == [exact(text("durable"))]


def test_a_script_that_never_closes_ends_silently(python: tuple[str, dict[str, str]], store: Path) -> None:
    path, environment = python
    assert_ended_well(run_script(SCRIPT, store, python=path, environment=environment), store)


def test_a_script_that_never_closes_ends_silently_with_every_warning_an_error(
    python: tuple[str, dict[str, str]], store: Path
) -> None:
    path, environment = python
    flags = ("-X", "dev", "-W", "error", "-W", "ignore::DeprecationWarning")
    assert_ended_well(run_script(SCRIPT, store, python=path, flags=flags, environment=environment), store)


def test_a_script_that_ends_by_an_exception_shows_only_that(
    python: tuple[str, dict[str, str]], store: Path
) -> None:
    path, environment = python
    done = run_script(
        SCRIPT + "\nraise RuntimeError('of the script')", store, python=path, environment=environment
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Traceback (most recent call last):",
        *done.stderr.splitlines()[1:-1],
        "RuntimeError: of the script",
    ]
    assert done.stderr.count("Traceback") == 1
    assert "mnem" not in done.stderr
    wait_until(lambda: ended(int(done.stdout)), "the sidecar to end with its script")
    assert asyncio.run(contents(MnemosyneMemory("m", store))) == [exact(text("durable"))]


@pytest.mark.parametrize("script", [THREADED, LOOP_LEFT_OPEN], ids=["from a thread", "by sys.exit in a loop"])
def test_other_ways_to_end_are_as_silent(script: str, store: Path) -> None:
    assert_ended_well(run_script(script, store, flags=("-X", "dev", "-W", "error")), store)


def test_a_call_after_the_end_is_an_error_not_a_hang(python: tuple[str, dict[str, str]], store: Path) -> None:
    path, environment = python
    done = run_script(AT_EXIT, store, python=path, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    # Before 3.12 a thread may still start then, and the call is served.
    assert done.stdout.strip() in {"", "SidecarError"}
