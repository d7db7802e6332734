"""An AutoGen agent whose memory is kept by a sidecar in a container of its own (compose.yaml).

The sidecar's address comes from MNEM_ENDPOINT. No model is called: AutoGen's replay client takes the place
of one.
"""

from __future__ import annotations

import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent
from autogen_ext.models.replay import ReplayChatCompletionClient

from mnem_autogen import MnemosyneMemory


async def main() -> None:
    """Tell what is known, and learn one thing more."""
    memory = MnemosyneMemory("visits", endpoint=os.environ["MNEM_ENDPOINT"])
    known = await memory.items()
    await memory.add(MemoryContent(content=f"This is visit {len(known) + 1}.", mime_type="text/plain"))

    model = ReplayChatCompletionClient(["Welcome back."])  # put your model client here
    agent = AssistantAgent("doorman", model_client=model, memory=[memory])
    await agent.run(task="Have I been here before?")
    for message in model.create_calls[-1]["messages"]:
        print(message.content)
    await memory.close()


asyncio.run(main())
