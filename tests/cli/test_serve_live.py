"""`troth serve` as an operator runs it: started, asked, changed and stopped by commands and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 30.0
MODERN = "2026-07-28"
TROTH = (sys.executable, "-m", "troth")


class Operator:
    """Somebody with a folder, a configuration folder and a state folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TROTH_")},
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.gateway: subprocess.Popen[str] | None = None

    def troth(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(*TROTH, *arguments)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def add(self, name: str, *options: str) -> None:
        server = (sys.executable, "-m", "troth.testing", "server", "--transport", "stdio")
        done = self.troth("add", name, *options, "--", *server)
        assert done.returncode == 0, done.stderr

    def serve(self, *options: str) -> list[str]:
        """Starts the gateway; returns what it said until it was ready."""
        self.gateway = subprocess.Popen(
            [*TROTH, "serve", "--port", "0", *options],
            cwd=self.folder,
            env=self.environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.gateway.stderr is not None
        said: list[str] = []
        for line in self.gateway.stderr:
            said.append(line)
            if line.startswith("ready "):
                break
        return said

    def send(self, number: signal.Signals) -> None:
        assert self.gateway is not None
        self.gateway.send_signal(number)

    def status(self) -> dict[str, Any]:
        done = self.troth("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while not condition(status := self.status()):
            assert time.monotonic() < deadline, status
        return status


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    somebody = Operator(tmp_path)
    yield somebody
    if somebody.gateway is not None:
        somebody.gateway.kill()
        somebody.gateway.communicate()


@pytest.fixture
def asker() -> Iterator[str]:
    """The address of a server that asks for everything, at the newest revision."""
    command = [sys.executable, "-m", "troth.testing", "server", "--variant", "asker", "--revision", MODERN]
    with subprocess.Popen(
        [*command, "--transport", "http", "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        yield next(line for line in server.stderr if "http://" in line).split()[-1]
        server.kill()


def names(status: dict[str, Any]) -> set[str]:
    return {item["name"] for item in status.get("upstreams", ())}


def test_a_gateway_is_started_changed_asked_and_stopped(operator: Operator) -> None:
    operator.add("one")
    assert operator.troth("connect", "cursor").returncode == 0

    said = operator.serve()
    assert [line.split()[0] for line in said] == ["ready"], said
    operator.until(lambda status: names(status) == {"one"} and status["upstreams"][0]["state"] == "ready")

    operator.add("two")
    operator.send(signal.SIGHUP)
    status = operator.until(lambda status: names(status) == {"one", "two"})
    assert {item["name"]: item["prefix"] for item in status["upstreams"]} == {"one": "", "two": "two"}

    config = operator.folder / "mcp.json"
    good = config.read_text("utf-8")
    config.write_text(good.replace('"command"', '"comand"'), "utf-8")
    operator.send(signal.SIGHUP)
    status = operator.until(lambda status: bool(status.get("faults")))
    assert names(status) == {"one", "two"}
    assert "did you mean 'command'?" in "\n".join(status["faults"])

    config.write_text(good, "utf-8")
    assert operator.troth("remove", "one").returncode == 0
    operator.send(signal.SIGHUP)
    status = operator.until(lambda status: names(status) == {"two"})
    assert status["faults"] == []

    assert list((operator.folder / "state" / "troth" / "run").iterdir())
    operator.send(signal.SIGTERM)
    assert operator.gateway is not None
    assert operator.gateway.wait(PATIENCE) == 0
    assert list((operator.folder / "state" / "troth" / "run").iterdir()) == []
    assert "No gateway runs" in operator.status()["error"]


def test_a_token_that_nobody_configured_is_told_before_the_gateway_is_ready(operator: Operator) -> None:
    operator.add("one")
    first, _, last = operator.serve()
    assert first.startswith("token ")
    assert last.startswith("ready http://127.0.0.1:")


@pytest.mark.parametrize("home", ["/dev/full", "file"])
def test_a_gateway_whose_state_cannot_be_kept_serves_and_says_so(operator: Operator, home: str) -> None:
    operator.add("one")
    (operator.folder / "file").touch()
    operator.environ["HOME"] = str(operator.folder / home)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        del operator.environ[name]
    said = operator.serve()
    assert said[-1].startswith("ready http://127.0.0.1:"), said
    assert sum("what is learnt of upstreams is forgotten at the end" in line for line in said) == 1
    assert not any("earlier runs" in line for line in said)
    operator.send(signal.SIGTERM)
    assert operator.gateway is not None
    _, rest = operator.gateway.communicate(timeout=PATIENCE)
    assert operator.gateway.returncode == 0
    assert "forgotten" not in rest


def test_a_gateway_that_could_not_write_where_it_is_does_so_once_it_can(operator: Operator) -> None:
    operator.add("one")
    hindrance = operator.folder / "state" / "troth" / "run"
    hindrance.parent.mkdir(parents=True, exist_ok=True)
    hindrance.touch()
    said = operator.serve()
    assert any("the status command does not find this gateway yet" in line for line in said), said
    assert "No gateway runs" in operator.status()["error"]
    hindrance.unlink()
    operator.until(lambda status: names(status) == {"one"})
    operator.send(signal.SIGTERM)
    assert operator.gateway is not None
    assert operator.gateway.wait(PATIENCE) == 0
    assert list(hindrance.iterdir()) == []


def visit(url: str, token: str) -> dict[str, Any]:
    """Calls a tool that sends people to an address."""
    key = "io.modelcontextprotocol/"
    capabilities = {"elicitation": {"form": {}, "url": {}}}
    info = {"name": "host", "version": "1"}
    meta = {f"{key}protocolVersion": MODERN, f"{key}clientCapabilities": capabilities, f"{key}clientInfo": info}
    params = {"name": "ask_url", "arguments": {}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "ask_url",
    }
    request = Request(url, json.dumps(body).encode(), headers)
    try:
        with urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)
    except HTTPError as error:
        return json.load(error)


@pytest.mark.behaviour("CAP-09-C1")
def test_rule_4_the_token_of_the_command_line_is_a_principal_beside_those_of_connected_hosts(
    operator: Operator, asker: str
) -> None:
    assert operator.troth("add", "one", asker).returncode == 0
    token = "t" * 32
    url = operator.serve("--token", token)[-1].split()[1]
    assert "inputRequests" in visit(url, token)["result"]
    assert operator.troth("connect", "cursor").returncode == 0
    operator.send(signal.SIGHUP)
    deadline = time.monotonic() + PATIENCE
    while "result" in (told := visit(url, token)):
        assert time.monotonic() < deadline, told
    assert told["error"]["code"] == -32021


def test_serving_looks_for_cycles_seldom_and_never_among_what_was_there_at_the_start(operator: Operator) -> None:
    """By Python's own measure that takes up to a fifth of every call."""
    (operator.folder / "troth.toml").write_text("", "utf-8")
    seen = (
        "import gc, sys\n"
        "from troth.gateway import serve\n"
        "async def measured(settings, options):\n"
        "    print(gc.get_threshold() == serve.COLLECT, gc.get_freeze_count() > 1000)\n"
        "    return 0\n"
        "serve.serve = measured\n"
        "from troth.cli import main\n"
        "main(['serve', '--no-auth'])\n"
    )
    done = operator.run(sys.executable, "-c", seen)
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr
