"""What leaves: members that change, members that stay, and never more than one message."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from bridge_json import is_one_line
from msgspec import Raw

from troth.bridge import Frame, IdMint, one_line, opened, read, rewrite, written


def frame(data: bytes | str) -> Frame:
    found = read(data if isinstance(data, bytes) else data.encode())
    assert isinstance(found, Frame), found
    found = opened(found)
    assert isinstance(found, Frame), found
    return found


CALL = (
    '{"jsonrpc":"2.0","id":"h-1","method":"tools/call","params":{"name":"fs_read","arguments":{"n":1.50},'
    '"_meta":{"progressToken":1,"a":2}},"x":[1]}'
)


def test_an_untouched_frame_is_written_with_its_bytes() -> None:
    assert rewrite(frame(CALL)) == CALL.encode()


def test_id_name_and_token_are_replaced_and_all_else_is_copied() -> None:
    assert rewrite(frame(CALL), id=7, params={"name": "read"}, meta={"progressToken": "t"}) == (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"n":1.50},'
        b'"_meta":{"progressToken":"t","a":2}},"x":[1]}'
    )


def test_members_are_left_out() -> None:
    assert rewrite(frame(CALL), drop=("arguments",), drop_meta=("progressToken",)) == (
        b'{"jsonrpc":"2.0","id":"h-1","method":"tools/call","params":{"name":"fs_read","_meta":{"a":2}},"x":[1]}'
    )


def test_an_empty_meta_is_left_out_and_empty_params_stay() -> None:
    assert rewrite(frame(CALL), drop=("name", "arguments"), drop_meta=("progressToken", "a")) == (
        b'{"jsonrpc":"2.0","id":"h-1","method":"tools/call","params":{},"x":[1]}'
    )


def test_params_and_meta_are_made_where_there_are_none() -> None:
    ping = frame('{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert rewrite(ping) == b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert rewrite(ping, meta={"a": Raw(b"[1]")}) == (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":[1]}}}'
    )


def test_results_and_errors_change_once_they_are_opened() -> None:
    result = '{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}'
    assert rewrite(frame(result), id="a", result={"isError": False}, drop=("resultType",)) == (
        b'{"jsonrpc":"2.0","id":"a","result":{"content":[],"isError":false}}'
    )
    error = '{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"gone"}}'
    assert rewrite(frame(error), error={"code": -32602}) == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"gone"}}'
    )
    closed = read(result.encode())
    assert isinstance(closed, Frame)
    assert rewrite(closed, id=2) == result.replace('"id":1', '"id":2').encode()
    with pytest.raises(ValueError, match="the result of this frame is closed"):
        rewrite(closed, meta={"a": 1})


def test_an_error_without_an_id_says_null() -> None:
    assert rewrite(frame('{"jsonrpc":"2.0","error":{"code":1}}')) == b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}'


def test_what_does_not_belong_to_a_frame_is_not_written_into_it() -> None:
    note = frame('{"jsonrpc":"2.0","method":"x"}')
    assert rewrite(note, params={"a": 1}) == b'{"jsonrpc":"2.0","method":"x","params":{"a":1}}'
    with pytest.raises(ValueError, match="a notification has no id"):
        rewrite(note, id=1)
    with pytest.raises(ValueError, match="a notification has no result, error to change"):
        rewrite(note, result={"a": 1}, error={"a": 1})


def test_a_body_that_does_not_change_is_not_encoded_again() -> None:
    body = f'{{"content" : [ 1e999, 0.10, {"9" * 400}, "\\u00e9\\/" ]}}'
    assert rewrite(frame(f'{{"jsonrpc":"2.0","id":1,"result":{body}}}'), id=2).endswith(b'"result":%b}' % body.encode())


def test_half_a_pair_becomes_a_replacement_character_and_pairs_stay() -> None:
    sent = r'{"jsonrpc":"2.0","id":1,"result":{"a":"cut \ud83d","b":"\ud83d\ude00","c":"\\ud83d","d":"\ude00\ud83d"}}'
    assert rewrite(frame(sent)).decode() == (
        r'{"jsonrpc":"2.0","id":1,"result":{"a":"cut \ufffd","b":"\ud83d\ude00","c":"\\ud83d","d":"\ufffd\ufffd"}}'
    )


def test_our_own_values_are_one_line_too() -> None:
    value = {"a\u2028": "\r\n\u2029\x85\x0b"}
    assert written(value) == rb'{"a\u2028":"\r\n\u2029\u0085\u000b"}'
    assert json.loads(written(value)) == value
    assert written(2**200) == str(2**200).encode()


def test_ends_of_lines_become_spaces_and_rare_ones_escapes() -> None:
    assert one_line(b'{\r\n"a":\r1}\n') == b'{  "a": 1} '
    assert one_line('"\u2028\u2029\x85\u2030é"'.encode()) == '"\\u2028\\u2029\\u0085\u2030é"'.encode()
    same = b'{"a":1}'
    assert one_line(same) is same


# The attack: a body over HTTP, in which a request of the attacker's stands on a line of its own, relayed over stdio.

INNER = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"delete_all"}}'
ENDS = ["\n", "\r", "\r\n", "\n\n", "\u2028", "\u2029", "\x85"]


def heard(stream: bytes) -> list[Any]:
    """Messages that a server over stdio takes from its input: one from each line that is JSON."""
    found: list[Any] = []
    for line in stream.decode().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n"])
def test_a_line_end_between_tokens_makes_no_second_message(end: str) -> None:
    attack = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":%s%s%s}}}'
    data = (attack % (end, INNER, end)).encode()
    assert [message["id"] for message in heard(data)] == [99]
    found = frame(data)
    for line in (rewrite(found), rewrite(found, id=5, params={"name": "say"}, meta={"progressToken": 1})):
        assert is_one_line(line)
        assert [message["params"]["arguments"] for message in heard(line + b"\n")] == [{"a": json.loads(INNER)}]


@pytest.mark.parametrize("end", ENDS[4:])
def test_a_line_end_of_unicode_inside_a_string_makes_no_second_line(end: str) -> None:
    text = json.dumps(f"{end}x{end}", ensure_ascii=False)
    for name in ("id", "method", "more"):
        members = {"id": "1", "method": '"m"', "more": "1", name: text}
        spelled = ",".join(f'"{key}":{value}' for key, value in members.items())
        data = f'{{"jsonrpc":"2.0",{spelled},"params":{{"a":{text}}}}}'.encode()
        line = rewrite(frame(data))
        assert is_one_line(line)
        assert json.loads(line) == json.loads(data)


# Ids.


def test_the_ids_of_a_session_are_all_different_and_exact_everywhere() -> None:
    mint = IdMint(b"0123456789abcdef")
    ids = [mint.next() for _ in range(5000)]
    assert len(set(ids)) == 5000
    assert all(0 <= identity < 2**52 for identity in ids)


def test_one_seed_gives_one_row_of_ids_and_another_seed_another() -> None:
    first, again, other = (IdMint(seed) for seed in (b"a" * 16, b"a" * 16, b"b" * 16))
    row = [first.next() for _ in range(10)]
    assert row == [again.next() for _ in range(10)]
    assert not set(row) & {other.next() for _ in range(10)}


def test_an_id_does_not_tell_the_next() -> None:
    mint = IdMint(b"0123456789abcdef")
    ids = [mint.next() for _ in range(2000)]
    steps = [after - before for before, after in pairwise(ids)]
    assert len(set(steps)) == len(steps)
    for bit in range(52):
        assert 800 < sum(identity >> bit & 1 for identity in ids) < 1200


@pytest.mark.parametrize("seed", [b"", b"a" * 15, b"a" * 65])
def test_a_seed_that_could_be_guessed_or_is_too_long_is_refused(seed: bytes) -> None:
    with pytest.raises(ValueError, match="a seed has 16 to 64 bytes"):
        IdMint(seed)
