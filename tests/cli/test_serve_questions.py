"""Questions over restarts and changes of the configuration, as an operator sees them."""

from __future__ import annotations

import json
import signal
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from test_serve_live import PATIENCE, Operator, operator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["operator"]

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
ASKER = ["-m", "troth.testing", "server", "--transport", "stdio", "--variant", "asker", "--revision", "2025-11-25"]
PERSON = "import json; print(json.dumps({'action': 'accept', 'content': {'name': 'Ada'}}))"


def configure(operator: Operator, ask: list[str], gateway: dict[str, Any]) -> None:
    one = {"command": sys.executable, "args": ASKER, "troth": {"ask": ask}}
    text = json.dumps({"mcpServers": {"one": one}, "troth": {"gateway": gateway}})
    (operator.folder / "mcp.json").write_text(text, "utf-8")


def start(operator: Operator) -> str:
    """Serves; the URL."""
    *_, ready = operator.serve("--no-auth")
    return ready.split()[1]


def call(url: str, declared: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer to a call of the tool that asks for a form."""
    told = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": declared}
    params = {"name": "ask_form", "arguments": {}, "_meta": told, **more}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "ask_form",
    }
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            text = response.read().decode()
    except urllib.error.HTTPError as error:
        text = error.read().decode()
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    return json.loads(lines[-1])


def until(get: Callable[[], dict[str, Any]], wanted: str) -> dict[str, Any]:
    """Repeats until the text is in what comes."""
    deadline = time.monotonic() + PATIENCE
    while wanted not in json.dumps(found := get()):
        assert time.monotonic() < deadline, found
    return found


def test_a_command_of_the_operator_answers_as_soon_as_the_file_says_so(operator: Operator) -> None:
    configure(operator, ["host"], {})
    url = start(operator)
    until(lambda: call(url, {}), "cannot be asked")
    configure(operator, ["broker"], {"answer_command": [sys.executable, "-c", PERSON]})
    operator.send(signal.SIGHUP)
    until(lambda: call(url, {}), "Ada")


def test_questions_that_could_not_be_kept_are_once_the_file_is_mended_and_the_status_says_so(
    operator: Operator,
) -> None:
    configure(operator, ["broker"], {"answer_command": [sys.executable, "-c", PERSON]})
    file = operator.folder / "state" / "troth" / "questions.db"
    file.mkdir(parents=True)
    *first, ready = operator.serve("--no-auth")
    url = ready.split()[1]
    assert "Ada" not in json.dumps(until(lambda: call(url, {}), "content"))
    (note,) = [note for note in operator.status()["notes"] if "questions" in note]
    assert note.startswith("questions cannot be kept for people: ")
    assert "questions.db: cannot be used" in note
    file.rmdir()
    until(lambda: call(url, {}), "Ada")
    assert not [note for note in operator.status()["notes"] if "questions" in note]
    gateway, operator.gateway = operator.gateway, None
    assert gateway is not None
    gateway.terminate()
    _, rest = gateway.communicate(timeout=PATIENCE)
    assert ["questions cannot be kept for people: " in line for line in first] == [True]
    assert "questions cannot" not in rest
    assert "questions can be kept for people again" in rest


def test_a_call_that_died_with_the_gateway_is_told_to_be_lost_by_the_next_one(operator: Operator) -> None:
    configure(operator, ["host"], {})
    url = start(operator)
    asked = until(lambda: call(url, {"elicitation": {}}), "inputRequests")["result"]
    assert operator.gateway is not None
    operator.gateway.kill()
    operator.gateway.communicate()
    url = start(operator)
    responses = {key: {"action": "accept", "content": {"name": "Ada"}} for key in asked["inputRequests"]}

    def retry() -> dict[str, Any]:
        return call(url, {"elicitation": {}}, inputResponses=responses, requestState=asked["requestState"])

    error = until(retry, "effects")["error"]
    assert error["code"] == -32603
    assert error["message"] == "The call was lost when the gateway was started anew, and may have had effects"


def of(answer: dict[str, Any]) -> str:
    """The id of the key that sealed the state of an answer."""
    return answer["result"]["requestState"].split(".")[1]


def test_keys_of_the_operator_are_used_and_never_shown(operator: Operator) -> None:
    key = "k" * 40
    operator.environ["SEAL"] = key
    configure(operator, ["host"], {"seal_keys": ["${SEAL}"]})
    url = start(operator)
    asked = until(lambda: call(url, {"elicitation": {}}), "inputRequests")["result"]
    state = operator.folder / "state"
    assert asked["requestState"]
    assert not list(state.rglob("keys.json"))
    assert key not in json.dumps(operator.status())
    configure(operator, ["host"], {"seal_keys": ["n" * 40]})
    operator.send(signal.SIGHUP)
    until(lambda: {"other": of(call(url, {"elicitation": {}})) != of({"result": asked})}, "true")
    configure(operator, ["host"], {"seal_keys": ["${SEAL}"]})
    operator.environ["SEAL"] = "short"
    refused = operator.troth("check-config")
    assert refused.returncode != 0
    assert "32 random characters" in refused.stdout + refused.stderr
    assert "short" not in refused.stdout + refused.stderr
