"""Have the outside implementation (``mnem-agents``) make branches and merges, and say what it sees.

Reads one JSON object a line, ``{"do": NAME, ...}``, and answers each with one line: its result, or
``{"refused": CLASS}`` where it raises.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import mnem


def _commit(store: Any, ask: dict[str, Any]) -> object:
    _on(store, ask["branch"])
    for node_id, content in ask["add"]:
        store.add(node_id, content)
    for node_id in ask["rm"]:
        store.rm(node_id)
    commit = store.commit(ask["message"], author=ask["author"], time_ms=ask["time"])
    return {"commit": commit, "state": _newest(store, commit).state}


def _on(store: Any, branch: str) -> None:
    # A branch without a commit can't be checked out, and is where a new store is.
    if store.head() != f"ref: {branch}":
        store.checkout(branch)


def _newest(store: Any, commit: str) -> Any:
    return next(each for each in store.log(limit=5) if each.id == commit)


def _branch(store: Any, ask: dict[str, Any]) -> object:
    store.new_branch(ask["name"], start=ask["at"])
    return None


def _merge(store: Any, ask: dict[str, Any]) -> object:
    _on(store, ask["into"])
    result = store.merge(ask["from"], message=ask["message"], author=ask["author"], time_ms=ask["time"])
    conflicts = [[each.id, each.kind] for each in result.conflicts]
    return {"status": result.status, "commit": result.commit, "conflicts": conflicts}


def _log(store: Any, ask: dict[str, Any]) -> object:
    _on(store, ask["branch"])
    return [commit.id for commit in store.log(first_parent=ask["first_parent"])]


def _diff(store: Any, ask: dict[str, Any]) -> object:
    return [[each.id, each.kind] for each in store.diff(ask["from"], ask["to"])]


def _changed(store: Any, ask: dict[str, Any]) -> object:
    return store.changed_by(ask["commit"])


def _blame(store: Any, ask: dict[str, Any]) -> object:
    return store.blame(ask["id"], ask["at"]).commit


def _bisect(store: Any, ask: dict[str, Any]) -> object:
    def holds(memory: dict[str, Any]) -> bool:
        return any(
            isinstance(node.content, dict) and ask["contains"] in node.content["content"]
            for node in memory.values()
        )

    return store.bisect(holds, bad=ask["bad"], good=ask["good"])


_DO = {
    "commit": _commit,
    "branch": _branch,
    "merge": _merge,
    "log": _log,
    "diff": _diff,
    "changed": _changed,
    "blame": _blame,
    "bisect": _bisect,
}


def main() -> None:
    """Answer until the input ends."""
    with tempfile.TemporaryDirectory() as folder:
        store = mnem.init(folder)
        for line in sys.stdin:
            ask = json.loads(line)
            try:
                answer = _DO[ask["do"]](store, ask)
            except mnem.MnemError as error:
                answer = {"refused": type(error).__name__}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


main()
