"""What is built from a real server is true of it on the wire: raw frames over stdio, both eras."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest
from plugin_servers import SERVERS, URI

from troth import build
from troth.register import Era, register

SCRIPT = Path(__file__).with_name("plugin_servers.py")
LEGACY, MODERN = register().newest(Era.LEGACY), register().newest(Era.MODERN)
PREFIX = "io.modelcontextprotocol"
META = {
    f"{PREFIX}/protocolVersion": MODERN,
    f"{PREFIX}/clientInfo": {"name": "test", "version": "1"},
    f"{PREFIX}/clientCapabilities": {},
}
REF = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": ""}}
PARAMS = {
    "tools/call": {"name": "add", "arguments": {}},
    "prompts/get": {"name": "greet"},
    "resources/read": {"uri": URI},
    "resources/subscribe": {"uri": URI},
    "resources/unsubscribe": {"uri": URI},
    "completion/complete": REF,
    "logging/setLevel": {"level": "debug"},
}
KINDS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


class Wire:
    """A process on stdio, asked one thing at a time; killed after a minute whatever it does."""

    def __init__(self, process):
        self.process = process
        self.seen = []
        self.count = 0

    def send(self, method, params, **more):
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def until(self, wanted):
        for line in self.process.stdout:
            message = json.loads(line)
            self.seen.append(message)
            if wanted(message):
                return message
        raise AssertionError(f"the server ended: {self.seen}")

    def ask(self, method, params):
        self.count += 1
        number = self.count
        self.send(method, params, id=number)
        return self.until(lambda message: message.get("id") == number and "method" not in message)


@contextmanager
def wire(name):
    command = [sys.executable, str(SCRIPT), name]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        timer = Timer(60, process.kill)
        timer.start()
        try:
            yield Wire(process)
        finally:
            timer.cancel()
            process.kill()


def gates(built):
    """The methods that the declaration promises to serve, from the register."""
    for row in register().at(built.side, built.revision):
        if built.has(row.path):
            for gate in row.definitions[built.revision].gates:
                if "client->server request" in gate.directions and gate.method != "subscriptions/listen":
                    yield gate.method


@pytest.mark.interop
@pytest.mark.parametrize("name", SERVERS)
def test_what_is_built_for_legacy_is_served(name):
    built = build(SERVERS[name]())
    assert built.revision == LEGACY
    with wire(name) as link:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert link.ask("initialize", hello)["result"]["protocolVersion"] == LEGACY
        link.send("notifications/initialized", {})
        answers = {method: link.ask(method, PARAMS.get(method, {})) for method in dict.fromkeys(gates(built))}
        assert {"tools/list", "tools/call", "resources/read"} <= set(answers)
        assert [method for method, answer in answers.items() if "result" not in answer] == []
        if not built.has("resources.subscribe"):
            assert link.ask("resources/subscribe", {"uri": URI})["error"]["code"] == -32601
        if not built.has("logging"):
            assert link.ask("logging/setLevel", {"level": "debug"})["error"]["code"] == -32601
        updated = [message for message in link.seen if message.get("method") == "notifications/resources/updated"]
        assert bool(updated) is built.has("resources.subscribe")


@pytest.mark.interop
@pytest.mark.parametrize("name", SERVERS)
def test_what_is_built_for_modern_is_served(name):
    built = build(SERVERS[name](), era="modern")
    with wire(name) as link:
        answers = {
            method: link.ask(method, {**PARAMS.get(method, {}), "_meta": META})
            for method in dict.fromkeys(gates(built))
        }
        assert {"tools/list", "tools/call", "resources/read"} <= set(answers)
        assert [method for method, answer in answers.items() if "result" not in answer] == []
        asked = {"notifications": {**KINDS, "resourceSubscriptions": [URI]}, "_meta": META}
        link.send("subscriptions/listen", asked, id="listen")
        ends = "notifications/subscriptions/acknowledged"
        answer = link.until(lambda message: message.get("method") == ends or message.get("id") == "listen")
        if built.has("tools.listChanged"):
            honoured = answer["params"]["notifications"]
            assert honoured == {**KINDS, "resourceSubscriptions": [URI]}
        else:
            assert answer["error"]["code"] == -32601
