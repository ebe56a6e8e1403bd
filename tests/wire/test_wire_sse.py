import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.wire.sse import Event, EventStream

ENDS = ["\n", "\r", "\r\n"]


def read(chunks, limit=10_000):
    stream = EventStream(limit)
    return [event for chunk in chunks for event in stream.feed(chunk)], stream.rest


def bytewise(data):
    return [bytes([byte]) for byte in data]


TEXT = """\ufeff: a comment
id: 1
retry: 250
data:

event: message
data: {"a":
data:  1}
id

data
data
event:
unknown: field
retry: soon
retry: 9999999999
id: nul\0here

data:x
:
event: ping

id: only
"""
EVENTS = [
    Event(id="1", retry=250),
    Event(data=b'{"a":\n 1}', id=""),
    Event(data=b"\n"),
    Event(data=b"x", event="ping"),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("cut", [bytewise, lambda data: [data]])
def test_every_line_end_reads_the_same_however_it_is_cut(end, cut):
    data = TEXT.replace("\n", end).encode()
    assert read(cut(data)) == (EVENTS, b"id: only")


def test_a_second_mark_is_part_of_the_text_and_half_a_mark_is_no_mark():
    assert read([b"\xef", b"\xbb\xbf\xef\xbb\xbfdata: a\n\n"]) == ([Event()], b"")
    assert read([b"\xef", b"\xbbdata: a\n\n"]) == ([Event()], b"")


def test_data_keeps_bytes_that_are_no_text():
    assert read([b"data: \xff\n\n"]) == ([Event(data=b"\xff")], b"")


def test_comments_alone_are_no_event():
    assert read([b": ping\n\n: ping\n\n: pi"]) == ([], b"")


def test_a_large_event_is_told_once_and_the_next_one_is_whole():
    large = b"data: " + b"x" * 50 + b"\n"
    data = b"data: a\n\nid: 7\n" + large + b"more: " + b"y" * 90 + b"\ndata: z\n\ndata: b\n\n"
    expected = [Event(data=b"a"), Event(oversize=True), Event(data=b"b")]
    assert read([data], limit=40) == (expected, b"")
    assert read(bytewise(data), limit=40) == (expected, b"")
    assert read([large], limit=40) == ([Event(oversize=True)], b"")


def test_many_small_lines_make_a_large_event_too():
    assert read([b"data: x\n" * 100 + b"\n"], limit=70) == ([Event(oversize=True)], b"")


PIECES = st.sampled_from(
    [b"data", b"event", b"id", b"retry", b":", b": ", b" ", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"x", b"12"]
)


@given(st.lists(PIECES, max_size=60), st.data(), st.integers(3, 40))
def test_any_cutting_yields_the_same_events(pieces, draw, limit):
    data = b"".join(pieces)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=10)))
    chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert read(chunks, limit) == read([data], limit) == read(bytewise(data), limit)


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), st.sampled_from(ENDS)), min_size=1
    )
)
def test_any_lines_come_back_joined_by_line_feeds(lines):
    data = "".join(f"data: {text}{end}" for text, end in lines) + lines[-1][1]
    assert read([data.encode()]) == ([Event(data="\n".join(text for text, _ in lines).encode())], b"")
