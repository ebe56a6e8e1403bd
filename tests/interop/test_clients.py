"""Clients that others wrote see the same through the gateway as directly: over HTTP and stdio, in both eras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conformance
import pytest
from conformance import CLIENTS, ENVS, KINDS
from every import PROMPTS, RESOURCES, TEMPLATE, TOOLS
from seen import EXPECTED, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
SECONDS = 90
REVISIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
ALL = replace(
    EXPECTED,
    tools=sorted(TOOLS),
    prompts=sorted(PROMPTS),
    resources=sorted(RESOURCES),
    templates=[TEMPLATE],
)
QUIET: dict[str, Any] = {"logs": [], "changed": [], "later": False, "updated": []}
"""Members of a client that shows no notifications."""

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class Client:
    """A client of others.

    Attributes:
        command: How its script is started.
        modes: The eras that it speaks.
        needs: Files that an environment must have.
        differs: What it sees otherwise, by mode.
    """

    command: tuple[str, ...]
    modes: tuple[str, ...] = ("legacy", "modern")
    needs: tuple[Path, ...] = ()
    differs: dict[str, dict[str, Any]] = field(default_factory=dict)


INSPECTOR = ENVS / "tools/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
NPM = ENVS / "npm"
UNSEEN = {**QUIET, "revision": "", "missing": 0, "completion": [], "progress": []}
PEOPLE = {
    "mcp2": Client((sys.executable, "mcp2.py")),
    "mcp1": Client((conformance.MCP1, "mcp1.py"), ("legacy",), (Path(conformance.MCP1),)),
    "fastmcp4": Client((sys.executable, "fastmcp4.py"), differs={"modern": QUIET}),
    "ts1": Client(("node", "ts1.mjs"), ("legacy",), (NPM / ".stamp",)),
    # It makes the older code of an absent resource the newer one.
    "ts2": Client(("node", "ts2.mjs"), needs=(NPM / ".stamp",), differs={"legacy": {"missing": -32602}}),
    "inspector": Client(
        (sys.executable, "inspector.py"), needs=(INSPECTOR,), differs={"legacy": UNSEEN, "modern": UNSEEN}
    ),
}
EACH = [(name, mode) for name, client in PEOPLE.items() for mode in client.modes]


def expected(name: str, mode: str) -> Seen:
    missing = {"legacy": -32002, "modern": -32602}[mode]
    whole = replace(ALL, revision=REVISIONS[mode], missing=missing)
    return replace(whole, **PEOPLE[name].differs.get(mode, {}))


def look(name: str, mode: str, target: list[str]) -> dict[str, Any]:
    """What a client says that it saw.

    Raises:
        AssertionError: It failed; with the end of what it wrote.
    """
    client = PEOPLE[name]
    for needed in (*client.needs, conformance.node()):
        if not needed.is_file():
            word = f"{needed} is missing: run `make envs` (it needs node and npm)"
            pytest.fail(word) if IN_CI else pytest.skip(word)
    node = {"TROTH_NPM": str(NPM), "TROTH_NODE": str(conformance.node()), "TROTH_INSPECTOR": str(INSPECTOR)}
    program, script = client.command
    done = subprocess.run(
        [program, str(CLIENTS / script), "--mode", mode, *target],
        env={**os.environ, **node},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextmanager
def serving(kind: str, folder: Path) -> Iterator[str]:
    """The gateway in front of a kind of upstream."""
    with (
        conformance.upstream(KINDS[kind], folder) as (_, entry),
        conformance.gateway(entry, folder) as front,
    ):
        yield front


@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_an_everything_server_over_http(name: str, mode: str, tmp_path: Path) -> None:
    with conformance.upstream(KINDS["dual"], tmp_path) as (url, _):
        assert look(name, mode, [url]) == asdict(expected(name, mode))


@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_an_everything_server_over_stdio(name: str, mode: str) -> None:
    assert look(name, mode, ["--", *KINDS["dual"].command]) == asdict(expected(name, mode))


@pytest.mark.parametrize("kind", ["legacy", "modern"])
@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_the_same_through_the_gateway_over_http(name: str, mode: str, kind: str, tmp_path: Path) -> None:
    with serving(kind, tmp_path) as front:
        assert look(name, mode, [front]) == asdict(expected(name, mode))


@pytest.mark.parametrize("kind", ["legacy-stdio", "modern-stdio"])
@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_the_same_through_the_gateway_over_stdio(name: str, mode: str, kind: str, tmp_path: Path) -> None:
    with conformance.upstream(KINDS[kind], tmp_path) as (_, entry):
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"everything": entry}}), "utf-8")
        command = [sys.executable, "-m", "troth", "serve", str(config), "--stdio"]
        assert look(name, mode, ["--", *command]) == asdict(expected(name, mode))
