"""Results of servers in the newest shape, with every member and kind of content that there is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from troth.bridge import Frame, host_uri, read
from troth.register import Era, register

REVISIONS = register().revisions
PAIRS = [(source, target) for source in REVISIONS for target in REVISIONS]
LEGACY = [name for name in REVISIONS if register().era(name) is Era.LEGACY]
NEW = register().newest(Era.MODERN)
OLD = register().newest(Era.LEGACY)
OLDEST = REVISIONS[0]

words = st.one_of(st.text(max_size=8), st.sampled_from(['say "icons"', '{"uri":"x"}', "\x1b[1m", "audio", "a/b"]))
addresses = st.sampled_from(["file:///a.txt", "ui://x/y", "https://example.com/?a=b", "mem:1"])
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=5,
)
data = st.sampled_from(["", "AAAA", "UklGRg=="])
info = st.fixed_dictionaries({"name": words, "version": words}, optional={"title": words})
views = st.fixed_dictionaries({}, optional={"ui": st.fixed_dictionaries({"resourceUri": addresses}), "x/y": anything})
metas = st.one_of(views, st.fixed_dictionaries({"ui/resourceUri": addresses}))
result_metas = st.fixed_dictionaries({"a": words}, optional={"io.modelcontextprotocol/serverInfo": info})
annotations = st.fixed_dictionaries(
    {},
    optional={"audience": st.just(["user"]), "priority": st.just(0.5), "lastModified": st.just("2026-01-01T00:00:00Z")},
)
icons = st.lists(
    st.fixed_dictionaries({"src": st.just("https://x/y.png")}, optional={"theme": st.just("dark")}), max_size=1
)
extras: dict[str, st.SearchStrategy[Any]] = {"_meta": metas, "annotations": annotations}
contents = st.one_of(
    st.fixed_dictionaries({"uri": addresses, "text": words}, optional={"mimeType": words, "_meta": metas}),
    st.fixed_dictionaries({"uri": addresses, "blob": data}, optional={"mimeType": words, "_meta": metas}),
)
blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": words}, optional=extras),
    st.fixed_dictionaries({"type": st.just("image"), "data": data, "mimeType": words}, optional=extras),
    st.fixed_dictionaries({"type": st.just("audio"), "data": data, "mimeType": words}, optional=extras),
    st.fixed_dictionaries({"type": st.just("resource"), "resource": contents}, optional=extras),
    st.fixed_dictionaries(
        {"type": st.just("resource_link"), "uri": addresses, "name": words},
        optional={**extras, "icons": icons, "title": words, "description": words, "size": st.integers(0, 9)},
    ),
)
complete = st.just("complete")
calls = st.fixed_dictionaries(
    {"resultType": complete, "content": st.lists(blocks, max_size=4)},
    optional={"_meta": result_metas, "structuredContent": anything, "isError": st.booleans()},
)
prompts = st.fixed_dictionaries(
    {
        "resultType": complete,
        "messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": blocks}), max_size=3),
    },
    optional={"_meta": result_metas, "description": words},
)
reads = st.fixed_dictionaries(
    {
        "resultType": complete,
        "contents": st.lists(contents, max_size=3),
        "ttlMs": st.integers(0, 9),
        "cacheScope": st.sampled_from(["public", "private"]),
    },
    optional={"_meta": result_metas},
)
completions = st.fixed_dictionaries(
    {"resultType": complete, "completion": st.fixed_dictionaries({"values": st.lists(words, max_size=2)})},
    optional={"_meta": result_metas},
)
empty = st.fixed_dictionaries({"resultType": complete}, optional={"_meta": result_metas})

results = st.one_of(
    st.tuples(st.just("tools/call"), calls),
    st.tuples(st.just("prompts/get"), prompts),
    st.tuples(st.just("resources/read"), reads),
    st.tuples(st.just("completion/complete"), completions),
    st.tuples(st.just("resources/subscribe"), empty),
)
"""A method, and a result of it."""


def response(result: object, *, ascii_only: bool = False) -> Frame:
    """The frame in which a result comes."""
    frame = read(json.dumps({"jsonrpc": "2.0", "id": 5, "result": result}, ensure_ascii=ascii_only).encode())
    assert isinstance(frame, Frame)
    return frame


def raw_response(result: str) -> Frame:
    """The frame in which a result comes that is spelled already."""
    frame = read(f'{{"jsonrpc":"2.0","id":5,"result":{result}}}'.encode())
    assert isinstance(frame, Frame)
    return frame


def mapped(value: Any, prefix: str, *, free: bool = False) -> Any:
    """A result with the prefix in every place where a resource is named. Free: inside structured content."""
    if isinstance(value, list):
        return [mapped(item, prefix, free=free) for item in value]
    if not isinstance(value, dict) or free:
        return value
    new = {name: mapped(item, prefix, free=name in {"structuredContent", "_meta"}) for name, item in value.items()}
    if isinstance(value.get("uri"), str):
        new["uri"] = host_uri(prefix, value["uri"])
    if isinstance(meta := value.get("_meta"), dict):
        new["_meta"] = dict(meta)
        if "ui" in meta:
            new["_meta"]["ui"] = {**meta["ui"], "resourceUri": host_uri(prefix, meta["ui"]["resourceUri"])}
        if "ui/resourceUri" in meta:
            new["_meta"]["ui/resourceUri"] = host_uri(prefix, meta["ui/resourceUri"])
    return new
