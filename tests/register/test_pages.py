"""What is told about one thing, and how it is set."""

from __future__ import annotations

import pytest

from register.mutations import raw
from troth.register import Register, register
from troth.register.explain import capability, error, gap, method, revision
from troth.register.layout import Fact, Page, Section, Style, as_lines, as_markdown, as_text, table
from troth.register.words import span


def headings(page: Page) -> list[str]:
    return [section.heading for section in page.sections]


def test_revisions_that_say_the_same_are_told_once() -> None:
    assert headings(capability(register(), "CAP-19"))[:2] == ["2024-11-05 to 2025-11-25", "2026-07-28"]


def test_a_revision_with_the_same_meaning_tells_only_what_differs() -> None:
    blocks = capability(register(), "CAP-17").sections[1].blocks
    assert blocks[0] == "As before, but:"
    assert [fact.label for fact in blocks[1] if isinstance(fact, Fact)] == ["delivery", "source"]


def test_revisions_that_do_not_define_a_field_are_named() -> None:
    section = capability(register(), "CAP-03").sections[1]
    assert section == Section("2026-07-28", ("The revision does not define it.",))


def test_the_first_row_of_a_family_has_its_rules() -> None:
    first, other = (capability(register(), row, whole=False) for row in ("CAP-10", "CAP-10-list"))
    assert Section("Rules", ("As for CAP-10.",)) in other.sections
    assert Section("Rules", ("As for CAP-10.",)) not in first.sections
    assert capability(register(), "CAP-10") == first


def test_a_method_without_a_gate_needs_no_declaration() -> None:
    page = method(register(), "ping")
    assert Section("Where it is not declared", ("It needs no declaration.",)) in page.sections
    assert "Gated by" not in headings(page)


def test_the_first_revision_is_compared_with_none() -> None:
    assert "Other than before" not in headings(revision(register(), "2024-11-05"))
    assert "Other than before" in headings(revision(register(), "2025-03-26"))


def test_a_code_is_not_found_inside_dates_and_longer_codes() -> None:
    assert headings(error(register(), "-1")) == ["Where"]
    assert headings(error(register(), "-32000..-32019")) == ["Where"]


@pytest.mark.parametrize("tell", [capability, error, gap])
def test_an_unknown_name_is_a_key_error(tell: object) -> None:
    assert callable(tell)
    with pytest.raises(KeyError):
        tell(register(), "nothing")


def test_a_gap_names_the_code_that_applies_the_choice() -> None:
    data = raw()
    data["gaps"][0]["applied"] = ["troth.register.register"]
    told = gap(Register(data), "G-01").sections[0].blocks[0]
    assert told[-1] == Fact("applied in", "`troth.register.register`")


def test_spans_of_revisions() -> None:
    known = register()
    assert span(known, known.revisions) == "all revisions"
    assert span(known, known.revisions[1:4]) == "2025-03-26 to 2025-11-25"
    assert span(known, known.revisions[:2]) == "2024-11-05, 2025-03-26"
    assert span(known, [known.revisions[0], *known.revisions[2:4]]) == "2024-11-05, 2025-06-18, 2025-11-25"


PAGE = Page(
    "T `a_b`",
    "An intro with a_b and `a_b`.",
    (Section("H", ("One two three four.", (Fact("x", "A text that wraps.", "here"), Fact("a" * 25, "", "")))),),
)


def test_lines_keep_to_the_width_and_say_what_they_are() -> None:
    lines = [*as_lines(PAGE, 34)]
    assert as_text(lines).splitlines() == [
        "T a_b",
        "An intro with a_b and a_b.",
        "",
        "H",
        "  One two three four.",
        "  x                         A text",
        "                            that",
        "                            wraps.",
        "                            here",
        "  aaaaaaaaaaaaaaaaaaaaaaaaa",
    ]
    assert {style for line in lines for _, style in line} == {*Style}


def test_markdown_escapes_what_is_not_a_name() -> None:
    assert as_markdown(PAGE, level=2).splitlines() == [
        "## T `a_b`",
        "",
        "An intro with a\\_b and `a_b`.",
        "",
        "### H",
        "",
        "One two three four.",
        "",
        "- **x**: A text that wraps. (here)",
        f"- **{'a' * 25}**: ",
    ]


def test_a_table_is_markdown() -> None:
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
