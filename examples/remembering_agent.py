"""An AutoGen agent whose memory survives kill -9: the story that `npm run demo` tells.

A first process teaches an agent three things, its sidecar is killed with -9, and the process ends. A second
process starts an agent that knows all of it; then the memory is cleared, and the history still answers. No
model is called: AutoGen's own replay client takes the place of one and keeps what it was shown. Everything
that is claimed is checked; the exit status is 0 only when all of it held.

Run it by hand with `.venv/bin/python examples/remembering_agent.py [STORE_DIRECTORY]`.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.models import SystemMessage
from autogen_ext.models.replay import ReplayChatCompletionClient
from PIL import Image as Pixels

from mnem_autogen import Commit, MnemosyneMemory

STORE = Path(__file__).resolve().parent.parent / ".demo" / "store"
TEXT = "Ada prefers metric units."
FACTS: dict[str, Any] = {"city": "Zürich", "desk": {"height_cm": 72.0, "lamps": 2}}


def lessons() -> list[MemoryContent]:
    """What the agent is taught: text, JSON, and an image."""
    badge = Image(Pixels.new("RGB", (4, 4), (20, 120, 90)))
    return [
        MemoryContent(content=TEXT, mime_type=MemoryMimeType.TEXT),
        MemoryContent(content=FACTS, mime_type=MemoryMimeType.JSON, metadata={"source": "survey 7"}),
        MemoryContent(content=badge, mime_type=MemoryMimeType.IMAGE),
    ]


def say(text: str = "") -> None:
    """Print a line of the story."""
    print(text, flush=True)


def claim(text: str, held: bool) -> None:
    """Print a claim, and end the story where it does not hold."""
    say(f"   {'✓' if held else '✗'} {text}")
    if not held:
        sys.exit(f"\nThe demo failed: it is not true that {text}")


def describe(commit: Commit) -> str:
    """Show a commit as one line."""
    when = datetime.fromtimestamp(commit.time / 1000).strftime("%H:%M:%S")
    return f"{commit.id[:12]}  {when}  {commit.author}: {commit.message}"


async def run_agent(memory: MnemosyneMemory, task: str, answer: str) -> str:
    """Run an agent on a task, show what its model was given, and return the message with the memories."""
    model = ReplayChatCompletionClient([answer])
    agent = AssistantAgent("helper", model_client=model, memory=[memory], system_message="You help Ada.")
    await agent.run(task=task)
    say("   What the model is shown:")
    memories = ""
    for message in model.create_calls[-1]["messages"]:
        text = str(message.content)
        if isinstance(message, SystemMessage) and "Relevant memory content" in text:
            memories = text
        for line in text.strip().splitlines():
            say(f"      {message.type:<13}| {line}")
    return memories


async def expected_text() -> str:
    """Render the same lessons with AutoGen's ListMemory."""
    plain = ListMemory(memory_contents=lessons())
    model = ReplayChatCompletionClient(["ok"])
    await AssistantAgent("helper", model_client=model, memory=[plain], system_message="You help Ada.").run(
        task="hello"
    )
    shown = [message.content for message in model.create_calls[-1]["messages"]]
    return next(text for text in shown if isinstance(text, str) and "Relevant memory content" in text)


def without_address(text: str) -> str:
    """Drop the object address that `str` of an image shows; it differs from run to run."""
    return re.sub(r"object at 0x[0-9a-f]+", "object", text)


def sidecars_of(parent: int) -> list[int]:
    """Find the sidecars that a process started."""
    processes = Path("/proc")
    if processes.is_dir():
        found: list[int] = []
        for directory in processes.glob("[0-9]*"):
            try:
                command = (directory / "cmdline").read_text()
                status = (directory / "stat").read_text()
            except OSError:
                continue  # It ended while we looked.
            if "mnem-sidecar" in command and int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(directory.name))
        return found
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in listing.stdout.splitlines()]
    return [int(pid) for pid, ppid, args in rows if int(ppid) == parent and "mnem-sidecar" in args]


def kill_sidecars() -> int:
    """Kill the sidecars of this process with -9, as a crash would, and say how many there were."""
    pids = sidecars_of(os.getpid())
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


async def teach(store: str) -> None:
    """The first process: an agent learns, then everything dies."""
    memory = MnemosyneMemory("prefs", store)
    for lesson in lessons():
        await memory.add(lesson)
    say(f"   Process {os.getpid()} taught the agent three things: text, JSON and an image.")
    shown = await run_agent(memory, "What do you know about me?", "You like metric units.")
    claim(
        "the model sees what ListMemory would have shown it",
        without_address(shown) == without_address(await expected_text()),
    )
    claim("its sidecar is killed with -9, and nothing is closed properly", kill_sidecars() == 1)
    os._exit(0)


async def recall(store: str) -> None:
    """The second process: the agent knows everything, and the history answers."""
    memory = MnemosyneMemory("prefs", store)
    say(f"   Process {os.getpid()} starts an agent on the same store.")
    shown = await run_agent(memory, "Which units should you use?", "Metric ones.")
    claim(
        "it knows all that the first one was taught, to the letter",
        without_address(shown) == without_address(await expected_text()),
    )
    results = (await memory.query()).results
    claim("the JSON is equal, its numbers' kinds and its order too", str(results[1].content) == str(FACTS))
    original, picture = lessons()[2].content, results[2].content
    same = (
        isinstance(original, Image)
        and isinstance(picture, Image)
        and picture.to_base64() == original.to_base64()
    )
    claim("the image has the same pixels", same)

    say("\n3. The memory is cleared. What was in it is not lost.")
    before = await memory.head()
    assert before is not None
    await memory.clear()
    claim("the agent knows nothing any more", (await memory.query()).results == [])
    commits = await memory.log(4)
    say("   The log, newest first:")
    for commit in commits:
        say(f"      {describe(commit)}")
    say("   (4 nodes: three items, and the counter that numbers them.)")
    claim(
        "each add and the clear is a commit",
        [c.message for c in commits] == ["forget 4 nodes", *["add item to prefs"] * 3],
    )
    snapshot = await memory.show(before)
    say(f"   What it knew at {before[:12]}, just before:")
    for item in snapshot.items:
        say(f"      {item.id}  {without_address(str(item.content))}")
    claim(
        "all three are there",
        [item.content for item in snapshot.items[:2]] == [TEXT, FACTS] and len(snapshot.items) == 3,
    )
    blame = await memory.why("prefs:0000000001", at=before)
    say("   Why did it believe the second one?")
    say(f"      {describe(blame.commit)}")
    claim("`why` names the commit that brought it in", blame.commit == commits[2])
    await memory.close()
    claim("and the sidecar ended with its last user", sidecars_of(os.getpid()) == [])


def play(part: str, store: str) -> None:
    """Run one part of the story in a process of its own."""
    status = subprocess.run([sys.executable, __file__, part, store], check=False).returncode
    if status != 0:
        sys.exit(status)


async def begin(store: str) -> None:
    """Look at the store before the story starts: an earlier run may have left its history there."""
    memory = MnemosyneMemory("prefs", store)
    earlier = (await memory.stats()).commits
    if earlier:
        say(f"The store already holds {earlier} commits of earlier runs; this one goes on from there.\n")
        await memory.clear()
    await memory.close()


def main() -> None:
    """Tell the story, or play the part of it that the arguments name."""
    parts = {"teach": teach, "recall": recall}
    if len(sys.argv) == 3 and sys.argv[1] in parts:
        asyncio.run(parts[sys.argv[1]](sys.argv[2]))
        return
    store = sys.argv[1] if len(sys.argv) > 1 else str(STORE)
    say("\nAn AutoGen agent whose memory survives kill -9")
    say("===============================================")
    asyncio.run(begin(store))
    say("1. An agent learns. Each thing that it learns is on disk before `add` returns.")
    play("teach", store)
    say("\n2. Nothing of that process is left. A new one begins.")
    play("recall", store)
    say("\nAll of it held. Run it again: the history goes on.")


if __name__ == "__main__":
    main()
