"""What is taken for a frame, what is refused, and with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import (
    Bad,
    Batch,
    Frame,
    FrameLimits,
    Kind,
    Spared,
    members,
    opened,
    peek,
    peek_meta,
    read,
    read_batch,
    spared,
)
from troth.bridge.model import BESIDE, MEMBERS
from troth.bridge.scan import MOST_TOKENS, shallow

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}}


def text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def message(**members: object) -> bytes:
    return text({"jsonrpc": "2.0", **members})


def frame(data: bytes) -> Frame:
    found = read(data)
    assert isinstance(found, Frame), found
    return found


def bad(found: object) -> tuple[Any, ...]:
    assert isinstance(found, Bad), found
    assert found.reason.isprintable()
    assert len(found.reason) < 120
    return found.code, found.reason, found.id, found.kind


def refused(data: bytes) -> Bad:
    found = read(data)
    bad(found)
    assert isinstance(found, Bad)
    return found


def raws(value: Any) -> Any:
    return {name: bytes(raw) for name, raw in value.items()}


def test_a_request_is_read_with_its_params_and_their_meta() -> None:
    found = frame(message(id="a", method="x/y", params={"name": "n", "_meta": {"progressToken": 3}}))
    assert (found.kind, found.id, found.method) == (Kind.REQUEST, "a", "x/y")
    assert raws(found.parts) == {"name": b'"n"', "_meta": b'{"progressToken":3}'}
    assert raws(found.meta) == {"progressToken": b"3"}
    assert opened(found) is found


@pytest.mark.parametrize(
    ("members", "kind", "identity"),
    [
        ({"id": 1, "method": "ping"}, Kind.REQUEST, 1),
        ({"method": "notifications/initialized"}, Kind.NOTIFICATION, None),
        ({"method": "", "params": {}}, Kind.NOTIFICATION, None),
        ({"id": 1, "result": {}}, Kind.RESPONSE, 1),
        ({"id": "1", "error": {"code": 1, "message": ""}}, Kind.ERROR, "1"),
        ({"id": None, "error": {"code": 1, "message": ""}}, Kind.ERROR, None),
        ({"error": {"code": 1, "message": ""}}, Kind.ERROR, None),
    ],
)
def test_the_members_of_the_envelope_tell_the_kind(members: dict[str, Any], kind: Kind, identity: object) -> None:
    found = frame(message(**members))
    assert (found.kind, found.id) == (kind, identity)


@pytest.mark.parametrize(
    "spaced", [b'{"jsonrpc": "2.0", "id": %b, "method": "x"}', b'{"jsonrpc":"2.0","id":%b,"method":"x"}']
)
@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        (b"0", 0),
        (b"-0", 0),
        (b"-7", -7),
        (b"9007199254740993", 2**53 + 1),
        (b"9223372036854775808", 2**63),
        (b"1" * 1000, int("1" * 1000)),
        (b'"1"', "1"),
        (b'""', ""),
        (rb'"\u0031"', "1"),
        ('"\u00e9\u2028"'.encode(), "\u00e9\u2028"),
    ],
)
def test_ids_are_texts_and_integers_of_any_value(spaced: bytes, spelled: bytes, value: object) -> None:
    found = frame(spaced % spelled)
    assert (type(found.id), found.id) == (type(value), value)


def test_ids_of_other_types_are_different() -> None:
    assert frame(message(id=1, method="x")).id != frame(message(id="1", method="x")).id


@pytest.mark.parametrize(
    "spelled", [b"1.0", b"1e2", b"true", b"false", b"[]", b"{}", b"1" * 1025, b'"%b"' % (b"a" * 1023)]
)
def test_an_id_of_another_type_or_too_long_is_refused(spelled: bytes) -> None:
    reason = "id: an integer or a text of at most 1024 bytes belongs here"
    found = read(b'{"jsonrpc":"2.0","id":%b,"method":"x"}' % spelled)
    assert bad(found) == (-32600, reason, None, Kind.REQUEST)


SHORT_METHOD = "method: a text of at most 1024 bytes belongs here"
NO_META = "params: _meta: an object belongs here"
NO_MESSAGE = "a message has a method, or an id with a result or an error"


@pytest.mark.parametrize(
    ("data", "code", "reason", "identity", "kind"),
    [
        (b"", -32700, "nothing, where a message belongs", None, None),
        (b" \r\n\t", -32700, "nothing, where a message belongs", None, None),
        (b"{", -32700, "no valid JSON", None, None),
        (b"{} {}", -32700, "no valid JSON", None, None),
        (b"[1,", -32700, "no valid JSON", None, None),
        (b"[" * 100_000, -32700, "no valid JSON", None, None),
        (b"[1]", -32600, "an array, where one message belongs; send messages one by one", None, None),
        (b"7", -32600, "a message is an object", None, None),
        (b"null", -32600, "a message is an object", None, None),
        (b"{}", -32600, NO_MESSAGE, None, None),
        (b"\xef\xbb\xbf" + text(CALL), -32700, "a byte order mark before the message", None, None),
        (b'{"jsonrpc":"2.0","method":"\xff"}', -32700, "no valid UTF-8", None, None),
        (b'{"jsonrpc":"2.0","method":"x","params":{"a":["\xed\xa0\x80"]}}', -32700, "no valid UTF-8", None, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xc0\xaf"}}', -32700, "no valid UTF-8", None, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', -32700, "no valid JSON", None, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":-Infinity}}', -32700, "no valid JSON", None, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"x\ny"}}', -32700, "no valid JSON", None, None),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800\ny"}}', -32700, "no valid JSON", None, None),
        (message(id=1), -32600, NO_MESSAGE, 1, None),
        (message(id=1, result={}, error={}), -32600, NO_MESSAGE, 1, None),
        (message(id=1, method="x", result={}), -32600, NO_MESSAGE, 1, None),
        (message(result={}), -32600, NO_MESSAGE, None, None),
        (message(id=None, method="x"), -32600, "id: null, where a text or an integer belongs", None, Kind.REQUEST),
        (message(id=None, result={}), -32600, "id: null, where a text or an integer belongs", None, Kind.RESPONSE),
        (text({"id": 1, "method": "x"}), -32600, 'jsonrpc: "2.0" belongs here', 1, Kind.REQUEST),
        (text({"jsonrpc": 2.0, "id": 1, "method": "x"}), -32600, 'jsonrpc: "2.0" belongs here', 1, Kind.REQUEST),
        (text({"jsonrpc": "1.0", "id": 1, "result": {}}), -32600, 'jsonrpc: "2.0" belongs here', 1, Kind.RESPONSE),
        (message(id=1, method=5), -32600, SHORT_METHOD, 1, Kind.REQUEST),
        (message(method="x" * 1023), -32600, SHORT_METHOD, None, Kind.NOTIFICATION),
        (message(id=1, result=[1]), -32600, "result: an object belongs here", 1, Kind.RESPONSE),
        (message(id=1, error="no"), -32600, "error: an object belongs here", 1, Kind.ERROR),
        (message(id=1, method="x", params=[]), -32602, "params: an object belongs here", 1, Kind.REQUEST),
        (message(id=1, method="x", params={"_meta": None}), -32602, NO_META, 1, Kind.REQUEST),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused_in_words(
    data: bytes, code: int, reason: str, identity: object, kind: Kind | None
) -> None:
    assert bad(read(data)) == (code, reason, identity, kind)


def test_params_of_null_count_as_none() -> None:
    found = frame(message(id=1, method="x", params=None))
    assert (raws(found.parts), raws(found.meta)) == ({}, {})


# Two members of one name, and members that some readers take for another.


@pytest.mark.parametrize(
    ("data", "reason", "identity"),
    [
        ('{"jsonrpc":"2.0","id":1,"id":1,"method":"x"}', "the message has 'id' twice", None),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', "the message has 'id' twice", None),
        ('{"jsonrpc":"2.0","id":12,"id":1,"method":"x"}', "the message has 'id' twice", None),
        ('{"jsonrpc":"2.0","id":1,"method":"y","method":"x"}', "the message has 'method' twice", 1),
        ('{"jsonrpc":"2.0","id":1,"\\u006dethod":"y","method":"x"}', "the message has 'method' twice", 1),
        ('{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"x"}', "the message has 'jsonrpc' twice", 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}', "the message has 'params' twice", 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","":0,"":0}', "the message has a member twice", 1),
        ('{ "jsonrpc" : "2.0" , "id" : 1 , "method" : "x" , "id" : 1 }', "the message has 'id' twice", None),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","name":"a"}}', "params has 'name' twice", 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","\\u006eame":"b"}}', "params has 'name' twice", 1),
        (
            '{"jsonrpc":"2.0","id":1,"method":"x","params":{ "name":"a", "n\\u0061me":"a"}}',
            "params has 'name' twice",
            1,
        ),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"new":1,"new":1.5}}', "params has a member twice", 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{},"_meta":{}}}', "params has '_meta' twice", 1),
        (
            '{"jsonrpc":"2.0","id":1,"method":"x","params":{"new":{"x":1,"z":2},"new":"1234"}}',
            "params has a member twice",
            1,
        ),
        (
            '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":1,"progressToken":2}}}',
            "params: _meta has 'progressToken' twice",
            1,
        ),
    ],
)
def test_a_member_that_stands_twice_is_refused(data: str, reason: str, identity: object) -> None:
    assert bad(read(data.encode())) == (-32602, f"{reason}; give each member once", identity, Kind.REQUEST)


@pytest.mark.parametrize(
    ("data", "reason", "identity"),
    [
        ({"jsonrpc": "2.0", "id": 1, "ID": 2, "method": "x"}, "the message has 'id'", None),
        ({"jsonrpc": "2.0", "id": 1, "Method": "y", "method": "x"}, "the message has 'method'", 1),
        ({**CALL, "params": {"Name": "a"}}, "params has 'name'", 1),
        ({**CALL, "params": {"name": "b", "URI": "a"}}, "params has 'uri'", 1),
        ({**CALL, "params": {"ta\u017fkId": "a"}}, "params has 'taskId'", 1),
        ({**CALL, "params": {"tas\u212aId": "a"}}, "params has 'taskId'", 1),
        ({**CALL, "params": {"_META": {}}}, "params has '_meta'", 1),
        ({**CALL, "params": {"_meta": {"progresstoken": 1}}}, "params: _meta has 'progressToken'", 1),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_variant_in_case_is_refused(data: object, reason: str, identity: object, separators: tuple[str, str]) -> None:
    found = read(json.dumps(data, separators=separators, ensure_ascii=False).encode())
    expected = (-32602, f"{reason} in other letters; write it exactly so", identity, Kind.REQUEST)
    assert bad(found) == expected


def test_members_that_nobody_interprets_may_look_alike() -> None:
    found = frame(message(id=1, method="x", params={"a": 1, "A": 2, "arguments": {"Name": 1, "name": 2}}))
    assert raws(found.parts) == {"a": b"1", "A": b"2", "arguments": b'{"Name":1,"name":2}'}


def test_below_the_levels_that_are_read_a_member_may_stand_twice() -> None:
    assert isinstance(read(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":1,"a":2}}}'), Frame)


def test_members_beside_json_rpc_are_kept() -> None:
    assert raws(frame(message(id=1, method="x", trace="t", other=[1])).beside) == {"trace": b'"t"', "other": b"[1]"}


def test_a_result_is_read_only_when_it_is_opened() -> None:
    twice = frame(b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","resultType":"input_required"}}')
    assert bad(opened(twice)) == (-32602, "result has 'resultType' twice; give each member once", 1, Kind.RESPONSE)
    other = frame(message(id=1, result={"resulttype": "complete"}))
    assert bad(opened(other))[1] == "result has 'resultType' in other letters; write it exactly so"
    meta = frame(message(id=1, error={"code": 1, "message": "", "_meta": []}))
    assert bad(opened(meta))[1] == "error: _meta: an object belongs here"
    good = opened(frame(message(id=1, result={"content": [], "_meta": {"a": 1}})))
    assert isinstance(good, Frame)
    assert (raws(good.parts), raws(good.meta)) == ({"content": b"[]", "_meta": b'{"a":1}'}, {"a": b"1"})


# Reading members.


def test_members_are_read_by_name_and_absent_ones_are_not_there() -> None:
    found = frame(
        message(id=1, method="x", params={"name": "n", "arguments": {"a": 1}, "_meta": {"progressToken": "t"}})
    )
    seen = peek(found, "name", "uri", "arguments", "_meta")
    assert seen == {"name": "n", "arguments": Raw(b'{"a":1}'), "_meta": {"progressToken": Raw(b'"t"')}}
    name = "io.modelcontextprotocol/protocolVersion"
    assert peek_meta(found, "progressToken", name) == {"progressToken": "t"}


def test_members_of_results_and_errors_are_read_once_opened() -> None:
    closed = frame(message(id=1, error={"code": -32002, "message": "gone", "data": {}}))
    error = opened(closed)
    assert isinstance(error, Frame)
    assert peek(error, "code", "message", "data") == {"code": -32002, "message": "gone", "data": Raw(b"{}")}
    for reading in (peek, peek_meta):
        with pytest.raises(ValueError, match="the error of this frame is closed"):
            reading(closed)


@pytest.mark.parametrize(
    ("params", "name", "words"),
    [
        ({"name": 5}, "name", "a text"),
        ({"uri": None}, "uri", "a text"),
        ({"progressToken": 1.5}, "progressToken", "a text or an integer"),
        ({"requestId": True}, "requestId", "a text or an integer"),
    ],
)
def test_a_member_of_the_wrong_type_is_refused_when_it_is_read(params: Any, name: str, words: str) -> None:
    found = peek(frame(message(id=4, method="x", params=params)), name)
    assert bad(found) == (-32602, f"params: {name}: {words} belongs here", 4, Kind.REQUEST)


def test_a_member_of_meta_of_the_wrong_type_is_refused_when_it_is_read() -> None:
    found = peek_meta(frame(message(id=4, method="x", params={"_meta": {"progressToken": {}}})), "progressToken")
    assert bad(found)[:2] == (-32602, "params: progressToken: a text or an integer belongs here")


def test_only_members_in_the_table_can_be_asked_for() -> None:
    with pytest.raises(KeyError):
        peek(frame(text(CALL)), "nom")


def test_one_more_level_is_taken_apart_by_the_same_rules() -> None:
    assert members(Raw(b'{"a":1,"b":2}'), "arguments") == {"a": Raw(b"1"), "b": Raw(b"2")}
    assert members(Raw(b"{}"), "arguments") == {}
    assert members(Raw(b"{ \n   }"), "arguments") == {}
    assert bad(members(Raw(b'{"a":1,"a":2}'), "arguments"))[:2] == (
        -32602,
        "arguments has a member twice; give each member once",
    )
    assert bad(members(Raw(b'{"Type":1}'), "ref", ["type"]))[1] == (
        "ref has 'type' in other letters; write it exactly so"
    )
    assert bad(members(Raw(b"[]"), "ref"))[1] == "ref: an object belongs here"


# Limits.


def nested(levels: int) -> bytes:
    """A message with so many levels, its own two included."""
    inner = levels - 2
    return b'{"jsonrpc":"2.0","id":1,"result":{"a":%b1%b}}' % (b"[" * inner, b"]" * inner)


def test_nesting_is_bounded_exactly() -> None:
    assert isinstance(read(nested(128)), Frame)
    assert bad(read(nested(129)))[:2] == (-32600, "nested deeper than 128 levels")
    assert bad(read(nested(100_000)))[:2] == (-32600, "nested deeper than 128 levels")


def test_what_only_breaks_a_limit_inside_is_known_by_its_id_and_kept() -> None:
    found = refused(nested(129) + b"\n")
    assert (found.id, found.kind, found.line) == (1, Kind.RESPONSE, nested(129))
    # Readers of JSON go no thousand levels down: what is below the limit is emptied then.
    for depth in (1_000, 100_000):
        assert refused(nested(depth)) == Bad(-32600, found.reason, 1, Kind.RESPONSE, nested(129).replace(b"1]", b"]"))
    # What is wrong beside that is said in its place.
    assert bad(read(nested(129).replace(b'"id":1', b'"id":1,"id":2'))) == (
        -32602,
        "the message has 'id' twice; give each member once",
        None,
        Kind.RESPONSE,
    )
    assert bad(read_batch(b"[%b]" % nested(129), allowed=True))[1] == "nested deeper than 128 levels"


def item(name: str, inside: str) -> str:
    return f'{{"name": "{name}", "a": {inside}}}'


LONG = "9" * 4301


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("[" * 125 + "]" * 125, "nested deeper than 125 levels"),
        ("[" * 900 + "]" * 900, "nested deeper than 125 levels"),
        (LONG, "a number of more than 4300 digits"),
    ],
)
def test_items_that_break_a_limit_are_left_out_of_their_list(inside: str, why: str) -> None:
    good = item("good", "[" * 124 + "]" * 124)
    line = '{"jsonrpc":"2.0","id":7,"result":{"nextCursor":"n","tools":[%s,\n%s],"_meta":{"a/b":1}}}'
    found = spared(refused((line % (good, item("bad", inside))).encode()).line, "tools")
    assert isinstance(found, Spared)
    rest = opened(frame((line % (good, "")).replace(",\n", "").encode()))
    assert isinstance(rest, Frame)
    assert raws(found.frame.parts) == {**raws(rest.parts), "tools": b"[%b]" % good.encode()}
    assert (found.frame.id, raws(found.frame.meta)) == (7, {"a/b": b"1"})
    assert found.left == ((Raw(item("bad", inside).encode()), why),)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('"result":{"tools":[],"other":%s}', "a number of more than 4300 digits"),
        ('"result":{"tools":%s}', "tools is no list"),
        ('"result":{"tools":[1,%s],"tools":[]}', "result has a member twice; give each member once"),
        ('"error":{"code":1,"message":"m","tools":[%s]}', "no result"),
    ],
)
def test_what_breaks_a_limit_elsewhere_is_not_spared(body: str, reason: str) -> None:
    line = refused(('{"jsonrpc":"2.0","id":7,%s}' % (body % LONG)).encode()).line
    assert bad(spared(line, "tools"))[1] == reason


@pytest.mark.parametrize("pair", [("[", "1", "]"), ('[{"]\\"}":', '"[{\\""', "}]")])
def test_an_item_that_no_reader_of_json_can_go_down_is_left_out_of_its_list(pair: tuple[str, str, str]) -> None:
    line = '{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"},{"name":"bad","x":%s},{"name":"b]"}]}}'
    opening, inside, closing = pair
    found = spared(refused((line % (opening * 50_000 + inside + closing * 50_000)).encode()).line, "tools")
    assert isinstance(found, Spared)
    assert raws(found.frame.parts) == {"tools": b'[{"name":"a"},{"name":"b]"}]'}
    ((left, why),) = found.left
    assert bytes(left).startswith(b'{"name":"bad","x":[')
    assert why == "nested deeper than 125 levels"


def test_what_readers_of_json_cannot_go_down_is_told_from_what_is_no_json() -> None:
    start = b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 2_000
    for end in (b"", b"]", b"]" * 2_000, b"]" * 2_001 + b"}", b'"', b'"\\', b'"' + b'\\"' * 100_000):
        assert bad(read(start + end))[:2] == (-32700, "no valid JSON")
    assert bad(read(start + b'[""],' * MOST_TOKENS + b"]" * 2_000 + b"}"))[:3] == (
        -32600,
        "nested deeper than 128 levels",
        None,
    )


@given(
    st.recursive(
        st.integers() | st.text('a"\\[]{}'), lambda inner: st.lists(inner) | st.dictionaries(st.text("a]}"), inner)
    ),
    st.integers(0, 5),
)
def test_emptying_what_nests_too_deep_leaves_all_else(value: object, depth: int) -> None:
    def emptied(part: Any, level: int) -> object:
        if isinstance(part, list):
            return [emptied(one, level + 1) for one in part] if level < depth else []
        if isinstance(part, dict):
            members = part.items()
            return {name: emptied(one, level + 1) for name, one in members} if level < depth else {}
        return part

    raw = json.dumps(value).encode()
    assert json.loads(shallow(raw, depth)) == emptied(value, 0)
    assert shallow(shallow(raw, depth), depth) == shallow(raw, depth)


def test_many_brackets_are_not_deep() -> None:
    assert isinstance(read(message(id=1, result={"a": [[{}]] * 5000, "b": "[" * 5000, "c": '\\"[' * 500})), Frame)


def test_numbers_survive_up_to_the_limit_of_digits_and_no_further() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":{"a":%b}}'
    assert bytes(frame(data % (b"9" * 4300)).body or b"") == b'{"a":%b}' % (b"9" * 4300)
    assert bad(read(data % (b"9" * 4301)))[:2] == (-32600, "a number of more than 4300 digits")
    assert bad(read(data % (b"0." + b"9" * 4301)))[:2] == (-32600, "a number of more than 4300 digits")
    assert isinstance(read(data % b'"%b"' % (b"9" * 100_000)), Frame)


def test_frames_are_bounded_in_bytes() -> None:
    limits = FrameLimits(bytes=len(text(CALL)))
    assert isinstance(read(text(CALL) + b"\n", limits), Frame)
    assert bad(read(text({**CALL, "id": 10}), limits)) == (
        -32600,
        f"a message of more than {limits.bytes} bytes",
        None,
        None,
    )


def test_a_long_text_passes() -> None:
    found = frame(message(id=1, result={"a": "x" * 5_000_000}))
    assert found.body is not None
    assert len(found.body) == 5_000_008


def test_members_of_a_level_are_bounded_in_number() -> None:
    many = {f"m{number}": 0 for number in range(MEMBERS + 1)}
    found = read(message(id=1, method="x", params=many))
    assert bad(found) == (-32602, f"params has more than {MEMBERS} members", 1, Kind.REQUEST)
    many.popitem()
    assert isinstance(read(message(id=1, method="x", params=many)), Frame)


def test_what_stands_beside_json_rpc_is_bounded() -> None:
    assert bad(read(message(id=1, method="x", more="x" * BESIDE))) == (
        -32600,
        f"more than {BESIDE} bytes beside the members of JSON-RPC",
        1,
        Kind.REQUEST,
    )
    assert bad(read(message(id=1, method="x", **{f"m{number}": 0 for number in range(MEMBERS + 1)})))[:2] == (
        -32600,
        f"the message has more than {MEMBERS} members",
    )


# Batches.


def test_a_batch_is_exploded_and_each_message_judged_for_itself() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    found = read_batch(
        text([ping, {**ping, "id": "1"}, {"jsonrpc": "2.0", "id": 1, "result": {}}, 5, {**ping, "id": 1.5}]),
        allowed=True,
    )
    assert isinstance(found, Batch)
    assert [item.kind for item in found.items] == [Kind.REQUEST, Kind.REQUEST, Kind.RESPONSE, None, Kind.REQUEST]
    assert [isinstance(item, Frame) for item in found.items] == [True, True, True, False, False]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_single_message_is_a_frame_where_batches_are_allowed_too(*, allowed: bool) -> None:
    assert read_batch(b" " + text(CALL), allowed=allowed) == read(text(CALL))
    assert bad(read_batch(b"{", allowed=allowed))[0] == -32700


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "a batch of no messages, where 1 to 3 belong"),
        ([CALL] * 4, "a batch of more messages, where 1 to 3 belong"),
        ([CALL, CALL], "a batch with the same id twice"),
        ([CALL, {**CALL, "params": []}], "a batch with the same id twice"),
        ([CALL, {"jsonrpc": "2.0", "id": 2, "method": "initialize"}], "initialize inside a batch; send it alone"),
    ],
)
def test_a_batch_that_cannot_be_answered_is_refused_as_a_whole(items: list[object], reason: str) -> None:
    assert bad(read_batch(text(items), FrameLimits(batch=3), allowed=True)) == (-32600, reason, None, None)


def test_an_array_that_is_not_allowed_is_refused() -> None:
    found = read_batch(text([CALL]), allowed=False)
    assert bad(found)[:2] == (-32600, "an array, where one message belongs; send messages one by one")


def test_the_limits_hold_for_a_batch_as_a_whole() -> None:
    data = text([CALL, {**CALL, "id": 2}])
    assert bad(read_batch(data, FrameLimits(bytes=len(data) - 1), allowed=True))[0] == -32600
    assert bad(read_batch(b"[1,\xff]", allowed=True))[:2] == (-32700, "no valid UTF-8")
    assert bad(read_batch(b"[1,", allowed=True))[:2] == (-32700, "no valid JSON")
