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
_PICTURE = "[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
    rf"|(?<!{_PICTURE})\u200d|\u200d(?!{_PICTURE})"
    "|(?<![^\0-\x7f])[\ufe00-\ufe0f\U000e0100-\U000e01ef](?!\u20e3)"
)
"""Characters that are shown as nothing, so that one name passes for another.

What joins two pictures, and selects how one, or a character beyond ASCII, is drawn, is seen by what it does.

Source: Unicode, ``Default_Ignorable_Code_Point``; UTS 51 (sequences of emoji).
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
    if _TURNS.search(name):
        return "the name has a character that turns text around"
    return "the name has a character that is shown as nothing" if _UNSEEN.search(name) else ""


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
