"""The player of cases itself."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest
from more import CASES
from player import main

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


Play = Callable[..., list[dict]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Play:
    """Sends messages to the player of a case; all that it sends back."""

    def ask(case: dict, *messages: dict) -> list[dict]:
        lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
        monkeypatch.setattr(sys, "argv", ["player.py", json.dumps(case)])
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(lines)))
        main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def initialize(number: int = 1) -> dict:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    return {"id": number, "method": "initialize", "params": params}


def test_ids_of_cases_are_unique() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) >= 30


def test_a_case_can_declare_differently_in_each_era(play: Play) -> None:
    case = {"id": "x", "rev": "2025-11-25", "declare": {"tools": {}}, "behave": {"modern_declare": {"prompts": {}}}}
    discover = {"id": 1, "method": "server/discover", "params": {"_meta": META}}
    assert play(case, discover)[0]["result"]["capabilities"] == {"prompts": {}}
    assert play(case, initialize())[0]["result"]["capabilities"] == {"tools": {}}


def test_a_declared_list_is_served_and_an_undeclared_one_refused(play: Play) -> None:
    case = {"id": "x", "rev": "2025-11-25", "declare": {"prompts": {}}}
    listed = {"id": 2, "method": "prompts/list"}
    refused = {"id": 3, "method": "tools/list"}
    _, prompts, tools = play(case, initialize(), listed, refused)
    assert prompts["result"] == {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}
    assert tools["error"]["code"] == -32601


def test_a_list_grows_with_an_announcement_if_the_case_says_so(play: Play) -> None:
    behave = {"grow_on_call": "prompts", "announce": True}
    case = {"id": "x", "rev": "2025-11-25", "declare": {"prompts": {}, "tools": {}}, "behave": behave}
    call = {"id": 2, "method": "tools/call", "params": {"name": "act"}}
    _, announced, called, listed = play(case, initialize(), call, {"id": 3, "method": "prompts/list"})
    assert announced["method"] == "notifications/prompts/list_changed"
    assert called["result"] == {"content": [{"type": "text", "text": "ok"}]}
    assert [prompt["name"] for prompt in listed["result"]["prompts"]] == ["greet", "late1"]


def test_a_modern_listen_stream_acknowledges_what_is_declared_and_carries_it(play: Play) -> None:
    behave = {"grow_on_call": True, "announce": True}
    case = {"id": "x", "rev": "2026-07-28", "declare": {"tools": {"listChanged": True}}, "behave": behave}
    wanted = {"toolsListChanged": True, "promptsListChanged": True}
    listen = {"id": 7, "method": "subscriptions/listen", "params": {"_meta": META, "notifications": wanted}}
    call = {"id": 8, "method": "tools/call", "params": {"_meta": META, "name": "act"}}
    acknowledged, announced, _ = play(case, listen, call)
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert announced["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 7}


def opening(case: dict) -> str:
    return "server/discover" if case["rev"] == "2026-07-28" else "initialize"


PLAIN = [case for case in CASES if not {opening(case), "junk", "exit"} & set(case["behave"])]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_a_case_declares_what_it_says(case: dict, play: Play) -> None:
    params = {**initialize()["params"], "_meta": META}
    first = play(case, {"id": 1, "method": opening(case), "params": params})[0]
    assert first["result"]["capabilities"] == case["declare"]
