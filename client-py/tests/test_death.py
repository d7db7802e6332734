"""A sidecar that dies is replaced: what was acknowledged is there, what was in flight lands once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mnem_autogen import MnemosyneMemory, ProtocolError, SidecarError
from support import contents, end_sidecars, exact, gone, kill_sidecar, requests_in_flight, sidecar_pids, text


def test_every_acknowledged_add_survives_kill_9(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        for number in range(20):
            await memory.add(text(str(number)))
            kill_sidecar()
        assert await contents(memory) == [exact(text(str(number))) for number in range(20)]
        assert len(await memory.log()) == 20

    asyncio.run(main())


def test_writes_in_flight_when_the_sidecar_dies_land_exactly_once(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("first"))
        for round_ in range(5):
            adds = [asyncio.create_task(memory.add(text(f"{round_} {number}"))) for number in range(100)]
            # The first rounds die before all is sent, the later ones after some answers have come.
            await asyncio.wait(adds[: 20 * round_ + 1], timeout=0 if round_ == 0 else None)
            os.kill(sidecar_pids()[0], signal.SIGKILL)
            await asyncio.gather(*adds)
        items = [item.content for item in await memory.items()]
        assert sorted(map(str, items)) == sorted(
            ["first", *(f"{round_} {number}" for round_ in range(5) for number in range(100))]
        )
        assert len(await memory.log()) == 501
        assert requests_in_flight() == 0

    asyncio.run(main())


def test_reads_in_flight_when_the_sidecar_dies_are_answered(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add_many([text("x" * 100_000)] * 100)
        reads = [asyncio.create_task(memory.items()) for _ in range(4)]
        await asyncio.sleep(0)
        os.kill(sidecar_pids()[0], signal.SIGKILL)
        assert [len(items) for items in await asyncio.gather(*reads)] == [100] * 4

    asyncio.run(main())


def test_a_sidecar_that_was_told_to_end_is_replaced(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("first"))
        for number in range(5):
            adds = [asyncio.create_task(memory.add(text(f"{number} {each}"))) for each in range(20)]
            await asyncio.sleep(0)
            os.kill(sidecar_pids()[0], signal.SIGTERM)
            await asyncio.gather(*adds)
        assert len(await memory.items()) == 101
        assert len(await memory.log()) == 101

    asyncio.run(main())


def fake(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> MnemosyneMemory:
    """A memory whose sidecar is this JavaScript."""
    entry = directory / "fake.mjs"
    entry.write_text(script)
    monkeypatch.setenv("MNEM_SIDECAR", str(entry))
    return MnemosyneMemory(store=directory / "store")


def test_a_sidecar_that_ends_at_its_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fake(
        tmp_path,
        monkeypatch,
        "for (let i = 0; i < 100; i++) console.error('line', i);"
        "console.error('the disk is on fire'); process.exit(3)",
    )
    with pytest.raises(SidecarError) as caught:
        asyncio.run(memory.query())
    message = str(caught.value)
    assert "status 3" in message
    assert "fake.mjs" in message
    assert message.endswith("the disk is on fire")
    assert "line 81\n" in message
    assert "line 80\n" not in message, "the last 20 lines are kept"
    assert sidecar_pids() == []


def test_a_sidecar_that_always_dies_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = fake(
        tmp_path,
        monkeypatch,
        f"import fs from 'node:fs'; fs.appendFileSync({str(tmp_path / 'starts')!r}, 'x');"
        "console.error('dying'); process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)",
    )
    with pytest.raises(SidecarError, match="lost 4 times over one request") as caught:
        asyncio.run(memory.add(text("x")))
    assert "SIGKILL" in str(caught.value)
    assert "dying" in str(caught.value)
    assert (tmp_path / "starts").read_text() == "xxxx"


@pytest.mark.parametrize(
    "output",
    [
        "'Debugger listening on ws://127.0.0.1:9229\\n'",
        "'Content-Length: abc\\r\\n\\r\\n{}'",
        "'Content-Type: x\\r\\n\\r\\n{}'",
        "'Content-Length: 99999999999\\r\\n\\r\\n'",
        "'Content-Length: 2\\r\\n\\r\\n[]'",
        "'Content-Length: 1\\r\\n\\r\\n{'",
        "'Content-' + 'x'.repeat(5000)",
    ],
)
def test_anything_but_frames_on_stdout_is_an_error_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    memory = fake(tmp_path, monkeypatch, f"process.stdout.write({output}); setInterval(() => {{}}, 1000)")
    with pytest.raises(ProtocolError, match="something else than frames"):
        asyncio.run(memory.query())
    assert sidecar_pids() == []


def test_a_sidecar_that_refuses_the_protocol_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = fake(
        tmp_path,
        monkeypatch,
        """
        const data = { kind: 'unsupported_protocol', supported: [2] }
        const error = { code: -32003, message: 'speaks 2', data }
        const body = JSON.stringify({ jsonrpc: '2.0', id: 0, error })
        process.stdout.write(`Content-Length: ${body.length}\\r\\n\\r\\n${body}`)
        process.stdin.on('end', () => process.exit(0)).resume()
        """,
    )
    with pytest.raises(ProtocolError, match="speaks 2"):
        asyncio.run(memory.query())


BUSY = """
// It pauses after each request and answers at length: a peer that only writes before it reads would deadlock.
const send = (m) => {
  const body = JSON.stringify(m)
  process.stdout.write(`Content-Length: ${body.length}\\r\\n\\r\\n${body}`)
}
const limits = { frame_bytes: 2 ** 25, item_bytes: 2 ** 23, items_per_add: 10000 }
let text = '', started = false
process.stdin.setEncoding('latin1').on('data', (chunk) => {
  text += chunk
  for (;;) {
    const end = text.indexOf('\\r\\n\\r\\n')
    const length = end < 0 ? NaN : Number(text.slice(16, end))
    if (!(text.length >= end + 4 + length)) return
    const m = JSON.parse(text.slice(end + 4, end + 4 + length))
    text = text.slice(end + 4 + length)
    const long = { commit: 'c', ids: [], pad: 'p'.repeat(4e6) }
    send({ jsonrpc: '2.0', id: m.id, result: m.method === 'initialize' ? { limits } : long })
    process.stdin.pause()
    setTimeout(() => process.stdin.resume(), 20)
  }
}).on('end', () => process.exit(0))
"""


def test_large_frames_both_ways_to_a_busy_sidecar_block_neither_the_loop_nor_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = fake(tmp_path, monkeypatch, BUSY)

    async def main() -> None:
        await memory.add(text("small"))
        adds = asyncio.gather(*(memory.add(text("x" * (8 * 2**20 - 100))) for _ in range(4)))
        turns = 0
        while not adds.done():
            await asyncio.sleep(0.001)
            turns += 1
        await adds
        assert turns > 4, "the loop went on meanwhile"
        await memory.close()

    asyncio.run(main())


def test_a_sidecar_that_stops_reading_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnem_autogen._session.END_SECONDS", 0.2)
    memory = fake(tmp_path, monkeypatch, BUSY.replace("process.stdin.pause()", "process.stdin.destroy()"))
    with pytest.raises(SidecarError, match="lost 4 times"):
        asyncio.run(memory.add(text("x" * 1_000_000)))


def test_a_sidecar_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnem_autogen._sidecar.START_SECONDS", 0.5)
    memory = fake(tmp_path, monkeypatch, "setInterval(() => {}, 1000)")
    with pytest.raises(SidecarError, match="did not answer within"):
        asyncio.run(memory.query())
    assert sidecar_pids() == []


def test_a_sidecar_that_does_not_end_is_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnem_autogen._session.END_SECONDS", 0.2)
    memory = fake(
        tmp_path, monkeypatch, BUSY.replace("process.exit(0)", "0") + "\nsetInterval(() => {}, 1000)"
    )

    async def main() -> None:
        await memory.add(text("x"))
        (pid,) = sidecar_pids()
        await memory.close()
        assert gone(pid)

    asyncio.run(main())


def test_closing_does_not_wait_for_ever_for_a_sidecar_that_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnem_autogen._session.END_SECONDS", 0.2)
    script = BUSY.replace(
        "setTimeout(() => process.stdin.resume(), 20)", "if (m.id > 1) setInterval(() => {}, 1000)"
    )
    memory = fake(
        tmp_path, monkeypatch, script.replace("process.stdin.pause()", "if (m.id > 1) process.stdin.pause()")
    )

    async def main() -> None:
        await memory.add(text("x"))
        stuck = [asyncio.create_task(memory.add(text("x" * 1_000_000))) for _ in range(3)]
        await asyncio.sleep(0)
        await memory.close()
        assert sidecar_pids() == []
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)

    asyncio.run(main())
    end_sidecars()
