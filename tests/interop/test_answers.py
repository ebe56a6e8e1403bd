"""Servers that others wrote ask clients that others wrote, through the gateway, in every pair of eras."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conformance
import pytest
from ahead import Ahead, need, printed, selected
from conformance import CLIENTS, ENVS, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

NPM = ENVS / "npm"
NODE_SERVER = NPM / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
FILES = NPM / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
PEOPLE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mcp2": ((sys.executable, "answers_mcp2.py"), ("legacy", "modern")),
    "mcp1": ((conformance.MCP1, "answers_mcp1.py"), ("legacy",)),
    "fastmcp4": ((sys.executable, "answers_fastmcp4.py"), ("legacy", "modern")),
    "ts1": (("node", "answers_ts.mjs", "1"), ("legacy",)),
    "ts2": (("node", "answers_ts.mjs", "2"), ("legacy", "modern")),
}
"""Clients of others: how the script is started, and the eras that it speaks."""
EACH = [(name, mode) for name, (_, modes) in PEOPLE.items() for mode in modes]
ON_PIPES = [("mcp2-stdio", "legacy"), ("mcp2-stdio", "modern")]
EVERY: dict[str, tuple[dict[str, Any], str]] = {
    "test_input_required_result_elicitation": ({}, '"name": "Ada"'),
    "test_input_required_result_sampling": ({}, '"text": "Paris"'),
    "test_input_required_result_list_roots": ({}, '"uri": "file:///ada/answers"'),
    "test_input_required_result_multiple_inputs": ({}, '"uri": "file:///ada/answers"'),
}
"""Tools that ask -> arguments, and what the answer has made of their text."""
THEIRS: dict[str, tuple[dict[str, Any], str]] = {
    "trigger-elicitation-request": ({}, "Name: Ada"),
    "trigger-sampling-request": ({"prompt": "The capital of France?", "maxTokens": 10}, "Paris"),
    "get-roots-list": ({}, "file:///ada/answers"),
}
"""The same of the reference server."""
ASKERS = {"legacy": EVERY, "modern": EVERY, "legacy-stdio": EVERY, "reference": THEIRS}

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900), pytest.mark.behaviour("GEN-D2")]


@contextmanager
def asker(kind: str, folder: Path) -> Iterator[dict[str, Any]]:
    """A server that asks: its entry in a configuration."""
    if kind == "reference":
        need(NODE_SERVER)
        yield {"command": "node", "args": [str(NODE_SERVER), "stdio"]}
        return
    need(Path(KINDS[kind].command[0]))
    with conformance.upstream(KINDS[kind], folder) as (_, entry):
        yield entry


@contextmanager
def target(over: str, entry: dict[str, Any], folder: Path) -> Iterator[str]:
    """The gateway: its URL; or, on pipes, the configuration that the client starts it with."""
    if over != "stdio":
        with conformance.gateway(entry, folder) as url:
            yield url
        return
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"asker": entry}}), "utf-8")
    yield str(config)


def answered(base: Path, name: str, mode: str, kind: str) -> dict[str, str]:
    """Text of each tool's result, by the client's account."""
    folder = base / f"{name}-{mode}-{kind}"
    folder.mkdir()
    name, _, over = name.partition("-")
    (program, script, *more), _ = PEOPLE[name]
    need(Path(program) if "/" in program else NPM / ".stamp")
    calls = {tool: given for tool, (given, _) in ASKERS[kind].items()}
    with asker(kind, folder) as entry, target(over, entry, folder) as url:
        words = [program, str(CLIENTS / script), *more, "--mode", mode, url, json.dumps(calls)]
        return printed(words, {"TROTH_NPM": str(NPM)})


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ahead]:
    wanted = selected(
        request, test_what_a_client_answers_reaches_the_server_that_asked.__name__, "name", "mode", "kind"
    )
    made = Ahead(partial(answered, tmp_path_factory.mktemp("answers")), wanted)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ASKERS)
@pytest.mark.parametrize(("name", "mode"), [*EACH, *ON_PIPES], ids=lambda value: value)
def test_what_a_client_answers_reaches_the_server_that_asked(answers: Ahead, name: str, mode: str, kind: str) -> None:
    found = answers[name, mode, kind]
    missing = {tool: found.get(tool) for tool, (_, said) in ASKERS[kind].items() if said not in found.get(tool, "")}
    assert missing == {}


@pytest.mark.parametrize("mode", PEOPLE["mcp2"][1])
def test_a_server_that_asks_for_folders_when_it_starts_works_in_those_of_its_host(mode: str, tmp_path: Path) -> None:
    need(FILES)
    folder = tmp_path / "mine"
    folder.mkdir()
    entry = {"command": "node", "args": [str(FILES)]}
    with target("stdio", entry, tmp_path) as config:
        words = [sys.executable, str(CLIENTS / "answers_mcp2.py"), "--mode", mode, config]
        # It takes folders in while it answers: what it says first is not what it knows then.
        calls = {"list_directory": {"path": str(folder)}, "list_allowed_directories": {}}
        given = {"TROTH_ROOT": folder.as_uri(), "TROTH_UNTIL": str(folder)}
        found = printed([*words, json.dumps(calls)], given)
    assert str(folder) in found["list_allowed_directories"]
