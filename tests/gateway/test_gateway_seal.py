"""The sealed state: what comes back, what does not, and why it says so."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import Bad
from troth.bridge.exchange_model import Expected, Round
from troth.bridge.questions import QuestionKind
from troth.gateway import seal as module
from troth.gateway.seal import KEY_AGE, LARGEST, Key, Keys, Seal, Sealed, digest, of_round

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_000_000.0
WHO = ("ann", "tools/call", "d" * 64)


def sealed(**changes: Any) -> Sealed:
    base: dict[str, Any] = {
        "principal": WHO[0],
        "method": WHO[1],
        "digest": WHO[2],
        "expires": NOW + 60,
        "upstream": "files",
        "call": "run-7",
        "round": 2,
        "state": 'the upstream\'s own "state" \u2028 é\x00',
        "answers": {"a": Raw(b'{"action":"accept","n":1.50}')},
        "awaited": {"b": (QuestionKind.FORM, {"x": Raw(b"1.50")})},
    }
    return Sealed(**{**base, **changes})


def text_of(seal: Seal, value: Sealed) -> str:
    text = seal.seal(value)
    assert isinstance(text, str)
    return text


def word(found: object) -> str:
    assert isinstance(found, Bad), found
    assert found.code == -32602
    return found.reason.removeprefix("requestState: ").partition(":")[0]


@pytest.fixture(scope="module")
def seal() -> Seal:
    return Seal(Keys.made())


@pytest.mark.behaviour("GEN-S8")
def test_what_was_sealed_comes_back_and_the_host_reads_nothing_of_it(seal: Seal) -> None:
    text = text_of(seal, sealed())
    assert seal.open(text, *WHO, NOW) == sealed()
    assert "files" not in text
    assert text.isascii()
    assert text_of(seal, sealed()) != text


def test_a_round_of_questions_is_remembered_whole(seal: Seal) -> None:
    asked = Round(
        entries={"b": {"method": "elicitation/create"}},
        number=3,
        state="its own",
        answers={"a": {"action": "decline"}, "r": Raw(b'{"roots":[]}')},
        expected={"b": Expected(kind=QuestionKind.FORM, defaults={"x": Raw(b"1")})},
        reissue=True,
    )
    made = of_round(
        asked, principal=WHO[0], method=WHO[1], digest=WHO[2], expires=NOW + 1, upstream="files", call="run-1"
    )
    found = seal.open(text_of(seal, made), *WHO, NOW)
    assert found == made
    assert isinstance(found, Sealed)
    assert (found.round, found.state, found.reissue, found.call) == (3, "its own", True, "run-1")
    assert found.answers == {"a": Raw(b'{"action":"decline"}'), "r": Raw(b'{"roots":[]}')}
    assert found.expected() == asked.expected


@pytest.mark.behaviour("GEN-S8")
def test_every_flipped_bit_and_every_cut_is_refused(seal: Seal) -> None:
    text = text_of(seal, sealed())
    data = text.encode()
    for index in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[index] ^= 1 << bit
            found = seal.open(changed.decode("latin-1"), *WHO, NOW)
            assert word(found) in ("tampered", "foreign"), (index, bit)
        assert isinstance(seal.open(text[:index], *WHO, NOW), Bad)
    for more in ("=", "A", ".", " ", "\n", "AAAA"):
        assert word(seal.open(text + more, *WHO, NOW)) == "tampered"


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "t1", "t1.", "t1..", "t1.x.", "t2.x.y", "\x00", "é" * 100, "\ud800", "A" * (LARGEST + 1), "{}"],
)
def test_what_is_none_of_ours_is_refused(seal: Seal, text: str) -> None:
    assert word(seal.open(text, *WHO, NOW)) in ("tampered", "foreign")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["", "t1.", "key"]))
def test_no_text_makes_it_fail(text: str, start: str) -> None:
    seal = Seal(Keys(Key("abcd1234", b"k" * 32)))
    assert isinstance(seal.open({"key": "t1.abcd1234."}.get(start, start) + text, *WHO, NOW), Bad)


@pytest.mark.behaviour("GEN-S8")
@pytest.mark.parametrize(
    ("who", "now", "expected"),
    [
        (("bob", WHO[1], WHO[2]), NOW, "foreign"),
        ((WHO[0], "prompts/get", WHO[2]), NOW, "other parameters"),
        ((WHO[0], WHO[1], "e" * 64), NOW, "other parameters"),
        (WHO, NOW + 60, "expired"),
        (("bob", "x", "y"), NOW + 99, "foreign"),
    ],
)
def test_it_says_which_of_foreign_other_parameters_and_expired_it_is(
    seal: Seal, who: tuple[str, str, str], now: float, expected: str
) -> None:
    assert word(seal.open(text_of(seal, sealed()), *who, now)) == expected


@pytest.mark.behaviour("GEN-S8")
def test_the_state_of_another_gateway_is_foreign(seal: Seal) -> None:
    assert word(Seal(Keys.made()).open(text_of(seal, sealed()), *WHO, NOW)) == "foreign"


def test_another_key_under_the_same_id_opens_nothing() -> None:
    text = text_of(Seal(Keys(Key("same", b"a" * 32))), sealed())
    assert word(Seal(Keys(Key("same", b"b" * 32))).open(text, *WHO, NOW)) == "tampered"


def test_a_body_cannot_be_moved_under_another_key_id() -> None:
    first, second = Key("first", b"a" * 32), Key("second", b"a" * 32)
    text = text_of(Seal(Keys(first)), sealed()).replace("first", "second")
    assert word(Seal(Keys(first, second)).open(text, *WHO, NOW)) == "tampered"


def test_what_another_version_sealed_is_refused(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(msgspec.Struct):
        anything: int = 1

    text = seal.seal(Other())  # type: ignore[arg-type]
    assert isinstance(text, str)
    assert word(seal.open(text, *WHO, NOW)) == "tampered"


def test_a_state_that_is_too_large_is_not_sealed(seal: Seal) -> None:
    found = seal.seal(sealed(state="x" * LARGEST))
    assert isinstance(found, Bad)
    assert found.code == -32603


# Keys


def test_the_key_before_still_opens_and_the_one_before_that_does_not() -> None:
    old, middle, new = (Key.of(bytes([number]) * 32) for number in range(3))
    text = text_of(Seal(Keys(old)), sealed())
    assert Seal(Keys(middle, old)).open(text, *WHO, NOW) == sealed()
    assert word(Seal(Keys(new, middle)).open(text, *WHO, NOW)) == "foreign"


def test_keys_are_kept_in_a_file_of_their_own_and_get_successors(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.json"
    first = Keys.kept(path, NOW)
    assert isinstance(first, Keys)
    assert first.previous is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert Keys.kept(path, NOW + KEY_AGE - 1) == first
    second = Keys.kept(path, NOW + KEY_AGE)
    assert isinstance(second, Keys)
    assert second.previous == first.current
    third = Keys.kept(path, NOW + 2 * KEY_AGE)
    assert isinstance(third, Keys)
    assert third.previous == second.current
    assert Keys.kept(path, NOW + 2 * KEY_AGE) == third


@pytest.mark.parametrize("content", ['{"current": "zz"}', '{"current": "00"}', '{"current": 5, "made": 1}', "{}"])
def test_keys_that_are_none_are_made_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    found = Keys.kept(path, NOW)
    assert isinstance(found, Keys)
    assert Keys.kept(path, NOW) == found


def test_a_file_of_keys_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text("not json")
    assert "is damaged" in str(Keys.kept(path, NOW))
    (tmp_path / "file").write_text("")
    assert "cannot be" in str(Keys.kept(tmp_path / "file" / "keys.json", NOW))


def test_configured_keys_are_the_same_everywhere_and_short_ones_are_refused() -> None:
    texts = ["current " * 5, "previous " * 5]
    keys = Keys.given(texts)
    assert isinstance(keys, Keys)
    assert keys == Keys.given(texts)
    assert Keys.given(texts[:1]) == Keys(keys.current)
    assert isinstance(Keys.given([]), str)
    assert isinstance(Keys.given(["x" * 40] * 3), str)
    assert "at least 32" in str(Keys.given(["short"]))


def test_a_key_shows_its_secret_nowhere() -> None:
    keys = Keys(Key.of(b"SECRETsecretSECRETsecretSECRET!!"))
    assert "SECRET" not in repr(keys)
    assert b"SECRET".hex() not in repr(keys)


def test_cryptography_is_imported_at_the_first_use_only() -> None:
    code = "import sys, troth.gateway.seal as s; s.Seal(s.Keys.made()); sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Digest


def raws(text: str) -> dict[str, Raw]:
    return msgspec.json.decode(text, type=dict[str, Raw])


def of(params: str, method: str = "tools/call") -> str:
    return digest(method, raws(params))


@pytest.mark.behaviour("GEN-S8")
def test_order_space_escapes_and_everything_beside_the_target_make_no_difference() -> None:
    plain = of('{"name":"t","arguments":{"a":1,"b":[true,null,"A"]}}')
    assert plain == of('{"arguments":{"b":[true, null ,"\\u0041"], "a" : 1},"name":"t"}')
    assert plain == of('{"name":"t","arguments":{"a":1,"b":[true,null,"A"]},"_meta":{"x":1},"requestState":"s"}')
    assert plain == of('{"name":"t","arguments":{"a":1,"b":[true,null,"A"]},"inputResponses":{"k":{}},"task":{}}')


@pytest.mark.behaviour("GEN-S8")
@pytest.mark.parametrize(
    "other",
    [
        '{"name":"u","arguments":{"a":1}}',
        '{"name":"t","arguments":{"a":2}}',
        '{"name":"t","arguments":{"a":1.0}}',
        '{"name":"t","arguments":{"a":1e0}}',
        '{"name":"t","arguments":{"a":"1"}}',
        '{"name":"t","arguments":{"a":{"#":"1"}}}',
        '{"name":"t","arguments":{"a":[1]}}',
        '{"name":"t","arguments":{"a":true}}',
        '{"name":"t","arguments":{"a":1,"b":null}}',
        '{"name":"t","arguments":{"a":1,"a":1}}',
        '{"name":"t","arguments":{".a":1}}',
        '{"name":"t","arguments":{}}',
        '{"name":"t"}',
        '{"uri":"t","arguments":{"a":1}}',
    ],
)
def test_another_target_or_argument_is_another_digest(other: str) -> None:
    assert of('{"name":"t","arguments":{"a":1}}') != of(other)


def test_the_method_counts() -> None:
    assert of('{"name":"t"}') != of('{"name":"t"}', "prompts/get")


def test_numbers_of_any_length_text_of_any_kind_and_depth_are_taken() -> None:
    huge = "9" * 5000
    assert of(f'{{"arguments":{{"a":{huge}}}}}') != of(f'{{"arguments":{{"a":{huge}1}}}}')
    lone = [digest("m", {"arguments": Raw(text)}) for text in (b'"\\ud800"', b'"\\udfff"')]
    assert lone[0] != lone[1]
    assert of('{"arguments":' + "[" * 120 + "]" * 120 + "}")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(values, values)
def test_digests_are_equal_exactly_when_values_are(one: Any, two: Any) -> None:
    first = digest("m", {"arguments": Raw(json.dumps(one).encode())})
    second = digest("m", {"arguments": Raw(json.dumps(two, indent=1).encode())})
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (first == second) is same


def test_words_name_no_secret_of_the_state() -> None:
    reasons = [value.reason for value in vars(module).values() if isinstance(value, Bad)]
    assert len(reasons) == 6
    assert all(reason.isprintable() for reason in reasons)
