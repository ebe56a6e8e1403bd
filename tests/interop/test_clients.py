"""Clients that others wrote see the same through the gateway as directly: over HTTP and stdio, in both eras."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conformance
import pytest
from ahead import Ahead, need, printed, selected
from conformance import CLIENTS, ENVS, KINDS
from every import PROMPTS, RESOURCES, TEMPLATE, TOOLS
from seen import EXPECTED, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

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

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900), pytest.mark.behaviour("GEN-D2")]


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
        AssertionError: It failed; with what it wrote.
    """
    client = PEOPLE[name]
    need(*client.needs, conformance.node())
    node = {"TROTH_NPM": str(NPM), "TROTH_NODE": str(conformance.node()), "TROTH_INSPECTOR": str(INSPECTOR)}
    program, script = client.command
    found = printed([program, str(CLIENTS / script), "--mode", mode, *target], node)
    # The gateway may say that a resource changed because it may have: when its stream opens while one is watched.
    return {**found, "updated": list(dict.fromkeys(found["updated"]))}


def seen(base: Path, name: str, mode: str, kind: str, way: str) -> dict[str, Any]:
    """What a client saw of a kind of server: over HTTP or stdio, and by itself or through the gateway."""
    folder = base / f"{name}-{mode}-{kind}-{way}"
    folder.mkdir()
    need(Path(KINDS[kind].command[0]))
    through, over = way.split("-")
    with conformance.upstream(KINDS[kind], folder) as (url, entry):
        if through == "direct":
            return look(name, mode, [url] if over == "http" else ["--", *KINDS[kind].command])
        if over == "http":
            with conformance.gateway(entry, folder) as front:
                return look(name, mode, [front])
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"everything": entry}}), "utf-8")
        return look(name, mode, ["--", sys.executable, "-m", "troth", "serve", str(config), "--stdio"])


@pytest.fixture(scope="module")
def looks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ahead]:
    tests = (test_a_client_sees_an_everything_server, test_a_client_sees_the_same_through_the_gateway)
    wanted = [key for test in tests for key in selected(request, test.__name__, "name", "mode", "kind", "way")]
    made = Ahead(partial(seen, tmp_path_factory.mktemp("clients")), wanted)
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "way"), [("dual", "direct-http"), ("dual-stdio", "direct-stdio")])
@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_an_everything_server(looks: Ahead, name: str, mode: str, kind: str, way: str) -> None:
    assert looks[name, mode, kind, way] == asdict(expected(name, mode))


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("legacy", "through-http"),
        ("modern", "through-http"),
        ("legacy-stdio", "through-stdio"),
        ("modern-stdio", "through-stdio"),
    ],
)
@pytest.mark.parametrize(("name", "mode"), EACH, ids=lambda value: value)
def test_a_client_sees_the_same_through_the_gateway(looks: Ahead, name: str, mode: str, kind: str, way: str) -> None:
    assert looks[name, mode, kind, way] == asdict(expected(name, mode))
