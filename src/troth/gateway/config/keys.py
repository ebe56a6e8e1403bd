"""Every key of the configuration, once: what it means, what it may be. Reader, schema and page are made from this."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from troth.config import TYPES, mapping, shown
from troth.gateway.limits import Limits
from troth.gateway.settings import EraChoice, Policy, Share
from troth.gating import Need, Requirement

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILIES = ("tools", "prompts", "resources")
"""Families of primitives that have a policy."""
LONGEST_WAIT = 86_400.0
"""Seconds that may be configured as a wait: a day, so that every wait has an end."""
LONGEST_NAME = 64
"""Characters of a server's name, and of a tool's: what hosts accept."""
SHORTEST_TOKEN = 16
"""Characters of a bearer token, so that none can be guessed by trying."""
SHORTEST_KEY = 32
"""Characters of a key that seals."""
LONGEST_TOKEN = 1024
"""Characters of a bearer token: less than the longest header."""
EXTENSION = (
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?"
)
"""A key of an extension: the prefix is mandatory (2026-07-28, basic, General fields)."""
TOOL_NAME = r"[A-Za-z0-9_.-]{1,64}"
"""A name of a tool that hosts accept."""
PREFIX = r"([a-z][a-z0-9-]{0,23})?"
"""A prefix: nothing, or what may also be the scheme of a URI."""
TOKEN = r"[A-Za-z0-9._~+/=-]+"  # noqa: S105 - the alphabet, not a token
"""A bearer token (RFC 6750, section 2.1)."""
TOKEN_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"  # noqa: S105
"""The name of a token."""


class Kind(Enum):
    """What a value is."""

    TEXT = "string"
    CHOICE = "choice"
    SECONDS = "seconds"
    COUNT = "count"
    PATTERNS = "patterns"
    TEXTS = "list of strings"
    MAP = "table of strings"
    FLAG = "true or false"
    NEEDS = "table of requirements"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key.

    Attributes:
        name: As it is written.
        kind: What its value is.
        meaning: For people; also the description in the schema.
        default: What holds without it, as it would be written; empty for nothing.
        choices: Its values, for `Kind.CHOICE`.
        least: Smallest number.
        most: Largest number.
        form: Regular expression that the whole text (or every value of a table) matches.
        form_words: The same in words.
        variables: Whether ``${VAR}`` may stand in its text.
    """

    name: str
    kind: Kind
    meaning: str
    default: str = ""
    choices: tuple[str, ...] = ()
    least: float = 0
    most: float = LONGEST_WAIT
    form: str = ""
    form_words: str = ""
    variables: bool = False


def _wait(name: str, meaning: str, default: str, least: float) -> Key:
    return Key(name=name, kind=Kind.SECONDS, meaning=meaning, default=default, least=least)


START = (
    Key(name="command", kind=Kind.TEXT, meaning="Program to start.", variables=True),
    Key(name="args", kind=Kind.TEXTS, meaning="Its arguments.", variables=True),
    Key(
        name="env",
        kind=Kind.MAP,
        meaning="Variables that its process gets beside the few harmless ones that every process needs.",
        variables=True,
    ),
    Key(name="cwd", kind=Kind.TEXT, meaning="Folder to start it in, seen from the file's own.", variables=True),
    Key(name="url", kind=Kind.TEXT, meaning="Address of a server that already runs (http or https).", variables=True),
    Key(
        name="headers",
        kind=Kind.MAP,
        meaning="Headers of every request to that address; none that Troth sets itself, as `Host`, `Accept`, `Mcp-*`.",
        variables=True,
    ),
    Key(
        name="type",
        kind=Kind.CHOICE,
        meaning="How it is reached; known without it, but for the old HTTP+SSE transport (`sse`), which is then "
        "found by trying.",
        choices=tuple(TYPES),
    ),
    Key(name="disabled", kind=Kind.FLAG, meaning="Keeps the entry without using it.", default="false"),
)
"""How a server is reached: the keys that hosts use too."""

ALIASES = {
    "transport": "type",
    "environment": "env",
    "serverUrl": "url",
    "httpUrl": "url",
    "enabled": "disabled",
}
"""Other names of keys in files of hosts."""

OWN = (
    Key(
        name="era",
        kind=Kind.CHOICE,
        meaning="Which era to speak to it; `auto` asks it.",
        default='"auto"',
        choices=tuple(EraChoice),
    ),
    Key(
        name="prefix",
        kind=Kind.TEXT,
        meaning="Text before its names and URIs, empty for none. Without the key it is made from the server's name; "
        "a server that was alone when it was first served has none.",
        form=PREFIX,
        form_words="a small letter, then at most 23 small letters, digits and hyphens",
    ),
    Key(
        name="allow",
        kind=Kind.PATTERNS,
        meaning="Patterns (`*`, `?`, `[...]`) of tools that hosts see, by the server's own names.",
        default='["*"]',
    ),
    Key(name="deny", kind=Kind.PATTERNS, meaning="Patterns of tools that they do not see, also of allowed ones."),
    Key(
        name="rename",
        kind=Kind.MAP,
        meaning="The server's own name of a tool, and the name to show.",
        form=TOOL_NAME,
        form_words="a name that hosts accept: 1 to 64 letters, digits, `_`, `-` and `.`",
    ),
    Key(name="describe", kind=Kind.MAP, meaning="The server's own name of a tool, and the description to show."),
    Key(
        name="requires",
        kind=Kind.NEEDS,
        meaning="The server's own name of a tool or prompt, or URI of a resource or template, and what a host must "
        "have declared to see it, as in `sampling, roots or elicitation.form`; beside what the server says itself.",
    ),
    Key(
        name="share",
        kind=Kind.CHOICE,
        meaning="Who may use one session of it together: `auto` hosts of one credential, `always` everybody (the "
        "server keeps nothing per client), `never` nobody.",
        default='"auto"',
        choices=tuple(Share),
    ),
    Key(
        name="max_sessions",
        kind=Kind.COUNT,
        meaning="Most sessions (processes) of it at once. A server of a legacy revision on a pipe needs one for each "
        "call that it may ask about; further ones wait.",
        default="4",
        least=1,
        most=1024,
    ),
    _wait("start_timeout", "Seconds that a start may take until its first answer.", "60", 0.1),
    _wait("call_timeout", "Seconds that a call may take without any sign of life; no limit without it.", "", 0.1),
    _wait(
        "poll",
        "Seconds between two looks at its lists where it announces no changes; at least "
        f"{Limits().poll_least:g}, never without it.",
        "",
        Limits().poll_least,
    ),
    Key(
        name="ask",
        kind=Kind.PATTERNS,
        meaning="Who answers what it asks (sampling, elicitation, roots): `host`, the host of the call; `broker`, you, "
        "by the command `questions`, where the host cannot; with an empty list nobody, and it is told so.",
        default='["host"]',
        form="host|broker",
        form_words="`host` or `broker`",
    ),
    Key(
        name="roots",
        kind=Kind.TEXTS,
        meaning="Folders, as `file://` URIs, that it hears of where no host tells its own; without the key it is "
        "refused then.",
        form=r"file://[^\s]*/[^\s]*",
        form_words="a file URI, as in file:///home/me/project",
        variables=True,
    ),
    _wait("ask_timeout", "Seconds in which its questions are answered; SDKs wait 60.", "50", 1),
    Key(
        name="relay_extensions",
        kind=Kind.PATTERNS,
        meaning="Keys of extensions that pass: the server's to hosts, and a host's to the server.",
        default="[]",
        form=EXTENSION,
        form_words="a key with a prefix, as in com.example/name",
    ),
    Key(
        name="relay_experimental",
        kind=Kind.PATTERNS,
        meaning="Experimental keys that pass in the same way.",
        default="[]",
    ),
)
"""What only Troth knows of a server."""

GATEWAY = (
    Key(
        name="page_size",
        kind=Kind.COUNT,
        meaning="Most items of one page of a list; all on one page without it.",
        least=1,
        most=10_000,
    ),
    Key(
        name="allow_when_not_declared",
        kind=Kind.FLAG,
        meaning="Shows hosts that send no capabilities at all also what needs some.",
        default="false",
    ),
    _wait("startup_wait", "Seconds that a host's first request waits for servers that were never seen.", "5", 0),
    Key(
        name="allowed_hosts",
        kind=Kind.PATTERNS,
        meaning="Values of the `Host` header that are taken beside those of the bound address.",
        default="[]",
    ),
    Key(
        name="allowed_origins",
        kind=Kind.PATTERNS,
        meaning="Values of the `Origin` header that are taken beside loopback ones.",
        default="[]",
    ),
    Key(
        name="answer_command",
        kind=Kind.TEXTS,
        meaning="Program and arguments that answer questions for people: it gets each as one JSON object on its input "
        'and says `{"action": "accept", "content": ...}`, `decline` or `cancel`; or nothing, and leaves it to people.',
        variables=True,
    ),
    Key(
        name="seal_keys",
        kind=Kind.TEXTS,
        meaning="The key that seals the state of calls which wait for answers, and the one before it. Gateways that "
        "stand in for each other need the same; without the key one is made and kept. Write it as `${VAR}`.",
        most=2,
        form=f".{{{SHORTEST_KEY},}}",
        form_words=f"{SHORTEST_KEY} random characters or more, as `openssl rand -base64 32` makes them",
        variables=True,
    ),
)
"""What holds for the gateway as a whole."""

TOKENS = (
    Key(
        name="token",
        kind=Kind.TEXT,
        meaning=f"What the host sends as bearer, {SHORTEST_TOKEN} characters or more. Write it as `${{VAR}}`.",
        form=TOKEN,
        form_words="letters, digits and any of . _ ~ + / = -",
        variables=True,
    ),
    Key(
        name="profile",
        kind=Kind.TEXT,
        meaning="The known host that it is treated as; `troth explain --list` has their ids.",
    ),
)
"""One credential of a host."""

POLICIES = tuple(
    Key(
        name=name,
        kind=Kind.CHOICE,
        meaning=f"Whether `{name}` are declared to hosts: `auto` where a server declares them, or did when it was "
        "last seen.",
        default='"auto"',
        choices=tuple(Policy),
    )
    for name in FAMILIES
)
"""Policy per family."""

SECTIONS = ("gateway", "policies", "profiles", "tokens")
"""Members beside the servers: tables of ``troth.toml``, members of the outermost ``troth`` in JSON."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why a value is not what its key takes.

    Attributes:
        problem: What is wrong.
        mend: What to do about it.
        member: Further path inside the value; empty for the value itself.
    """

    problem: str
    mend: str = ""
    member: str = ""


def judge(key: Key, value: object) -> tuple[Any, tuple[Wrong, ...]]:
    """The value as settings hold it, and what is wrong with it. Secrets are never in what is said.

    Args:
        key: What it stands for.
        value: As it was read; variables are already replaced.
    """
    return _JUDGES[key.kind](key, value)


Judged = tuple[Any, tuple[Wrong, ...]]


def _text(key: Key, value: object) -> Judged:
    if not isinstance(value, str):
        return None, (Wrong("must be a string"),)
    wrong = _form(key, value, "")
    return value, wrong


def _form(key: Key, value: str, member: str) -> tuple[Wrong, ...]:
    if not key.form or re.fullmatch(key.form, value):
        return ()
    told = "" if key.variables else f": {shown(value)}"
    return (Wrong(f"has a form that is not taken{told}", f"write {key.form_words}", member),)


def _choice(key: Key, value: object) -> Judged:
    if isinstance(value, str) and value in key.choices:
        return value, ()
    told = f"unknown: {shown(value)}" if isinstance(value, str) else "must be a string"
    return None, (Wrong(told, f"known: {', '.join(key.choices)}"),)


def _number(key: Key, value: object) -> Judged:
    whole = key.kind is Kind.COUNT
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return None, (Wrong(f"must be {'a whole number' if whole else 'a number of seconds'}"),)
    if not (key.least <= value <= key.most) or not math.isfinite(value):
        return None, (Wrong("is out of range", f"write a number from {key.least:g} to {key.most:g}"),)
    return (value if whole else float(value)), ()


def _texts(key: Key, value: object) -> Judged:
    if not isinstance(value, list):
        return None, (Wrong("must be a list of strings"),)
    items: Sequence[object] = cast("list[object]", value)
    wrong: list[Wrong] = []
    if len(items) > key.most:
        wrong.append(Wrong(f"has {len(items)} texts", f"write at most {key.most:g}"))
    for index, item in enumerate(items):
        if not isinstance(item, str):
            wrong.append(Wrong("must be a string", "", str(index)))
        elif not item.strip():
            wrong.append(Wrong("is empty", "write something, or leave it out", str(index)))
        else:
            wrong += _form(key, item, str(index))
    return tuple(items), tuple(wrong)


def _map(key: Key, value: object) -> Judged:
    entries = mapping(value)
    if entries is None:
        return None, (Wrong("must be an object of strings"),)
    wrong: list[Wrong] = []
    for name, item in entries.items():
        if not isinstance(item, str):
            wrong.append(Wrong("must be a string", "", name))
        else:
            wrong += _form(key, item, name)
    return entries, tuple(wrong)


def _needs(_key: Key, value: object) -> Judged:
    entries = mapping(value)
    if entries is None:
        return None, (Wrong("must be an object of requirements"),)
    needs: dict[str, Need] = {}
    wrong: list[Wrong] = []
    for name, item in entries.items():
        try:
            needs[name] = Need(Requirement.read(item))
        except ValueError as error:
            wrong.append(Wrong(f"says no requirement: {error}", "write capabilities, as in sampling, roots", name))
    return needs, tuple(wrong)


def _flag(_key: Key, value: object) -> Judged:
    return (value, ()) if isinstance(value, bool) else (None, (Wrong("must be true or false"),))


_JUDGES = {
    Kind.TEXT: _text,
    Kind.CHOICE: _choice,
    Kind.SECONDS: _number,
    Kind.COUNT: _number,
    Kind.PATTERNS: _texts,
    Kind.TEXTS: _texts,
    Kind.MAP: _map,
    Kind.FLAG: _flag,
    Kind.NEEDS: _needs,
}
