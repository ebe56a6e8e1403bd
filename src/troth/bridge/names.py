"""What hosts call the things of an upstream: its prefix, and names and URIs with the prefix before them. Sans-IO.

- A prefix matches ``[a-z][a-z0-9-]*``, so that it is a legal part of a URI's scheme and of a tool's name everywhere.
- A name of a tool or prompt is ``<prefix>_<name>``. A prefix has no underscore, so names of two upstreams never meet.
- A URI is ``<prefix>+<uri>``, and ``ui://<prefix>/<rest>`` for ``ui://<rest>``: hosts know views of MCP Apps by that
  scheme. URI templates go the same way, and so does what a host makes of them.
- The empty prefix leaves everything as it is.

URIs come back without any state. Names need not: routing is by the catalogue.

Source: RFC 3986, 3.1 (scheme); 2025-11-25/server/tools, tool names; ext-apps (``ui://``).
"""

from __future__ import annotations

import re
from hashlib import blake2b
from unicodedata import category, combining, normalize

MOST_SHOWN = 64
"""Characters of a name with a prefix. The interfaces of models that hosts hand tools to take no more."""

MOST_PREFIX = 24
"""Characters of a prefix made from a name: leaves most of `MOST_SHOWN` to the name behind it."""

MOST_NAME = 512
"""Characters of an upstream's own name. The specification advises 128 at most; every list repeats them."""

_HASH = 6
"""Bytes of the hash in a shortened name: two of 10,000 names meet with a chance of one in five million."""

_GAP = re.compile(r"[^a-z0-9]+")
_START = re.compile(r"^[^a-z]+")
_VIEWS = "ui://"
_UNPRINTED = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of Unicode that stand in no name: controls, halves of characters, ends of lines and paragraphs."""

_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of text around: what stands beside them may be shown elsewhere, or as another.

Source: Unicode, ``Bidi_Control``.
"""
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
"""Characters that are shown as nothing, so that one name passes for another; `_SHAPING` only where they do nothing.

Source: Unicode, ``Default_Ignorable_Code_Point``, and the marks of annotations.
"""
_SHAPING = re.compile("[\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Characters that only change how those beside them are drawn: see `_does_nothing`."""
_JOINERS = "\u200c\u200d"
_AS_PICTURE = "\ufe0f"
_KEYCAP = "\u20e3"
_VIRAMA = 9
"""Combining class of the signs that take the vowel from a letter of an Indic script."""
_JOINED = re.compile("[\u0600-\u0dff\u1000-\u109f\u1780-\u18aa]")
"""Scripts whose letters are drawn by what stands beside them: Arabic to Sinhala, Myanmar, Khmer, Mongolian."""
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_SYMBOLS = frozenset({"Sm", "So"})
_DRAWN_TOO = frozenset("‼⁉ℹ〰🏻🏼🏽🏾🏿")
"""Pictures that Unicode does not count among the symbols."""
_FLAG = "\U0001f3f4"
_AREAS = ("gbeng", "gbsct", "gbwls")
_TAGS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in area) for area in _AREAS)
_FLAGS = re.compile(f"{_FLAG}(?:{_TAGS})\U000e007f")
"""The flags of England, Scotland and Wales: a black one with its area behind it. Others are shown as a black flag.

Source: UTS 51, emoji tag sequences.
"""


def prefix_for(name: str) -> str | None:
    """The prefix that an upstream of this name gets unless one is configured.

    The rule: letters lose their marks and become small; every run of anything but ``a`` to ``z`` and ``0`` to ``9``
    becomes one hyphen; what stands before the first letter goes; the first `MOST_PREFIX` characters stay; hyphens at
    the end go. ``My Files (2)`` becomes ``my-files-2``.

    Args:
        name: Name of the upstream in the configuration.

    Returns:
        The prefix, the same for the same name always; None if no letter is left.
    """
    plain = "".join(letter for letter in normalize("NFKD", name.casefold()) if not combining(letter))
    return _START.sub("", _GAP.sub("-", plain))[:MOST_PREFIX].rstrip("-") or None


def shown_name(prefix: str, name: str) -> str:
    """The name that hosts see for a tool or prompt.

    Above `MOST_SHOWN` characters the name is cut, and ends with an underscore and the first 12 hexadecimal digits of
    the BLAKE2b hash of the whole: the same name gives the same always, and long names that begin alike stay apart.

    Args:
        prefix: Prefix of its upstream; empty leaves the name as it is, also a long one.
        name: The upstream's own name.
    """
    if not prefix:
        return name
    whole = f"{prefix}_{name}"
    if len(whole) <= MOST_SHOWN:
        return whole
    digest = blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=_HASH).hexdigest()
    return f"{whole[: MOST_SHOWN - 1 - len(digest)]}_{digest}"


def name_problem(name: str) -> str:
    """Why no host would take a name of a tool or prompt, in words; empty if it is fine.

    Whatever some host takes passes: the specification only advises which characters to use.
    """
    if not name.strip():
        return "the name is empty"
    if len(name) > MOST_NAME:
        return f"the name has more than {MOST_NAME} characters"
    if not name.isprintable() and any(category(letter) in _UNPRINTED for letter in name):
        return "the name has a control character"
    if name != name.strip():
        return "the name begins or ends with a blank"
    return "" if name.isascii() else _look_problem(name)


def _look_problem(name: str) -> str:
    """Why a name beyond ASCII passes for another, in words; empty if it does not."""
    if _TURNS.search(name):
        return "the name has a character that turns text around"
    # No name has a blank at its ends: it stands for what is beyond them.
    text = f" {_FLAGS.sub(_FLAG, name)} "
    shaping = (text[found.start() - 1 : found.end() + 1] for found in _SHAPING.finditer(text))
    if _UNSEEN.search(text) or any(_does_nothing(*three) for three in shaping):
        return "the name has a character that is shown as nothing"
    return ""


def _does_nothing(before: str, letter: str, after: str) -> bool:
    """Whether a character of `_SHAPING` changes nothing where it stands.

    The rules: both joiners belong after a sign that takes the vowel, and between letters of joined scripts; one joins
    pictures too. Selectors of Mongolian belong after its letters, all others after an ideograph or a picture, and the
    one for pictures within keycaps.

    Source: RFC 5892, A.1 and A.2, without the types of joining; UTS 51 (sequences of emoji); UTS 37.
    """
    if letter in _JOINERS:
        pictures = letter == "\u200d" and (before == _AS_PICTURE or _picture(before)) and _picture(after)
        return not (pictures or combining(before) == _VIRAMA or (_joined(before) and _joined(after)))
    if "\u180b" <= letter <= "\u180f":
        return not _MONGOLIAN.match(before)
    if letter == _AS_PICTURE:
        return not (_picture(before) or (before in "0123456789#*" and after == _KEYCAP))
    return not (_IDEOGRAPH.match(before) or (letter < _AS_PICTURE and _picture(before)))


def _joined(letter: str) -> bool:
    return _JOINED.match(letter) is not None and category(letter)[0] in "LM"


def _picture(letter: str) -> bool:
    return letter in _DRAWN_TOO or (not letter.isascii() and category(letter) in _SYMBOLS)


def host_uri(prefix: str, uri: str) -> str:
    """The URI, or URI template, that hosts see for one of an upstream.

    Args:
        prefix: Prefix of the upstream; empty leaves it as it is.
        uri: The upstream's own, or whatever text stands in its place.
    """
    if not prefix:
        return uri
    if uri.startswith(_VIEWS):
        return f"{_VIEWS}{prefix}/{uri[len(_VIEWS) :]}"
    return f"{prefix}+{uri}"


def upstream_uri(prefix: str, uri: str) -> str | None:
    """The upstream's own URI for one of a host: the reverse of `host_uri`, also for what a template expands to.

    Args:
        prefix: Prefix of the upstream.
        uri: What the host says.

    Returns:
        The URI; None if it has not this prefix.
    """
    if not prefix:
        return uri
    for start, own in ((f"{prefix}+", ""), (f"{_VIEWS}{prefix}/", _VIEWS)):
        if uri.startswith(start):
            return own + uri[len(start) :]
    return None
