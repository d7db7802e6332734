"""What an add costs from Python, as a ratio to the floor: append 300 bytes and fdatasync, in the same run.

Rounds of both alternate, so that a disk which gets slower does so for both. Run with
`.venv/bin/python test/bench/add.py [ITEMS ...]`: each number is a size of the memory to measure at.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from autogen_core.memory import MemoryContent

from mnem_autogen import MnemosyneMemory

ROUNDS = 7
ADDS = 100
BATCH = 5000


def raw(file: int) -> list[float]:
    """Append and sync, and take the seconds of each."""
    taken: list[float] = []
    for _ in range(ADDS):
        start = time.perf_counter()
        os.write(file, b"x" * 300)
        os.fdatasync(file)
        taken.append(time.perf_counter() - start)
    return taken


async def adds(memory: MnemosyneMemory) -> list[float]:
    """Add one item after another, and take the seconds of each."""
    taken: list[float] = []
    for number in range(ADDS):
        content = MemoryContent(content=f"{number:>100}", mime_type="text/plain")
        start = time.perf_counter()
        await memory.add(content)
        taken.append(time.perf_counter() - start)
    return taken


async def measure(folder: Path, size: int) -> None:
    """Print the median cost of an add to a memory of this size, against the floor."""
    memory = MnemosyneMemory(f"of {size}", folder / "store")
    for start in range(0, size, BATCH):
        count = min(BATCH, size - start)
        await memory.add_many([MemoryContent(content="x" * 100, mime_type="text/plain")] * count)
    file = os.open(folder / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    await adds(memory)
    raw(file)
    ratios: list[float] = []
    for _ in range(ROUNDS):
        floor = statistics.median(raw(file))
        ours = statistics.median(await adds(memory))
        ratios.append(ours / floor)
    os.close(file)
    await memory.close()
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"{size:>9,} items: add p50 {ours * 1e6:7.0f} us, {middle:5.1f} x raw ({low:.1f} to {high:.1f})")


async def main() -> None:
    """Measure at the sizes given."""
    sizes = [int(size) for size in sys.argv[1:]] or [0, 1000, 10_000]
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            await measure(Path(folder), size)


asyncio.run(main())
