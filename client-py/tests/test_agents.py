"""Real AutoGen agents and teams with this memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import MemoryQueryEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.models import SystemMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from mnem_autogen import MnemosyneMemory
from support import context_text, data, exact, picture, run_script, text


def agent(memory: Any, client: ReplayChatCompletionClient, name: str = "agent") -> AssistantAgent:
    return AssistantAgent(name, model_client=client, memory=[memory], system_message="You remember.")


def seen_by_model(client: ReplayChatCompletionClient) -> list[list[str]]:
    """For each call, the system messages that the model saw."""
    return [
        [message.content for message in call["messages"] if isinstance(message, SystemMessage)]
        for call in client.create_calls
    ]


def test_an_agent_sees_what_it_would_see_with_list_memory(store: Path) -> None:
    async def main() -> None:
        seen: list[list[list[str]]] = []
        for memory in (MnemosyneMemory(store=store), ListMemory()):
            await memory.add(text("The user prefers metric units."))
            await memory.add(data({"home": "Graz", "rooms": 3, "size": 71.0}))
            client = ReplayChatCompletionClient(["one", "two"])
            each = agent(memory, client)
            await each.run(task="What do you know?")
            await memory.add(text("The user has a dog."))
            await each.run(task="And now?")
            seen.append(seen_by_model(client))
        assert seen[0] == seen[1]
        assert seen[0][1][-1].endswith("3. The user has a dog.\n")

    asyncio.run(main())


def test_an_image_in_the_memory_does_not_end_an_agents_turn(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory(store=store)
        image = MemoryContent(content=picture(), mime_type=MemoryMimeType.IMAGE)
        await memory.add(image)
        result = await agent(memory, ReplayChatCompletionClient(["done"])).run(task="Look.")
        assert result.messages[-1].to_text() == "done"  # type: ignore[union-attr]
        (event,) = [message for message in result.messages if isinstance(message, MemoryQueryEvent)]
        assert [exact(content) for content in event.content] == [exact(image)]

    asyncio.run(main())


def test_a_team_of_two_shares_one_memory(store: Path) -> None:
    async def main() -> None:
        memory = MnemosyneMemory("team", store)
        await memory.add(text("We answer in German."))
        clients = [ReplayChatCompletionClient([f"{name} one", f"{name} two"]) for name in ("ann", "ben")]
        team = RoundRobinGroupChat(
            [agent(memory, client, name) for name, client in zip(("ann", "ben"), clients, strict=True)],
            termination_condition=MaxMessageTermination(5),
        )
        result: TaskResult | None = None
        async for message in team.run_stream(task="Go."):
            if isinstance(message, TaskResult):
                result = message
            elif message.to_text() == "ann one":  # type: ignore[union-attr]
                await memory.add(text("Ann has spoken."))
        assert result is not None
        assert [message.source for message in result.messages if message.source != "user"].count("ben") >= 2  # type: ignore[union-attr]
        expected = ["You remember.", *await context_text(memory)]
        assert seen_by_model(clients[1])[-1][-1] == expected[-1]
        assert "2. Ann has spoken." in expected[-1]

    asyncio.run(main())


LOAD = """
import asyncio, json, sys
from autogen_agentchat.agents import AssistantAgent

async def main():
    agent = AssistantAgent.load_component(json.loads(sys.argv[1]))
    (memory,) = agent._memory
    from mnem_autogen import _registry
    assert not _registry.connections(), "loading opens nothing"
    results = (await memory.query()).results
    result = await agent.run(task="What do you know?")
    print(json.dumps([[each.content, each.mime_type.value, each.metadata] for each in results]))
    print(result.messages[-1].content)

asyncio.run(main())
"""


def test_an_agent_that_was_dumped_remembers_in_another_process(store: Path) -> None:
    async def main() -> str:
        memory = MnemosyneMemory("saved", store, author="somebody")
        await memory.add(MemoryContent(content="é 👩‍👩‍👧", mime_type="text/plain", metadata={"n": 1.0}))
        await memory.add(data({"a": [1, 2.5, None]}))
        dumped = agent(memory, ReplayChatCompletionClient(["I know."])).dump_component().model_dump_json()
        await memory.close()
        return dumped

    dumped = asyncio.run(main())
    assert json.loads(dumped)["config"]["memory"][0]["provider"] == "mnem_autogen.MnemosyneMemory"
    done = run_script(LOAD, dumped)
    assert done.returncode == 0, done.stderr
    items, answer = done.stdout.splitlines()
    assert json.loads(items) == [
        ["é 👩‍👩‍👧", "text/plain", {"n": 1.0}],
        [{"a": [1, 2.5, None]}, "application/json", None],
    ]
    assert answer == "I know."


def test_a_dump_holds_every_setting_but_no_secret() -> None:
    memory = MnemosyneMemory("m", endpoint="tcp://host:1", token="s3cret", branch="b", author="a")
    dumped = memory.dump_component()
    assert dumped.config == {"name": "m", "endpoint": "tcp://host:1", "branch": "b", "author": "a"}
    assert "s3cret" not in dumped.model_dump_json()
    loaded = MnemosyneMemory.load_component(dumped)
    assert loaded.dump_component() == dumped
    dumped.config["token"] = "s3cret"
    assert "s3cret" not in MnemosyneMemory.load_component(dumped).dump_component().model_dump_json()


def test_a_relative_store_is_fixed_when_the_memory_is_made(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    memory = MnemosyneMemory(store="here/../there")
    monkeypatch.chdir("/")
    assert memory.dump_component().config["store"] == str(tmp_path / "there")
    assert "store" not in MnemosyneMemory().dump_component().config
