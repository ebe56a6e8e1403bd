"""The replay itself: every recorded request gets its recorded answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from replay import about_headers

HERE = Path(__file__).parent
CAPTURES = HERE.parents[2] / "shared" / "captures" / "servers"
NAMES = sorted(path.name for path in CAPTURES.glob("*.json"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the captures are not beside this repository")


def summary(message: dict) -> object:
    """What the summary of a capture keeps of an answer."""
    return message["error"]["code"] if "error" in message else sorted(message["result"])


def play(name: str, requests: list[dict]) -> dict[object, dict]:
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(HERE / "replay.py"), str(CAPTURES / name)],
        input=lines,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return {message["id"]: message for message in messages if "method" not in message}


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_answers_what_was_recorded_as_it_was_recorded(name: str) -> None:
    capture = json.loads((CAPTURES / name).read_text("utf-8"))
    sent = [entry for entry in capture["log"] if entry["dir"] == ">" and "method" in entry["msg"]]
    messages = [entry["msg"] for entry in sent if not about_headers(entry)]
    asked = {message["id"] for message in messages if "id" in message}
    got = play(name, messages)
    recorded: dict[object, dict] = {}
    for entry in capture["log"]:
        message = entry["msg"]
        if entry["dir"] == "<" and "method" not in message and message.get("id") in asked:
            recorded.setdefault(message["id"], message)
    assert {key: summary(got[key]) for key in recorded if key in got} == {
        key: summary(message) for key, message in recorded.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_refuses_a_method_that_was_never_asked_as_the_server_refused_an_unknown_one(name: str) -> None:
    capture = json.loads((CAPTURES / name).read_text("utf-8"))
    unknown = next(
        entry["msg"]
        for entry in capture["log"]
        if entry["dir"] == ">" and entry["msg"].get("method") == "probe/unknown"
    )
    expected = capture["methods"]["probe/unknown"].get("code", -32600)
    got = play(name, [{**unknown, "id": 1, "method": "never/asked"}])
    assert got[1]["error"]["code"] == expected
