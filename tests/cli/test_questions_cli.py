"""`troth questions` against a gateway that asks, over HTTP; forms at a real terminal."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import pytest
from click.testing import CliRunner, Result

from troth.bridge.questions import QuestionKind
from troth.cli import main
from troth.cli.question_form import fill, given
from troth.cli.question_page import page, rows, said
from troth.cli.question_watch import Watcher
from troth.gateway.broker import Broker, Pending
from troth.gateway.config import state_folder
from troth.gateway.crew import Crew
from troth.gateway.hosts import Access, HttpHosts, serve_http
from troth.gateway.limits import Limits
from troth.gateway.run import Run, announce

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

FORM = {
    "message": "Who are \x1b[31myou?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "description": "As people call you", "minLength": 2},
            "age": {"type": "integer"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "agree": {"type": "boolean", "default": True},
            "tags": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        },
        "required": ["name"],
    },
}
URL = {"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in?a=b"}


class Gateway:
    """A gateway that does nothing but ask, on a loop in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.do(self.start())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def start(self) -> None:
        self.crew = Crew()
        limits = Limits(watching=600.0)
        self.broker = Broker(self.folder / "q.sqlite", limits, run="run", clock=time.time, crew=self.crew)
        access = Access(operator="operator")
        hosts = HttpHosts(cast("Any", None), access, limits, self.crew, broker=self.broker)
        self.server = await serve_http(hosts, "127.0.0.1", 0, limits, self.crew)
        states = state_folder(os.environ, Path.home())
        url = f"http://127.0.0.1:{self.server.port}"
        assert not announce(states, Run(pid=os.getpid(), url=url, operator="operator", started=time.time()))

    async def end(self) -> None:
        await self.server.stop()
        await self.crew.close()
        await self.broker.close()

    def ask(self, kind: QuestionKind = QuestionKind.FORM, params: Any = FORM) -> str:
        question = self.do(self.broker.ask(kind, params, upstream="files", principal="ann", seconds=600))
        assert isinstance(question, Pending)
        return question.id

    def result(self, name: str) -> Any:
        found = self.do(self.broker.wait(name))
        return found.state, json.loads(bytes(found.result))


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def gateway(tmp_path: Path, operator: None) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    made.do(made.end())
    made.loop.call_soon_threadsafe(made.loop.stop)
    made.thread.join(10)
    made.loop.close()


def questions(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["questions", *arguments])


def test_questions_are_listed_and_shown_and_words_of_servers_are_cleaned(gateway: Gateway) -> None:
    assert questions("list").output == "No question waits.\n"
    name = gateway.ask()
    listed = questions("list")
    assert listed.exit_code == 0
    assert re.search(rf"^{name}  files   ann  form  \d+ s left  Who are", listed.output, re.MULTILINE)
    shown = questions("show", name).output
    assert "files asks (form), for ann" in shown
    assert "name (string, required): Your name" in shown
    assert "colour (string, one of r, g)" in shown
    assert "\x1b" not in listed.output + shown
    (told,) = json.loads(questions("list", "--json").output)
    assert told["params"] == FORM
    assert json.loads(questions("show", name, "--json").output)["id"] == name


def test_a_form_is_answered_by_fields_or_by_json(gateway: Gateway) -> None:
    first, second = gateway.ask(), gateway.ask()
    done = questions("answer", first, "--field", "name=Ann", "--field", "age=7", "--field", "colour=Green")
    assert (done.exit_code, done.output) == (0, f"{first}: answered\n")
    assert gateway.result(first) == (
        "answered",
        {"action": "accept", "content": {"name": "Ann", "age": 7, "colour": "g"}},
    )
    assert questions("answer", second, "--json", '{"name":"Bob"}').exit_code == 0
    assert gateway.result(second)[1]["content"] == {"name": "Bob"}
    assert questions("list").output == "No question waits.\n"
    assert first in questions("list", "--all").output


def test_an_answer_that_does_not_fit_is_refused_with_the_reason(gateway: Gateway) -> None:
    name = gateway.ask()
    refused = questions("answer", name, "--field", "name=A")
    assert refused.exit_code == 3
    assert "Error: name: " in refused.stderr
    assert questions("answer", name, "--json", "{}").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "{}", "--field", "a=b"), "not both"),
        (("--json", "{"), "--json"),
        (("--json", '{"name":NaN}'), "--json"),
        (("--json", '{"name":1e999}'), "--json"),
        (("--json", '{"name":"\\ud800"}'), "--json"),
        (("--field", "nobody=5"), "the names are: name, age"),
        (("--field", "name"), "NAME=VALUE"),
        ((), "no terminal"),
    ],
)
def test_wrong_usage_is_said(gateway: Gateway, arguments: tuple[str, ...], words: str) -> None:
    refused = questions("answer", gateway.ask(), *arguments)
    assert refused.exit_code == 2
    assert words in refused.stderr


def test_people_say_no(gateway: Gateway) -> None:
    first, second = gateway.ask(), gateway.ask()
    assert questions("decline", first).output == f"{first}: declined\n"
    assert questions("cancel", second).output == f"{second}: cancelled\n"
    refused = questions("decline", first)
    assert refused.exit_code == 3
    assert "declined already" in refused.stderr
    assert "why" not in questions("show", first).output
    assert "cancelled by the operator" in questions("show", second).output


def test_a_visit_is_shown_with_its_host_and_confirmed(gateway: Gateway) -> None:
    name = gateway.ask(QuestionKind.URL, URL)
    shown = questions("show", name).output
    assert "Host: example.com\n" in shown
    assert "Address: https://example.com/sign-in?a=b\n" in shown
    assert questions("answer", name, "--field", "a=b").exit_code == 2
    assert questions("answer", name).exit_code == 0
    assert gateway.result(name) == ("answered", {"action": "accept"})


def test_a_whole_result_is_given_as_json(gateway: Gateway) -> None:
    name = gateway.ask(
        QuestionKind.SAMPLING, {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}
    )
    assert "'text': 'x'" in questions("show", name).output
    refused = questions("answer", name)
    assert refused.exit_code == 2
    assert "give --json" in refused.stderr
    assert questions("answer", name, "--json", '{"role":"assistant","model":"m","content":{}}').exit_code == 0


def test_no_gateway_and_no_question_are_told_apart(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (("show",), ("answer", "--json", "{}")):
        missing = questions(*command, "nobody")
        assert (missing.exit_code, "no question nobody" in missing.stderr) == (3, True)
    assert questions("decline", "nobody").exit_code == 3
    monkeypatch.setenv("XDG_STATE_HOME", str(gateway.folder / "elsewhere"))
    assert "No gateway runs" in questions("list").stderr


def test_what_a_gateway_says_instead_is_told(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.cli.running.ask", lambda *_a, **_k: (404, b'{"error":{"message":"let one"}}'))
    refused = questions("list")
    assert (refused.exit_code, refused.stderr) == (3, "Error: let one\n")
    monkeypatch.setattr("troth.cli.running.ask", lambda *_a, **_k: (200, b"[]"))
    assert "no list of questions" in questions("list").stderr
    monkeypatch.setattr("troth.cli.running.ask", lambda *_a, **_k: (503, b"not json"))
    assert "refuses it" in questions("list").stderr


def test_a_watch_without_a_terminal_prints_each_question_once_and_counts_as_watching(gateway: Gateway) -> None:
    first = gateway.ask()
    command = [sys.executable, "-m", "troth", "questions", "watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as watcher:
        assert watcher.stdout is not None
        assert json.loads(watcher.stdout.readline())["id"] == first
        assert gateway.broker.watched
        second = gateway.ask()
        assert json.loads(watcher.stdout.readline())["id"] == second
        watcher.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_form_is_filled_in_at_the_terminal_of_a_watch(gateway: Gateway) -> None:
    name = gateway.ask()
    with Terminal("questions", "watch") as terminal:
        terminal.until("[s]kip: ")
        terminal.type("a")
        terminal.until("As people call you")
        terminal.until("Your name")
        terminal.type("A")
        terminal.until("too short")
        terminal.type("Ann")
        terminal.until("age")
        terminal.type("seven")
        terminal.until("'seven' is not of type 'integer'")
        terminal.type("")
        terminal.until("- g: Green")
        terminal.until("colour")
        terminal.type("Green")
        terminal.until("agree [yes]")
        terminal.type("no")
        terminal.until("tags [a,b]")
        terminal.type("")
        terminal.until(f"{name}: answered")
        assert gateway.result(name)[1]["content"] == {
            "name": "Ann", "colour": "g", "agree": False, "tags": ["a", "b"]
        }  # fmt: skip
        for key, state in (("d", "declined"), ("c", "cancelled")):
            other = gateway.ask(QuestionKind.URL, URL)
            terminal.until(f"{other}: files asks (url)")
            terminal.until("[s]kip: ")
            terminal.type(key)
            terminal.until(f"{other}: {state}")


class Terminal:
    """The command at a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self.main, inner = os.openpty()
        environ = {**os.environ, "TERM": "dumb", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "troth", *arguments], stdin=inner, stdout=inner, stderr=inner, env=environ
        )
        os.close(inner)
        self.seen = ""
        self.decode = codecs.getincrementaldecoder("utf-8")().decode

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait(30)
        os.close(self.main)

    def until(self, text: str) -> None:
        """Reads until this comes; what was before it is done with."""
        import select

        end = time.monotonic() + 60
        while text not in self.seen:
            ready, _, _ = select.select([self.main], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{text!r} did not come: {self.seen!r}"
            self.seen += self.decode(os.read(self.main, 4096))
        self.seen = self.seen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.main, f"{text}\n".encode())


def test_a_watch_leaves_out_what_was_settled_before_its_turn_and_ends_with_the_gateway() -> None:
    looks = iter([[{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "c"}]])
    seen = threading.Event()

    def look() -> list[dict[str, Any]]:
        found = next(looks, None)
        if found is None:
            seen.set()
            raise SystemExit(1)
        return found

    with Watcher(look, 0) as watcher:
        assert seen.wait(30)
        assert [question["id"] for question in watcher] == ["b", "c"]


def test_an_address_that_cannot_be_shown_is_not_shown() -> None:
    for address in (5, "https://a\x1b[2J", "https://a/" + "x" * 9000):
        text = page({"id": "a", "kind": "url", "params": {"url": address}})
        assert "decline it" in text
        assert "Address" not in text
    assert "Host: \n" in page({"id": "a", "kind": "url", "params": {"url": "https://[x/"}})


def test_questions_of_any_shape_are_shown() -> None:
    odd: list[dict[str, Any]] = [
        {"id": "a"},
        {"id": "b", "params": 5, "kind": 7, "state": "pending", "expires": "x", "upstream": [], "principal": None},
        {"id": "c", "params": {"message": 5, "requestedSchema": 7}, "kind": "form", "why": "because"},
    ]
    assert rows(odd).count("\n") == 4
    for one in odd:
        assert page(one).startswith(one["id"])
    assert given(None, ()) == {}
    assert fill("no schema") == {}


def prompts(monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> list[object]:
    defaults: list[object] = []

    def prompt(_text: str, default: object, show_default: bool) -> str:
        defaults.append(default)
        return answers.pop(0)

    monkeypatch.setattr(cast("Callable[..., Any]", click), "prompt", prompt)
    return defaults


def test_what_is_proposed_is_what_the_form_says(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "default": 5},
            "b": {"type": "boolean", "default": False},
            "c": {"type": "string"},
            "d": {"type": "string"},
        },
        "required": ["c"],
    }
    defaults = prompts(monkeypatch, ["5", "no", "x", ""])
    assert fill(schema) == {"a": 5, "b": False, "c": "x"}
    assert defaults == ["5", "no", None, ""]


def test_a_proposal_that_is_taken_is_the_form_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {
        "a": {"type": "array", "items": {"type": "string", "enum": ["x,y", "z"]}, "default": ["x,y"]},
        "b": {"type": "string", "default": "two\nlines"},
        "c": {"type": "string", "default": 5},
    }
    prompts(monkeypatch, ["x,y", said("two\nlines"), "5"])
    assert fill({"properties": fields}) == {"a": ["x,y"], "b": "two\nlines", "c": "5"}
