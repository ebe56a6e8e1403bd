"""What a server says of itself: ``initialize`` (legacy) and ``server/discover`` (modern)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from troth.capabilities import Built, Capabilities
from troth.register import Era, register
from troth.results.resources import CacheScope, cache_hints
from troth.results.shapes import members, shaped
from troth.results.spelling import Object, finish, known_revision, spell
from troth.results.table import MEMBERS
from troth.results.values import is_array, plain, shown, step, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
"""The key of a modern result's ``_meta`` that holds the server's name and version."""


def server_info(
    *,
    name: str,
    version: str,
    title: str | None = None,
    description: str | None = None,
    website_url: object = None,
    icons: Sequence[object] | None = None,
    revision: str | None = None,
) -> Object:
    """Builds the description of a server (``Implementation`` in the schema).

    Args:
        name: Its name for programs.
        version: Its version.
        title: Its name for people (from 2025-06-18).
        description: What it does (from 2025-11-25).
        website_url: Its website, a string or URL object (from 2025-11-25).
        icons: Addresses, paths (put in as ``data:`` URIs), or mappings with ``src`` (from 2025-11-25).
        revision: The protocol revision in force; None keeps every member.

    Returns:
        A new dict.

    Raises:
        TypeError: No name or version, or a value of a wrong type.
        ValueError: An unknown revision, or an address that is none.
    """
    known_revision(revision)
    raw = {
        "name": name,
        "version": version,
        "title": title,
        "description": description,
        "websiteUrl": website_url,
        "icons": None if icons is None else _icons(icons),
    }
    return finish(shaped(raw, "Implementation", "server_info"), "Implementation", revision)


def initialize_result(
    *,
    server_info: object,
    capabilities: object = None,
    instructions: str | None = None,
    meta: Mapping[str, object] | None = None,
    revision: str | None = None,
) -> Object:
    """Builds the result of ``initialize``.

    Args:
        server_info: From ``server_info``, or a mapping or model with ``name`` and ``version``.
        capabilities: What is declared: a mapping, a model, what ``troth.capabilities.build`` built, or what was read
            from a peer, as far as it is in force. Capabilities that the revision does not define are left out; None
            declares nothing.
        instructions: How to use the server, for the model.
        meta: ``_meta`` of the result.
        revision: The negotiated protocol revision; None means the newest with a handshake.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: A revision without ``initialize``; a member is missing.
    """
    where = "initialize_result"
    known_revision(revision)
    revision = register().newest(Era.LEGACY) if revision is None else revision
    if ("InitializeResult", revision) not in MEMBERS:
        raise ValueError(f"{where}: protocol revision {revision} has no initialize; build a discover_result")
    if server_info is None:
        raise ValueError(f"{where} needs server_info; build it with server_info(name=..., version=...)")
    raw = {"serverInfo": server_info, "_meta": meta}
    result = {**shaped(raw, "InitializeResult", where), "protocolVersion": revision}
    result.update(_declared(capabilities, instructions, where))
    return spell(result, "InitializeResult", revision)


def discover_result(
    *,
    server_info: object = None,
    capabilities: object = None,
    supported_versions: Sequence[str] | None = None,
    instructions: str | None = None,
    meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``server/discover``.

    Args:
        server_info: As for ``initialize_result``; it goes to ``_meta``, where this era keeps it.
        capabilities: As for ``initialize_result``.
        supported_versions: The protocol revisions that the server speaks, put in order newest first; None means the
            modern ones that Troth knows.
        instructions: How to use the server, for the model.
        meta: Other members of the result's ``_meta``.
        ttl_ms: Milliseconds for which a client may keep the answer; 0 is stale at once.
        cache_scope: ``private`` or ``public``: who may be served a kept answer.
        revision: The protocol revision of the request; None means the newest.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: A revision without ``server/discover``; no or unknown supported versions; a member is missing.
    """
    where = "discover_result"
    known_revision(revision)
    revision = register().newest(Era.MODERN) if revision is None else revision
    if ("DiscoverResult", revision) not in MEMBERS:
        raise ValueError(f"{where}: protocol revision {revision} has no server/discover; build an initialize_result")
    known = {} if meta is None else dict(members(meta, f"{where}: meta"))
    if server_info is not None:
        known[SERVER_INFO_KEY] = server_info
    result = shaped({"_meta": known or None}, "DiscoverResult", where)
    result["supportedVersions"] = _newest_first(supported_versions, where)
    result.update(_declared(capabilities, instructions, where))
    return spell({**result, **cache_hints(ttl_ms, cache_scope, where)}, "DiscoverResult", revision)


def _icons(icons: object) -> list[object]:
    if not is_array(icons):
        raise TypeError(f"server_info: icons must be a list, not {type(icons).__name__}")
    return list(icons)


def _declared(capabilities: object, instructions: object, where: str) -> Object:
    raw = capabilities
    if isinstance(raw, Built):
        raw = raw.capabilities
    elif isinstance(raw, Capabilities):
        raw = raw.effective
    declared = plain(raw, f"{where}: capabilities")
    if declared is None:
        declared = {}
    if not isinstance(declared, dict):
        raise TypeError(f"{where}: capabilities must be a mapping, not {type(capabilities).__name__}")
    present = {name: value for name, value in cast("Object", declared).items() if value is not None}
    for name, value in present.items():
        if not isinstance(value, dict):
            raise TypeError(f"{where}: capabilities{step(name)} must be an object such as {{}}, not {shown(value)}")
    if instructions is None:
        return {"capabilities": present}
    if not isinstance(instructions, str):
        raise TypeError(f"{where}: instructions must be a string, not {type(instructions).__name__}")
    return {"capabilities": present, "instructions": text(instructions, f"{where}: instructions")}


def _newest_first(versions: object, where: str) -> list[str]:
    if versions is None:
        return list(reversed(register().eras[Era.MODERN]))
    if not is_array(versions):
        raise TypeError(f"{where}: supported_versions must be a list of revisions, not {type(versions).__name__}")
    given = cast("list[str]", list(versions))
    for version in given:
        known_revision(version)
    if not given:
        raise ValueError(f"{where}: supported_versions is empty; a server speaks at least one revision")
    return [version for version in reversed(register().revisions) if version in given]
