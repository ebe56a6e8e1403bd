"""JSON as a stranger may spell it, and readers to hold ours against: of values, of lines, of event streams."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from hypothesis import strategies as st


class Number(NamedTuple):
    """A number by its text, so that neither digits nor exponents are lost."""

    spelled: str


def refuse(name: str) -> Any:
    raise ValueError(name)


def strict(data: bytes) -> Any:
    """The value of JSON by the standard library, numbers as text. Raises ValueError for what is no JSON."""
    return json.loads(data.decode(), parse_int=Number, parse_float=Number, parse_constant=refuse)


def mended(value: Any) -> Any:
    """The value with U+FFFD for unpaired surrogates."""
    if isinstance(value, Number):
        return value
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [mended(item) for item in value]
    if isinstance(value, dict):
        return {mended(name): mended(item) for name, item in value.items()}
    return value


def depth(value: Any) -> int:
    if isinstance(value, Number) or not isinstance(value, (list, dict)):
        return 0
    return 1 + max((depth(item) for item in (value.values() if isinstance(value, dict) else value)), default=0)


def events(stream: bytes) -> list[str]:
    """Data of the events of a stream, by the rules of the HTML standard."""
    found: list[str] = []
    data: list[str] = []
    for line in re.split("\r\n|\r|\n", stream.decode()):
        if not line and data:
            found.append("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
    return found


def is_one_line(line: bytes) -> bool:
    """Whether readers of lines of every school, and readers of event streams, take it for one."""
    told = events(b"event: message\r\ndata: " + line + b"\r\n\r\n")
    return len(line.decode().splitlines()) == 1 and told == [line.decode()]


@st.composite
def spelled_text(draw: st.DrawFn, text: str) -> str:
    """A text in quotes, some of its characters escaped in one of the ways there are."""
    pieces: list[str] = []
    for character in text:
        escape = draw(st.integers(0, 3))
        if character in '"\\' or character < " " or "\ud800" <= character <= "\udfff" or not escape:
            units = character.encode("utf-16-be", "surrogatepass")
            digits = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
            pieces += [f"\\u{code.upper() if draw(st.booleans()) else code}" for code in digits]
        else:
            pieces.append(character)
    return f'"{"".join(pieces)}"'


texts = st.text(
    st.one_of(
        st.characters(exclude_categories=()),
        st.sampled_from('\r\n\t"\\/[]{}:,\u2028\u2029\x85\x0b\x0c\x1c\ufeff\ud83d\ude00\ud800\udc00 0123456789é😀'),
    ),
    max_size=8,
)
numbers = st.one_of(
    st.integers().map(str),
    st.integers(10**300, 10**301).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["-0", "0.10", "1E5", "1e+05", "1e999", "-1.0e-999", "9007199254740993", "0.1e1"]),
)
spaces = st.text(" \t\r\n", max_size=2)
leaves = st.one_of(st.sampled_from(["null", "true", "false"]), numbers, texts.flatmap(spelled_text))


@st.composite
def spelled_list(draw: st.DrawFn, items: list[str]) -> str:
    return f"[{','.join(draw(spaces) + item + draw(spaces) for item in items)}{draw(spaces)}]"


@st.composite
def spelled_object(draw: st.DrawFn, members: dict[str, str]) -> str:
    """An object of values that are spelled already."""
    pieces = [
        draw(spaces) + draw(spelled_text(name)) + draw(spaces) + ":" + draw(spaces) + value + draw(spaces)
        for name, value in draw(st.permutations(list(members.items())))
    ]
    return f"{{{','.join(pieces)}{draw(spaces)}}}"


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.dictionaries(texts, values, max_size=4).flatmap(spelled_object)


values = st.recursive(
    leaves, lambda inner: st.one_of(st.lists(inner, max_size=4).flatmap(spelled_list), objects(inner)), max_leaves=12
)

INTERPRETED = {"jsonrpc", "id", "method", "params", "result", "error", "_meta"}
"""Names that a free member must not have, lest it be another message."""


def free(values: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Members that nobody interprets. Names are unlike even once mended."""
    names = texts.filter(lambda name: name.casefold() not in INTERPRETED)
    return st.dictionaries(names, values, max_size=3).filter(
        lambda found: len({mended(name) for name in found}) == len(found)
    )


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message that breaks no rule, however it is spelled."""
    kind = draw(st.sampled_from(["request", "notification", "response", "error"]))
    body = draw(free(values))
    if draw(st.booleans()):
        body["_meta"] = draw(spelled_object(draw(free(values))))
    envelope = draw(free(leaves))
    envelope["jsonrpc"] = draw(spelled_text("2.0"))
    if kind != "notification":
        envelope["id"] = draw(st.one_of(st.integers().map(str), texts.flatmap(spelled_text)))
    name = {"response": "result", "error": "error"}.get(kind, "params")
    if name == "params":
        envelope["method"] = draw(texts.flatmap(spelled_text))
    if name != "params" or draw(st.booleans()):
        envelope[name] = draw(spelled_object(body))
    return (draw(spaces) + draw(spelled_object(envelope)) + draw(spaces)).encode()
