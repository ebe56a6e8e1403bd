from hypothesis import given
from hypothesis import strategies as st

from troth.wire.lines import Line, Lines
from troth.wire.words import excerpt, printable


def test_text_is_safe_to_show():
    assert printable("plain ä 😀") == "plain ä 😀"
    assert printable("\x1b[2J\r\n\u202e\x9b\ud800") == "\\x1b[2J\\r\\n\\u202e\\x9b\\ud800"
    assert excerpt(b"\xff\0") == "\\xff\\x00"
    assert excerpt("x" * 200) == "x" * 200
    assert excerpt(b"x" * 201) == "x" * 200 + "..."
    assert excerpt("\0" * 100) == ("\\x00" * 50) + "..."


@given(st.lists(st.binary(max_size=8) | st.just(b"\n"), max_size=30), st.integers(0, 12))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(chunks, limit):
    ends: list[bytes] = []
    lines = Lines(limit, ends.append)
    got = [line for chunk in chunks for line in lines.feed(chunk)]
    *whole, rest = b"".join(chunks).split(b"\n")
    expected = [Line(data) if len(data) <= limit else None for data in whole]
    assert [line if line.whole else None for line in got][: len(whole)] == expected
    assert len(got) == len(whole) + (len(rest) > limit)
    assert lines.rest == (rest if len(rest) <= limit else b"")
    assert ends == [data for data in whole if len(data) > limit]


def test_of_a_line_that_was_too_long_the_last_bytes_are_told():
    ends: list[bytes] = []
    lines = Lines(10, ends.append)
    for chunk in (b"x" * 150, b"y" * 150, b"z\nnext\n"):
        list(lines.feed(chunk))
    assert ends == [b"x" * 49 + b"y" * 150 + b"z"]
