"""Keeps secrets out of everything that is shown: what counts as one, and how it is blotted out.

Secrets are recognised by the name that they are given under (``--token X``, ``?api_key=X``, ``Authorization: X``), or
known because the user handed them over (header values and environment values of a target).
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MASK = "***"
"""What stands in place of a secret."""

SHORTEST = 6
"""Characters from which a value is blotted out wherever it appears. Shorter ones (``1``, ``debug``) would blot out
ordinary words; they are masked where they are given, and everywhere if their name says that they are secret."""

SHORTEST_NAMED = 3
"""The same for a value whose name says that it is secret."""

HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id", "x-api-key"})
"""Headers whose value is never shown, in lower case."""

_SECRET_NAME = re.compile(
    r"(?:^|[^a-z])(?:auth|authorization|bearer|cookie|credentials?|jwt|key|keys|pass|passphrase|passwd|password|pat|pin"
    r"|pwd|secret|secrets|session|sig|signature|token|tokens)(?:$|[^a-z])|apikey|accesskey|authtoken|accesstoken"
    r"|clientsecret|password|secret",
)
_LONG_OPTION = re.compile(r"--[A-Za-z]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ASSIGNMENT = re.compile(r"(?P<name>-{0,2}[A-Za-z][\w.-]*)=(?P<value>.*)", re.DOTALL)
_HEADER = re.compile(r"(?P<name>[A-Za-z][\w-]*):\s*(?P<value>.+)", re.DOTALL)
_HEADER_TEXT = re.compile(
    r"(?P<name>\b(?:proxy-authorization|authorization|set-cookie|cookie|mcp-session-id|x-api-key)\b[\"']?\s*[:=]\s*)"
    r"(?P<value>[\"']?(?:(?:bearer|basic|digest)\s+)?[^\s\"',]+)",
    re.IGNORECASE,
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
_SCHEME = re.compile(r"^(?:bearer|basic|digest|token)\s+", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether an option, variable, parameter or header of this name holds a secret."""
    flat = _CAMEL.sub("-", name.strip("-")).lower()
    return flat in HEADERS or _SECRET_NAME.search(flat) is not None


def mask_url(url: str) -> str:
    """The URL without user information and without the values of secret query parameters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("//")[0] + "//" + MASK
    netloc = parts.netloc
    if "@" in netloc:
        netloc = f"{MASK}@{netloc.rpartition('@')[2]}"
    return urlunsplit((parts.scheme, netloc, parts.path, _mask_query(parts.query), _mask_query(parts.fragment)))


def _mask_query(query: str) -> str:
    pieces: list[str] = []
    for piece in query.split("&"):
        name, equals, value = piece.partition("=")
        pieces.append(f"{name}={MASK}" if equals and value and is_secret_name(name) else piece)
    return "&".join(pieces)


def mask_words(words: Sequence[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """The words of a command line with secrets masked.

    Args:
        words: Program and arguments.
        secrets: Values known to be secret.
    """
    known = tuple(secrets)
    masked: list[str] = []
    hide_next = False
    for word in words:
        if hide_next and not _LONG_OPTION.match(word):
            hide_next = False
            masked.append(MASK)
            continue
        hide_next = word.startswith("-") and "=" not in word and is_secret_name(word)
        masked.append(mask_text(_mask_word(word), known))
    return tuple(masked)


def _mask_word(word: str) -> str:
    if "://" in word:
        return word
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment and assignment["value"] and is_secret_name(assignment["name"]):
        return f"{assignment['name']}={MASK}"
    header = _HEADER.fullmatch(word)
    if header and is_secret_name(header["name"]):
        return f"{header['name']}: {MASK}"
    return word


def mask_command(words: Sequence[str], secrets: Iterable[str] = ()) -> str:
    """A command line as one line for a shell, with secrets masked."""
    return shlex.join(mask_words(words, secrets)).replace(f"'{MASK}'", MASK)


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Text with known secrets, secret headers and secret parts of URLs masked."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    if "://" in text:
        text = _URL.sub(lambda match: mask_url(match[0]), text)
    return _HEADER_TEXT.sub(lambda match: match["name"] + MASK, text)


def mask_value(value: object, secrets: Iterable[str] = ()) -> Any:
    """A JSON value with secrets masked at any depth, in member names and in values.

    Not recursive: the nesting of a peer's value must not be able to exhaust the stack.
    """
    known = tuple(secrets)
    holder: list[Any] = [None]
    work: list[tuple[Any, Any, Any]] = [(holder, 0, value)]
    while work:
        place, key, item = work.pop()
        if isinstance(item, str):
            place[key] = mask_text(item, known)
        elif isinstance(item, dict):
            fresh: dict[str, Any] = {}
            place[key] = fresh
            for name, member in cast("dict[object, Any]", item).items():
                text = mask_text(str(name), known)
                fresh[text] = MASK
                if text.lower() not in HEADERS:
                    work.append((fresh, text, member))
        elif isinstance(item, list | tuple):
            members = cast("list[Any]", item)
            place[key] = copy = [None] * len(members)
            work.extend((copy, index, member) for index, member in enumerate(members))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            place[key] = MASK if known and _number_text(item) in known else item
        else:
            place[key] = item
    return holder[0]


def _number_text(number: float) -> str:
    # Longer integers cannot be a secret that a person typed, and printing them is slow.
    return "" if isinstance(number, int) and number.bit_length() > 1024 else str(number)


def secrets_of(given: Mapping[str, str], *, named: bool = False) -> tuple[str, ...]:
    """The values among ``given`` that must never be shown, longest first, also as a URL would spell them.

    Args:
        given: Environment variables or headers by name.
        named: Whether every one is to be taken as secret by its name (headers are).
    """
    values: set[str] = set()
    for name, value in given.items():
        shortest = SHORTEST_NAMED if named or is_secret_name(name) else SHORTEST
        for form in (value, value.strip(), _SCHEME.sub("", value.strip())):
            if len(form) >= shortest:
                values |= {form, quote(form, safe=""), quote_plus(form)}
    return tuple(sorted(values, key=lambda text: (-len(text), text)))
