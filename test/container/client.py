"""What the container's tests have the Python client do.

client.py ENDPOINT add COUNT     add so many items in each of eight lanes; print what was acknowledged
client.py ENDPOINT items         print the texts of all items

An add that fails ends its lane: a server that was stopped is not waited for.
"""

from __future__ import annotations

import asyncio
import sys

from autogen_core.memory import MemoryContent

from mnem_autogen import MnemError, MnemosyneMemory

_LANES = 8


async def _add(memory: MnemosyneMemory, lane: int, count: int) -> None:
    for number in range(count):
        text = f"{lane} {number}"
        try:
            await memory.add(MemoryContent(content=text, mime_type="text/plain"))
        except MnemError:
            return
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


async def main() -> None:
    """Run the command line."""
    endpoint, command, *rest = sys.argv[1:]
    memory = MnemosyneMemory("load", endpoint=endpoint, connect_timeout=0.5)
    if command == "add":
        await asyncio.gather(*(_add(memory, lane, int(rest[0])) for lane in range(_LANES)))
    else:
        for item in await memory.items():
            sys.stdout.write(f"{item.content}\n")
    await memory.close()


asyncio.run(main())
