"""Drive the outside implementation (``mnem-agents``) and say what it made.

Reads one JSON object a line: ``{"add": [[id, content, {provenance, event_time}], ...], "rm": [id, ...],
"message", "author", "time"}``. Answers one line each: the ids of the commit and its state, and the contents
as the reference holds them, each as JSON text (its JSON reader is an ulp off for some floats, so those are
what the same ids must come from).
"""

import json
import sys
import tempfile

import mnem


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = mnem.init(folder)
        for line in sys.stdin:
            step = json.loads(line)
            for node_id, content, extra in step["add"]:
                provenance = mnem.Provenance(**extra["provenance"]) if "provenance" in extra else None
                store.add(node_id, content, provenance=provenance, event_time=extra.get("event_time"))
            for node_id in step["rm"]:
                store.rm(node_id)
            store.commit(step["message"], author=step["author"], time_ms=step["time"])
            newest = store.log()[0]
            # Reading one node back costs the reference a pass over all of them.
            asked = step["add"] if len(step["add"]) < 1000 else []
            held = [json.dumps(store.working_node(node_id).content) for node_id, _, _ in asked]
            print(json.dumps({"commit": newest.id, "state": newest.state, "held": held}), flush=True)


main()
