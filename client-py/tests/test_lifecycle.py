"""One object through event loops, threads, closings and cancellations."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import threading
from pathlib import Path
from typing import cast

import pytest
from autogen_core import CancellationToken

from mnem_autogen import MnemosyneMemory
from support import (
    children,
    contents,
    end_sidecars,
    exact,
    gone,
    kill_sidecar,
    requests_in_flight,
    sidecar_pids,
    text,
)


def test_constructing_does_no_io(tmp_path: Path) -> None:
    MnemosyneMemory("m", tmp_path / "store")
    assert list(tmp_path.iterdir()) == []
    assert sidecar_pids() == []


def test_one_object_serves_several_event_loops_in_turn(store: Path) -> None:
    memory = MnemosyneMemory(store=store)
    for number in range(3):
        asyncio.run(memory.add(text(str(number))))
    assert asyncio.run(contents(memory)) == [exact(text(str(number))) for number in range(3)]
    assert len(sidecar_pids()) == 1


def test_a_loop_that_ended_with_a_call_in_flight_does_no_harm(store: Path) -> None:
    memory = MnemosyneMemory(store=store)

    async def leave() -> None:
        task = asyncio.create_task(memory.add(text("maybe")))
        await asyncio.sleep(0)
        del task

    asyncio.run(memory.add(text("first")))
    asyncio.run(leave())
    asyncio.run(memory.add(text("last")))
    assert asyncio.run(contents(memory))[-1] == exact(text("last"))
    assert requests_in_flight() == 0


def test_two_threads_with_a_loop_each_share_one_object_and_one_sidecar(store: Path) -> None:
    memory = MnemosyneMemory(store=store)
    failures: list[BaseException] = []

    async def work(who: str) -> None:
        await asyncio.gather(*(memory.add(text(f"{who} {number} " + "x" * 50_000)) for number in range(50)))
        for number in range(50, 100):
            await memory.add(text(f"{who} {number}"))
            await memory.query()

    def run(who: str) -> None:
        try:
            asyncio.run(work(who))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(who,)) for who in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(sidecar_pids()) == 1
    items = [str(item.content).split()[:2] for item in asyncio.run(memory.items())]
    for who in "ab":
        assert [number for owner, number in items if owner == who] == [str(number) for number in range(100)]


def test_memories_on_one_store_share_a_sidecar_however_its_path_is_spelled(store: Path) -> None:
    async def main() -> None:
        link = store.parent / "link"
        link.symlink_to(store)
        memories = [
            MnemosyneMemory("a", store),
            MnemosyneMemory("b", f"{store}/../store/"),
            MnemosyneMemory("c", link),
        ]
        await asyncio.gather(*(memory.add(text(memory.name)) for memory in memories))
        (pid,) = sidecar_pids()
        for memory in memories[:-1]:
            await memory.close()
            assert sidecar_pids() == [pid]
        assert await contents(memories[-1]) == [exact(text("c"))]
        await memories[-1].close()
        assert sidecar_pids() == []
        assert gone(pid)

    asyncio.run(main())


def test_two_stores_have_a_sidecar_each(store: Path) -> None:
    async def main() -> None:
        memories = [MnemosyneMemory("m", store / name) for name in "ab"]
        for memory in memories:
            await memory.add(text(str(memory.name)))
        assert len(sidecar_pids()) == 2
        for memory in memories:
            await memory.close()

    asyncio.run(main())


def test_close_may_be_called_twice_and_a_closed_memory_opens_itself(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.close()
        await memory.add(text("a"))
        await memory.close()
        await memory.close()
        assert sidecar_pids() == []
        await memory.add(text("b"))
        assert await contents(memory) == [exact(text("a")), exact(text("b"))]
        await memory.close()

    asyncio.run(main())


def test_closing_under_calls_in_flight_loses_none(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("first"))
        adds = [asyncio.create_task(memory.add(text(str(number)))) for number in range(100)]
        await asyncio.sleep(0)
        await memory.close()
        await asyncio.gather(*adds)
        assert len(await contents(memory)) == 101

    asyncio.run(main())


def test_without_a_store_the_environment_and_then_the_directory_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MnemosyneMemory()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MNEM_STORE", str(tmp_path / "from environment"))
    asyncio.run(memory.add(text("a")))
    monkeypatch.delenv("MNEM_STORE")
    asyncio.run(memory.add(text("b")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from environment"]
    asyncio.run(MnemosyneMemory().add(text("c")))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mnem", "from environment"]
    end_sidecars()


def test_store_and_endpoint_together_are_refused() -> None:
    with pytest.raises(ValueError, match="not both"):
        MnemosyneMemory(store="x", endpoint="tcp://host:1")
    for store in ("", "a\0b", "postgres://host/db"):
        with pytest.raises(ValueError, match="store"):
            MnemosyneMemory(store=store)


def test_a_copy_or_a_pickle_is_the_same_memory_not_connected(store: Path) -> None:
    memory = MnemosyneMemory("m", store, author="ann")
    asyncio.run(memory.add(text("a")))
    for twin in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        assert twin.dump_component() == memory.dump_component()
        assert asyncio.run(contents(twin)) == [exact(text("a"))]
        asyncio.run(twin.close())
    assert len(sidecar_pids()) == 1


def test_a_cancelled_call_leaves_the_stream_in_step(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("first"))
        acknowledged = {"first"}
        cancelled = 0
        for number in range(20):
            tasks = [asyncio.create_task(memory.add(text(f"{number} {each}"))) for each in range(10)]
            for _ in range(number % 4):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert outcomes[1::2] == [None] * 5
            for each, outcome in enumerate(outcomes):
                # On a busy machine a call may be done before it is cancelled: then it has landed.
                assert outcome is None or isinstance(outcome, asyncio.CancelledError)
                cancelled += outcome is not None
                if outcome is None:
                    acknowledged.add(f"{number} {each}")
        assert requests_in_flight() == 0
        items = [item.content for item in await memory.items()]
        assert len(set(map(str, items))) == len(items), "none landed twice"
        assert acknowledged <= set(map(str, items))
        assert cancelled >= 25, "those of every fourth round never began"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(memory.query(), 0)
        assert len(await contents(memory)) == len(items)

    asyncio.run(main())


def test_a_token_cancels_a_call_before_and_while_it_runs(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("first"), CancellationToken())
        cancelled = CancellationToken()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await memory.add(text("never"), cancelled)
        assert await contents(memory) == [exact(text("first"))]
        for call in (
            memory.add(text("x" * 1_000_000), token := CancellationToken()),
            memory.query("", token),
        ):
            task = asyncio.ensure_future(call)
            await asyncio.sleep(0)
            token.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert requests_in_flight() == 0
        await memory.add(text("last"), CancellationToken())
        assert (await contents(memory))[-1] == exact(text("last"))

    asyncio.run(main())


def test_a_token_keeps_nothing_of_the_calls_that_are_done(store: Path) -> None:
    async def main() -> None:
        memory, token = MnemosyneMemory(store=store), CancellationToken()
        await memory.add(text("a"), token)
        (await memory.query("", token)).results[0].metadata = {"marker of this test": 1}
        gc.collect()
        dicts = [cast("dict[object, object]", each) for each in gc.get_objects() if type(each) is dict]
        assert not any("marker of this test" in each for each in dicts)
        token.cancel()
        assert len(await contents(memory)) == 1

    asyncio.run(main())


def test_a_memory_that_is_dropped_unclosed_does_not_keep_the_sidecar_of_others(store: Path) -> None:
    kept, dropped = MnemosyneMemory("kept", store), MnemosyneMemory("dropped", store)
    asyncio.run(kept.add(text("a")))
    asyncio.run(dropped.add(text("b")))
    (pid,) = sidecar_pids()
    del dropped
    gc.collect()
    asyncio.run(kept.add(text("c")))
    assert sidecar_pids() == [pid]
    asyncio.run(kept.close())
    assert gone(pid)


def test_memories_made_for_one_call_each_use_one_sidecar(store: Path) -> None:
    for number in range(3):
        asyncio.run(MnemosyneMemory("m", store).add(text(str(number))))
        gc.collect()
    assert len(sidecar_pids()) == 1
    assert len(asyncio.run(MnemosyneMemory("m", store).items())) == 3


def test_fifty_rounds_of_open_and_close_leave_nothing_behind(store: Path) -> None:
    async def round_() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("a"))
        await memory.close()

    def held() -> tuple[int, int, list[int]]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), children(os.getpid())

    if not Path("/proc/self/fd").exists():
        pytest.skip("no /proc/self/fd here to count open files in")
    asyncio.run(round_())
    before = held()
    for _ in range(50):
        asyncio.run(round_())
    assert held() == before


def test_a_restart_in_mid_use_leaves_nothing_behind(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        await memory.add(text("a"))
        for _ in range(5):
            pid = kill_sidecar()
            await memory.query()
            assert gone(pid), "no zombie"
            assert len(sidecar_pids()) == 1
        await memory.close()
        assert children(os.getpid()) == []

    asyncio.run(main())
