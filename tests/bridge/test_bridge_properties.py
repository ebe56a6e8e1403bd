"""What holds for every frame, however a stranger spells it."""

from __future__ import annotations

import json
import re
from typing import Any

from bridge_json import depth, is_one_line, mended, messages, strict, texts, values
from hypothesis import example, given, settings
from hypothesis import strategies as st

from troth.bridge import Bad, Batch, Frame, FrameLimits, Kind, one_line, opened, peek, read, read_batch, rewrite
from troth.bridge.scan import deeper, longer, paired


@given(messages())
def test_an_untouched_message_leaves_equal_as_json_on_one_line(data: bytes) -> None:
    frame = read(data)
    assert isinstance(frame, Frame), frame
    line = rewrite(frame)
    assert strict(line) == mended(strict(data))
    assert is_one_line(line)


@given(
    messages(), st.dictionaries(texts.map(mended), st.one_of(texts.map(mended), st.integers(), st.none()), max_size=3)
)
def test_changed_members_are_there_once_and_all_others_are_kept(data: bytes, changes: dict[str, Any]) -> None:
    frame = read(data)
    assert isinstance(frame, Frame)
    frame = opened(frame)
    assert isinstance(frame, Frame)
    before = mended(strict(data))
    name = next((name for name in ("result", "error") if name in before), "params")
    line = rewrite(frame, **{name: changes}, meta={"progressToken": "t"})
    body = before.get(name, {})
    meta = {**body.get("_meta", {}), "progressToken": "t"}
    assert strict(line) == {**before, name: {**body, **strict(json.dumps(changes).encode()), "_meta": meta}}
    assert is_one_line(line)
    envelope = json.loads(line, object_pairs_hook=list)
    members = next(value for key, value in envelope if key == name)
    for level in (envelope, members, next(value for key, value in members if key == "_meta")):
        assert len({key for key, _ in level}) == len(level)


bites = st.sampled_from(
    [
        *(bytes([byte]) for byte in b"\"\\{}[],:\n\r \x00\xff-0/'"),
        *(rb"\u", rb"\ud83d", rb"\udc00", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xef\xbb\xbf"),
        *(b"NaN", b"Infinity", b"1e9", b"99999", b"tru", b"null", b"/*x*/", b"[[[[[[", b"]]]]]]"),
        *(b'"id":1,', rb'"\u0069d":2,', b'"name":"a",', b'"Name":"a",', b',"":0'),
    ]
)
LIMITS = FrameLimits(bytes=2000, depth=6, digits=310, name=64)

NAMED = re.compile(
    r"(the message|params|result|error)(: _meta)? has .* twice; give each member once"
    r"|(the message|params|result|error)(: _meta)? has .* in other letters; write it exactly so"
    r"|nested deeper than 6 levels|a number of more than 310 digits|a message of more than 2000 bytes"
    r"|a message has a method, or an id with a result or an error|a message is an object|an array, where one .*"
    r"|(params|result|error)(: _meta)?: an object belongs here|method: a text of at most 64 bytes belongs here"
    r"|id: an integer or a text of at most 64 bytes belongs here|id: null, where .*|jsonrpc: \"2\.0\" belongs here"
)
"""Why what is JSON may be refused. A byte order mark is none of it: the oracle refuses that too."""


@settings(max_examples=400)
@given(
    messages(),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.one_of(bites, st.binary(max_size=2))), max_size=3),
)
def test_what_is_json_is_read_or_refused_by_name_and_what_is_not_is_refused(
    data: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    for at, gone, bite in changes:
        data = data[:at] + bite + data[at + gone :]
    frame = read(data, LIMITS)
    try:
        value = strict(data)
    except ValueError:
        assert isinstance(frame, Bad)
        return
    if isinstance(frame, Bad):
        assert NAMED.fullmatch(frame.reason), frame
        assert frame.code in {-32600, -32602}
        return
    assert depth(value) <= LIMITS.depth
    assert strict(rewrite(frame)) == ({"id": None} if "error" in value else {}) | mended(value)
    assert is_one_line(rewrite(frame))


@given(
    st.lists(st.one_of(st.binary(max_size=3), st.sampled_from([b"\xe2\x80", b"\xa8", b"\xc2", b"\x85"]))).map(b"".join)
)
def test_any_bytes_become_one_line(data: bytes) -> None:
    line = one_line(data)
    assert [end for end in (b"\r", b"\n", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85") if end in line] == []


@given(values.map(str.encode))
def test_one_line_keeps_the_value(data: bytes) -> None:
    assert strict(one_line(data)) == strict(data)


@given(values.map(str.encode))
def test_pairing_mends_what_is_unpaired_and_nothing_else(data: bytes) -> None:
    assert strict(paired(data)) == mended(strict(data))


brackets = st.text('[]{}"\\,', max_size=6)
nests = st.recursive(
    brackets, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(brackets, inner, max_size=4))
)


@given(nests, st.integers(0, 6))
@example([[["\\"], "]"]], 2)
@example(["]", [["["]]], 2)
def test_depth_is_found_exactly_whatever_stands_in_strings(value: Any, limit: int) -> None:
    assert deeper(json.dumps(value).encode(), limit) == (depth(value) > limit)


@given(st.lists(st.one_of(st.integers(0, 10**50), st.text('0123456789\\"', max_size=60))), st.integers(1, 60))
def test_long_numbers_are_found_exactly_whatever_stands_in_strings(value: list[int | str], limit: int) -> None:
    found = longer(json.dumps(value).encode(), limit)
    assert found == any(isinstance(item, int) and len(str(item)) > limit for item in value)


@given(st.integers(4000, 4600), st.integers(0, 5000))
def test_long_numbers_are_found_wherever_they_stand(digits: int, before: int) -> None:
    assert longer(b" " * before + b"7" * digits, 4300) == (digits > 4300)


WITH_ID = {Kind.REQUEST, Kind.RESPONSE, Kind.ERROR}


@given(st.lists(messages(), min_size=1, max_size=4), st.booleans())
def test_a_batch_reads_each_message_as_it_is_read_alone(items: list[bytes], allowed: bool) -> None:
    found = read_batch(b"[" + b",".join(items) + b"]", allowed=allowed)
    alone = tuple(read(item) for item in items)
    ids = [(item.kind is Kind.REQUEST, item.id) for item in alone if isinstance(item, Frame) and item.kind in WITH_ID]
    if allowed and len(set(ids)) == len(ids):
        assert found == Batch(alone)
    else:
        assert isinstance(found, Bad)


@given(st.data())
def test_asking_for_a_member_never_raises(data: st.DataObject) -> None:
    value = data.draw(values)
    frame = read(
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":%b,"progressToken":%b}}' % ((value.encode(),) * 2)
    )
    assert isinstance(frame, Frame)
    seen = peek(frame, "name", "progressToken")
    expected = mended(strict(value.encode()))
    if isinstance(expected, str):
        assert seen == {"name": expected, "progressToken": expected}
    else:
        assert isinstance(seen, Bad)
