r"""What is looked for in the bytes of a frame before anyone takes it apart, at the speed of ``bytes``. Sans-IO.

The functions here see valid JSON in valid UTF-8, or are safe without. None builds an object per value: each is a few
passes of C code over the frame, and the exact pass is only made where a cheap one could not rule the matter out.
"""

from __future__ import annotations

import re

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'

_SEPARATORS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)
"""Characters beyond ASCII at which readers of lines cut that go by Unicode (Node's readline, ``str.splitlines``)."""

_ENDS = bytes.maketrans(b"\r\n", b"  ")

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

_SHAPE = bytes.maketrans(b"{}", b"[]")
_NO_SHAPE = bytes(set(range(256)) - set(b'"[]{}'))
_NESTED = re.compile(rb'"[^"]*"')

_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.?+[^"\\]*+)*+"?+|(?P<opened>[\[{]++)|(?P<closed>[\]}]++)', re.DOTALL)
"""Possessive, and strings need no end: what is no JSON must not take time with the square of its length."""

MOST_TOKENS = 1 << 18
"""Strings and runs of brackets that `shallow` goes over: a list of tens of thousands of tools, a tenth of a second."""

_COUNTED = 4096
"""Bytes below which counting brackets costs less than finding them one by one."""

_SAMPLES = 32
"""Samples that a run of too many digits must cover. Fewer, and hexadecimal text would pass for one too often."""


def one_line(raw: bytes, *, ascii: bool | None = None) -> bytes:  # noqa: A002 - what it is
    r"""The text as one line and one event of an event stream, whatever it holds.

    Raw CR and LF become spaces: in JSON they stand only between tokens. U+2028, U+2029 and U+0085 become their
    escapes: in JSON they stand only inside strings, and some readers of lines cut there too. So what is valid JSON
    stays equal as JSON. Text that needs no change is returned as it is.

    Args:
        raw: The text.
        ascii: Whether it is ASCII, where that is known.

    Source: transports, stdio ("messages are delimited by newlines, and must not contain embedded newlines"); HTML,
    server-sent events (a line ends at CR, LF or both).
    """
    if b"\n" in raw or b"\r" in raw:
        raw = raw.translate(_ENDS)
    if not (raw.isascii() if ascii is None else ascii):
        for character, escape in _SEPARATORS:
            raw = raw.replace(character, escape)
    return raw


def paired(raw: bytes) -> bytes:
    r"""The text with every escape of an unpaired surrogate replaced by ``\ufffd``, or the same object if it has none.

    Servers that cut text in the middle of a pair send them. They are no characters, so no UTF-8 can hold them, and
    strict readers refuse the whole message: mending costs one character, refusing would cost the result.
    """
    if not _SURROGATE.search(raw):
        return raw
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], raw)


def deeper(raw: bytes, depth: int) -> bool:
    """Whether valid JSON nests arrays and objects more than `depth` deep.

    Frames with too few brackets are let go at once. Of the others only brackets are kept, all of one kind and none
    from strings; each pass then takes away the innermost level.
    """
    if len(raw) <= 2 * depth or not _many(raw, depth):
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Taking away two quotes that meet changes for no bracket whether it is inside a string.
    shape = raw.translate(_SHAPE, _NO_SHAPE).replace(b'""', b"")
    if b'"' in shape:
        shape = _NESTED.sub(b"", shape)
    for _ in range(depth):
        if not shape:
            return False
        shape = shape.replace(b"[]", b"")
    return bool(shape)


def shallow(raw: bytes, depth: int) -> bytes:
    """What seems to be JSON, with everything emptied that nests deeper than `depth`; at most one level more is left.

    Goes over runs of brackets and over strings, and opens nothing: so it has no limit of depth itself. Brackets within
    what is emptied need not match.

    Args:
        raw: The text.
        depth: Levels of arrays and objects to leave as they are.

    Returns:
        The rest; the text itself where nothing is so deep, or it has more than `MOST_TOKENS` such runs and strings.
    """
    pieces: list[bytes] = []
    start = level = 0
    for number, token in enumerate(_TOKENS.finditer(raw)):
        if number == MOST_TOKENS:
            return raw
        step = len(token["opened"] or b"") - len(token["closed"] or b"")
        # The bracket that opens the level below `depth`, or closes it, is kept.
        if level <= depth < level + step:
            pieces.append(raw[start : token.start() + depth - level + 1])
        elif level + step <= depth < level:
            start = token.start() + level - depth - 1
        level += step
    return b"".join((*pieces, raw[start:])) if level <= depth else b"".join(pieces)


def _many(raw: bytes, most: int) -> bool:
    """Whether the text has more than `most` opening brackets. Of long text, finding is faster, and ends early."""
    if len(raw) < _COUNTED:
        return raw.count(b"[") + raw.count(b"{") > most
    for bracket in (b"[", b"{"):
        position = raw.find(bracket)
        while position >= 0:
            most -= 1
            if most < 0:
                return True
            position = raw.find(bracket, position + 1)
    return False


def longer(raw: bytes, digits: int) -> bool:
    """Whether valid JSON has a number with more than `digits` digits in a row, outside of strings.

    A run that long covers so many of the bytes taken at equal distances that looking at those rules it out.
    """
    if len(raw) <= digits:
        return False
    step = max(1, (digits + 1) // _SAMPLES)
    if not re.search(rb"[0-9]{%d}" % min(_SAMPLES, digits + 1), raw[::step]):
        return False
    tokens = re.finditer(_STRING + rb"|[0-9]{%d}" % (digits + 1), raw, re.DOTALL)
    return any(found[0][:1] != b'"' for found in tokens)
