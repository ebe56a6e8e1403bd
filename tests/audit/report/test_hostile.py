"""Whatever a peer says, every format stays what it is, and secrets stay secret."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
import sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.audit.masking import MASK
from troth.audit.model import AuditReport, Direction, Finding, HostView, Severity
from troth.audit.report import FORMATS, render
from troth.audit.report.clean import (
    DEEPEST,
    MOST_FRAMES,
    MOST_MEMBERS,
    MOST_NAMES,
    MOST_TEXT,
    MOST_VALUES,
    SHORT_TEXT,
    clean_report,
    clean_value,
    cut,
    line,
)
from troth.audit.targets import HttpTarget, StdioTarget

NASTY = [
    "\x1b]0;owned\x07\x1b[2J",
    "<script>alert(1)</script>",
    "]]>&<!--",
    "\u202egnp.exe",
    "a\x00b\ud800c\uffff",
    "| @octocat `x` \n\n# h",
    '"><img src=x onerror=y>',
    "{{ 7 * 7 }}{% raw %}",
    "x" * 9000,
    "line\r\nbreak\u2028\x85",
]
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=40))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def report_saying(text: str, value: object) -> AuditReport:
    """A report in which a peer has its say wherever a peer can."""
    proof = (sample.frame(1, Direction.RECEIVED, value), sample.frame(2, Direction.NOTE, text))
    known = sample.row("CAP-17", sample.Verdict.BROKEN)
    row = msgspec.structs.replace(known, message=text, hint=text, evidence=proof)
    other = sample.row("CAP-20", sample.Verdict.NOT_OBSERVABLE, text, hint=text)
    finding = Finding(code="protocol.junk", severity=Severity.WARNING, message=text, evidence=proof, rows=("CAP-17",))
    view = HostView(
        profile="p",
        speaks=True,
        effective={text: text},
        tools=(text,),
        prompts=(text,),
        resources=(text,),
        notes=(text,),
    )
    part = sample.revision_report(
        "2025-11-25", declared=value, negotiated=text, rows=(row, other), findings=(finding,), host_view=view
    )
    target = sample.target(
        text or "t",
        address=text,
        server_info={"name": text, "version": value},
        revisions={"2024-11-05": sample.revision_report("2024-11-05", **sample.not_served(text)), "2025-11-25": part},
    )
    return AuditReport(
        troth="1.0.0",
        started_at=sample.STARTED,
        command_line=("troth", "audit", text),
        targets=(target, sample.target("other", reason=text, outcome=sample.Outcome.UNREACHABLE, revisions={})),
        stale=(text,),
    )


class Strict(HTMLParser):
    """Collects the elements of a page, and what its text says."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


EMPTY = Strict()
EMPTY.feed(render(report_saying("plain", 1), "html"))


def assert_printable(text: str) -> None:
    bad = {char for char in text if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"}
    bad |= {char for char in text if char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"}
    assert bad == set()
    text.encode("utf-8")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, VALUES)
def test_no_format_is_broken_by_what_peers_say(text: str, value: object) -> None:
    report = report_saying(text, value)
    shown = {form: render(report, form, verbose=True) for form in FORMATS}
    for body in shown.values():
        assert_printable(body)
    page = Strict()
    page.feed(shown["html"])
    page.close()
    assert page.tags <= EMPTY.tags
    assert page.attributes <= EMPTY.attributes | {"open"}
    suites = ET.fromstring(shown["junit"].encode())
    assert [suite.tag for suite in suites] == ["testsuite"] * len(suites)
    sarif = json.loads(shown["sarif"])
    assert all(result["locations"][0]["physicalLocation"] for result in sarif["runs"][0]["results"])
    assert json.loads(shown["json"])["targets"][1]["name"] == "other"
    assert [json.loads(one)["type"] for one in shown["jsonl"].splitlines()][:2] == ["header", "target"]


@pytest.mark.parametrize("text", NASTY)
def test_markdown_keeps_hostile_text_inside_its_cells_and_fences(text: str) -> None:
    body = render(report_saying(text, text), "markdown", verbose=True)
    outside = "\n".join(part for number, part in enumerate(body.split("\n```")) if number % 2 == 0)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "@octocat" not in outside
    rows = [one for one in body.splitlines() if one.startswith("| ")]
    columns = {one.replace("\\|", "").count("|") for one in rows}
    assert len(columns) == 1


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("place", ["frame", "key", "message", "name", "address", "number", "argument"])
def test_secrets_appear_in_no_format(form: str, place: str) -> None:
    stdio = StdioTarget(
        name="a",
        command=("run", "--token", "cli-token-1"),
        env={"PLAIN": "env/value 2", "API_KEY": "k3y", "PIN": "12345678"},
    )
    http = HttpTarget(
        name="b",
        url="https://me:pass-word-4@h/?key=query-key-5",
        headers={"Authorization": "Bearer bearer-6", "X-A": "header-7"},
    )
    secret = [
        "cli-token-1",
        "env/value 2",
        "k3y",
        "pass-word-4",
        "query-key-5",
        "bearer-6",
        "header-7",
        "12345678",
        "env%2Fvalue%202",
    ]
    said = " ".join(secret)
    value: Any = {
        "frame": {
            "text": said,
            "headers": {"cookie": "tasty-8", "Mcp-Session-Id": ["session-9"]},
            "more": "Cookie: tasty-8",
        },
        "key": {said: 1},
        "number": [12345678],
    }.get(place, {})
    report = report_saying(said if place == "message" else "hello", value)
    target = report.targets[0]
    if place == "name":
        target = msgspec.structs.replace(target, server_info={"name": said})
    if place == "address":
        target = msgspec.structs.replace(target, address=f"{stdio.address} {http.address}", reason=said)
    report = msgspec.structs.replace(report, targets=(target,))
    if place == "argument":
        report = msgspec.structs.replace(report, command_line=("troth", "audit", said))
    text = render(report, form, verbose=True, secrets=(*stdio.secrets, *http.secrets))
    assert [one for one in (*secret, "tasty-8", "session-9") if one in text] == []


def test_long_and_deep_values_are_cut_and_say_so() -> None:
    deep: object = 1
    for _ in range(3000):
        deep = {"a": deep}
    text = json.dumps(clean_value(deep))
    assert f"[cut: nested deeper than {DEEPEST} levels]" in text
    assert clean_value(list(range(MOST_MEMBERS + 5)))[-1] == "[cut: 5 more items]"
    assert clean_value({str(n): n for n in range(MOST_MEMBERS + 5)})["..."] == "[cut: 5 more members]"
    assert cut("é" * 100, 20) == f"{'é' * 10} [... 160 bytes cut ...] {'é' * 10}"
    assert cut("a" * 40, 20) == "a" * 40  # the note would be longer than what it stands for
    assert clean_value([10**400, float("nan"), float("-inf"), 2**62, True, 1.5, object]) == [
        "[integer of 1329 bits]", "[nan]", "[-inf]", 2**62, True, 1.5, "<class 'object'>",
    ]  # fmt: skip


def test_keys_that_become_equal_stay_apart() -> None:
    assert clean_value({"\x1b": 1, "\\x1b": 2}) == {"\\x1b": 1, "\\x1b_": 2}


def test_numbers_and_headers_are_masked_in_values() -> None:
    value = {"Cookie": {"a": 1}, "pin": 12345678, "float": 1.25, "text": "x 12345678"}
    assert clean_value(value, ("12345678", "1.25")) == {"Cookie": MASK, "pin": MASK, "float": MASK, "text": f"x {MASK}"}


def test_lines_have_no_breaks_and_no_controls() -> None:
    assert line("a\n\tb\x1b[1m\u202ec\U000e0041 d\ud800") == "a b\\x1b[1m\\u202ec\\U000e0041 d\\ud800"


def test_floods_of_evidence_and_names_are_cut() -> None:
    many = msgspec.structs.replace(sample.row("CAP-19", sample.Verdict.KEPT), evidence=sample.REFUSED * 500)
    view = msgspec.structs.replace(sample.view(speaks=True), tools=("t",) * (MOST_NAMES + 3))
    part = sample.revision_report("2025-11-25", rows=(many,), host_view=view)
    report = msgspec.structs.replace(sample.kept(), targets=(sample.target(revisions={"2025-11-25": part}),))
    shown = clean_report(report).targets[0].revisions["2025-11-25"]
    assert len(shown.rows[0].evidence) == MOST_FRAMES + 1
    assert shown.rows[0].evidence[MOST_FRAMES // 2].message == "[cut: 960 more frames]"
    assert shown.host_view is not None
    assert shown.host_view.tools[-1] == "[cut: 3 more]"


def test_a_wide_value_is_cut_where_it_is_deepest() -> None:
    wide = {"top": "stays", "wide": [[["x"] * 150] * 150] * 150}
    shown = clean_value(wide)
    assert shown["top"] == "stays"
    assert len(json.dumps(shown)) < 40 * MOST_VALUES
    assert (shown["wide"][0], shown["wide"][149]) == (["[cut: 150 members]"] * 150, "[cut: 150 members]")


def test_many_long_texts_are_cut_shorter() -> None:
    shown = clean_value(["x" * 3_000] * 200)
    assert shown[0] == "x" * 3_000
    assert shown[-1] == cut("x" * 3_000, SHORT_TEXT)
    assert len(json.dumps(shown)) < MOST_TEXT * 1.2
