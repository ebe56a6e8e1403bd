"""Keeps secrets out of everything that is shown: what counts as one, and how it is blotted out.

Secrets are recognised by the name that they are given under (``--token X``, ``?api_key=X``, ``Authorization: X``), or
known because the user handed them over (header values and environment values of a target).
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MASK = "***"
"""What stands in place of a secret."""

SHORTEST = 6
"""Characters from which a value is blotted out wherever it appears. Shorter ones (``1``, ``debug``) would blot out
ordinary words; they are masked where they are given, and everywhere if their name says that they are secret."""

SHORTEST_NAMED = 3
"""The same for a value whose name says that it is secret."""

SHORTEST_PART = 8
"""Characters from which the larger half of a value is blotted out too."""

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
    return tuple(
        mask_text(word.removesuffix(secret) + MASK if secret else word, known)
        for word, secret in zip(words, _secret_parts(words), strict=True)
    )


def _secret_parts(words: Sequence[str]) -> tuple[str, ...]:
    """For each word of a command line the end of it that its name says is secret, else an empty text."""
    parts: list[str] = []
    whole = False
    for word in words:
        parts.append(word if whole and not _LONG_OPTION.match(word) else _secret_part(word))
        whole = word.startswith("-") and "=" not in word and is_secret_name(word)
    return tuple(parts)


def _secret_part(word: str) -> str:
    if "://" in word:
        return ""
    for shape in (_ASSIGNMENT, _HEADER):
        match = shape.fullmatch(word)
        if match and is_secret_name(match["name"]):
            return match["value"]
    return ""


def mask_command(words: Sequence[str], secrets: Iterable[str] = ()) -> str:
    """A command line as one line for a shell, with secrets masked."""
    return shlex.join(mask_words(words, secrets)).replace(f"'{MASK}'", MASK)


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Text with known secrets, secret headers and secret parts of URLs masked."""
    for secret in secrets:
        text = _mask_parts(text.replace(secret, MASK), secret)
    if "://" in text:
        text = _URL.sub(lambda match: mask_url(match[0]), text)
    return _HEADER_TEXT.sub(lambda match: match["name"] + MASK, text)


def _mask_parts(text: str, secret: str) -> str:
    """Text in which the larger half of a secret, as a cut through the middle of it leaves, is masked too."""
    half = max(SHORTEST_PART, (len(secret) + 1) // 2)
    if len(secret) <= half:
        return text
    first, *rest = text.split(secret[:half])
    text = MASK.join((first, *(part[_shared(part, secret[half:]) :] for part in rest)))
    *rest, last = text.split(secret[-half:])
    before = secret[:-half][::-1]
    return MASK.join((*(part[: len(part) - _shared(part[::-1], before)] for part in rest), last))


def _shared(one: str, two: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(two)))


def secrets_of(given: Mapping[str, str], *, named: bool = False, words: Sequence[str] = ()) -> tuple[str, ...]:
    """The values that must never be shown, longest first, also as a URL would spell them.

    Args:
        given: Environment variables or headers by name.
        named: Whether every one is to be taken as secret by its name (headers are).
        words: A command line, or URLs, in which named secrets may stand.
    """
    values: set[str] = set()
    for name, value in given.items():
        values |= _forms(value, SHORTEST_NAMED if named or is_secret_name(name) else SHORTEST)
    for value in _secret_parts(words):
        values |= _forms(value, SHORTEST_NAMED)
    for match in (match for word in words for match in _URL.finditer(word)):
        for value in _url_secrets(match[0]):
            values |= _forms(value, SHORTEST_NAMED)
    return tuple(sorted(values, key=lambda text: (-len(text), text)))


def _url_secrets(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    named = [value for name, value in parse_qsl(f"{parts.query}&{parts.fragment}") if is_secret_name(name)]
    return [*named, unquote(parts.password)] if parts.password else named


def _forms(value: str, shortest: int) -> set[str]:
    plain = {value, value.strip(), _SCHEME.sub("", value.strip())}
    long = {form for form in plain if len(form) >= shortest}
    return long | {quote(form, safe="") for form in long} | {quote_plus(form) for form in long}
