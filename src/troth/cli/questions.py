"""`troth questions`: what upstreams of a running gateway ask people, and the answers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.gateway.run import Run

REFUSED = 3
"""Exit status where the gateway does not take what is said of a question."""
POLL = 1.0
"""Seconds between two looks at the questions; well below `Limits.watching`."""

CONFIG = click.option("--config", metavar="FILE", help="The gateway that serves this file, where several run.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
QUESTION = click.argument("question", metavar="ID")
STATUS = "Exit status: 0 done, 1 no gateway runs or it does not answer, 2 wrong usage, 3 the gateway refuses it."


@click.group(short_help="Answer what servers behind a running gateway ask people.", epilog=STATUS)
def command() -> None:
    """Answer what servers behind a running gateway ask people.

    Servers ask here if the configuration lets them (ask = ["host", "broker"]) and no host answers. A question has a
    deadline, after which it counts as cancelled.
    """


@command.command("list", short_help="List the questions that wait.", epilog=STATUS)
@click.option("--all", "settled", is_flag=True, help="Also those that were settled lately.")
@AS_JSON
@CONFIG
def list_questions(*, settled: bool, as_json: bool, config: str | None) -> None:
    """List the questions that wait for an answer."""
    from troth.cli.output import deliver
    from troth.cli.question_page import rows
    from troth.cli.running import running

    found = _questions(running(config), "?all" if settled else "")
    text = json.dumps(found, indent=2) + "\n" if as_json else rows(found)
    deliver(text, None, machine=as_json)


@command.command(short_help="Show one question in full.", epilog=STATUS)
@QUESTION
@AS_JSON
@CONFIG
def show(question: str, *, as_json: bool, config: str | None) -> None:
    """Show one question in full: who asks, what, and for what form."""
    from troth.cli.output import deliver
    from troth.cli.question_page import page
    from troth.cli.running import running

    found = _one(running(config), question)
    deliver(json.dumps(found, indent=2) + "\n" if as_json else page(found), None, machine=as_json)


@command.command(short_help="Answer a question.", epilog=STATUS)
@QUESTION
@click.option("--json", "text", metavar="JSON", help="The answer as JSON: the fields of a form, or the whole result.")
@click.option("--field", "fields", metavar="NAME=VALUE", multiple=True, help="One field of a form; may be repeated.")
@CONFIG
def answer(question: str, *, text: str | None, fields: tuple[str, ...], config: str | None) -> None:
    """Answer a question.

    Without --json or --field, a form is filled in at the terminal. A visit to an address is confirmed: open the address
    yourself, then answer.
    """
    from troth.cli.running import running

    if text is not None and fields:
        raise click.UsageError("Give --json or --field, not both.")
    run = running(config)
    found = _one(run, question)
    _say(run, {"id": question, "action": "accept", "content": _content(found, text, fields)})


@command.command(short_help="Say no to a question.", epilog=STATUS)
@QUESTION
@CONFIG
def decline(question: str, *, config: str | None) -> None:
    """Say no to a question; the server goes on without an answer."""
    from troth.cli.running import running

    _say(running(config), {"id": question, "action": "decline"})


@command.command(short_help="End a question without an answer.", epilog=STATUS)
@QUESTION
@CONFIG
def cancel(question: str, *, config: str | None) -> None:
    """End a question without an answer, as if nobody had been there."""
    from troth.cli.running import running

    _say(running(config), {"id": question, "action": "cancel"})


@command.command(short_help="Wait for questions, and answer them at the terminal.", epilog=STATUS)
@AS_JSON
@CONFIG
def watch(*, as_json: bool, config: str | None) -> None:
    """Wait for questions until interrupted.

    As long as this runs, servers may also send people to an address. At a terminal each question can be answered at
    once; else each is printed as it comes (--json: one JSON object per line).
    """
    from troth.cli.question_page import page
    from troth.cli.question_watch import Watcher
    from troth.cli.running import running

    run = running(config)
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    with Watcher(lambda: _questions(run, "?watch"), POLL) as watcher:
        for question in watcher:
            click.echo(json.dumps(question) if as_json else page(question), nl=as_json)
            if interactive:
                _offer(run, question)
            else:
                sys.stdout.flush()
    # It ends by itself only if the gateway does.
    sys.exit(1)


def _offer(run: Run, question: Mapping[str, Any]) -> None:
    choice = click.prompt(
        "[a]nswer, [d]ecline, [c]ancel or [s]kip", type=click.Choice(["a", "d", "c", "s"]), show_choices=False
    )
    name = question["id"]
    if choice == "a":
        _say(run, {"id": name, "action": "accept", "content": _content(question, None, ())}, end=False)
    elif choice != "s":
        _say(run, {"id": name, "action": {"d": "decline", "c": "cancel"}[choice]}, end=False)


# What the gateway says


def _questions(run: Run, query: str) -> list[dict[str, Any]]:
    from troth.cli.running import ask, fail

    status, data = ask(run, f"/questions{query}", taken=(404, 503))
    value = _object(data)
    if status != 200:
        _refused(_problem(value))
    found = value.get("questions")
    if not isinstance(found, list):
        fail("The gateway answers with something that is no list of questions. Is it of another version?")
    return [one for one in cast("list[dict[str, Any]]", found) if isinstance(one.get("id"), str)]


def _one(run: Run, name: str) -> dict[str, Any]:
    found = next((one for one in _questions(run, "?all") if one["id"] == name), None)
    if found is None:
        _refused(f"There is no question {name}. See those that wait: troth questions list")
    return found


def _say(run: Run, said: Mapping[str, Any], *, end: bool = True) -> None:
    """Settles a question; ends the command if the gateway refuses, unless that is not wanted."""
    from troth.cli.running import ask

    status, data = ask(run, "/questions", said, taken=(400, 404, 409, 503))
    if status == 200:
        click.echo(f"{said['id']}: {_object(_object(data).get('question')).get('state', 'done')}")
        return
    problem = _problem(_object(data))
    if end:
        _refused(problem)
    click.echo(f"Error: {problem}", err=True)


def _refused(problem: str) -> NoReturn:
    """Ends the command: the gateway is there, and does not do it."""
    click.echo(f"Error: {problem}", err=True)
    sys.exit(REFUSED)


def _object(data: object) -> dict[str, Any]:
    try:
        value = json.loads(data) if isinstance(data, bytes) else data
    except ValueError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _problem(value: Mapping[str, Any]) -> str:
    """What the gateway says is wrong: words, or an error of JSON-RPC."""
    from troth.cli.question_page import said

    error = value.get("error")
    words = error if isinstance(error, str) else _object(error).get("message")
    return said(words if isinstance(words, str) else "the gateway refuses it")


# What people say


def _content(question: Mapping[str, Any], text: str | None, fields: tuple[str, ...]) -> object:
    if text is not None:
        import msgspec

        try:
            # The gateway's own reader, which takes neither NaN nor half of a letter.
            return msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise click.UsageError(f"--json: {error}") from error
    return _KINDS.get(question.get("kind", ""), _whole)(question, fields)


def _form(question: Mapping[str, Any], fields: tuple[str, ...]) -> object:
    from troth.cli.question_form import fill, given

    schema = _object(question.get("params")).get("requestedSchema")
    if fields:
        return given(schema, fields)
    if not sys.stdin.isatty():
        raise click.UsageError("Standard input is no terminal to fill the form in at: give --field or --json.")
    return fill(schema)


def _visit(_question: Mapping[str, Any], fields: tuple[str, ...]) -> object:
    if fields:
        raise click.UsageError("A visit to an address has no fields.")


def _whole(_question: Mapping[str, Any], _fields: tuple[str, ...]) -> object:
    raise click.UsageError("This question takes a whole result: give --json.")


_KINDS: Mapping[str, Callable[[Mapping[str, Any], tuple[str, ...]], object]] = {"form": _form, "url": _visit}
