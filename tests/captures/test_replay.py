"""The replay itself: every recorded request gets its recorded answer."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from replay import about_headers, main

CAPTURES = Path(__file__).parents[3] / "shared" / "captures" / "servers"
NAMES = sorted(path.name for path in CAPTURES.glob("*.json"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the captures are not beside this repository")


def summary(message: dict) -> object:
    """What the summary of a capture keeps of an answer."""
    return message["error"]["code"] if "error" in message else sorted(message["result"])


Play = Callable[[str, list[dict]], dict[object, dict]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Play:
    """Sends requests to the replay of a capture; the answers by id."""

    def ask(name: str, requests: list[dict]) -> dict[object, dict]:
        monkeypatch.setattr(sys, "argv", ["replay.py", str(CAPTURES / name)])
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(request) + "\n" for request in requests)))
        main()
        messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return {message["id"]: message for message in messages if "method" not in message}

    return ask


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_answers_what_was_recorded_as_it_was_recorded(name: str, play: Play) -> None:
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
def test_a_replay_refuses_what_was_never_asked_as_the_server_refused_the_unknown(name: str, play: Play) -> None:
    capture = json.loads((CAPTURES / name).read_text("utf-8"))
    unknown = next(
        entry["msg"]
        for entry in capture["log"]
        if entry["dir"] == ">" and entry["msg"].get("method") == "probe/unknown"
    )
    expected = capture["methods"]["probe/unknown"].get("code", -32600)
    got = play(name, [{**unknown, "id": 1, "method": "never/asked"}])
    assert got[1]["error"]["code"] == expected
