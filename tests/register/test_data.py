"""The data of the register is whole: every text is there, every id leads somewhere, every source is a place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import pytest

from register.mutations import raw
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(__file__).parents[3] / "shared"
PROSE = {
    "answer",
    "breaks",
    "choice",
    "delivery",
    "http",
    "meaning",
    "note",
    "offers",
    "question",
    "reason",
    "removal",
    "text",
    "title",
    "transports_note",
    "use",
    "when_absent",
}
"""Members of the data files that hold sentences."""
NO_SENTENCE = {"title"}
SOURCE = re.compile(
    r"(schema/\d{4}-\d\d-\d\d/schema\.ts|docs/specification/\d{4}-\d\d-\d\d/\S+\.mdx):\d+"
    r"|(seps|docs/extensions|ext-[a-z]+|experimental-ext-[a-z]+)/[\w./-]+\.(md|mdx|ts)(:\d+)?"
)
"""A line of the specification, or a document of an extension."""
NEGATION = re.compile(r"\b(no|not|never|nobody|none|neither|nothing)\b", re.IGNORECASE)


def prose(node: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Every sentence of the data: where it stands, the member, the text."""
    if isinstance(node, dict):
        name = node.get("id") or node.get("code") or ""
        for member, value in node.items():
            if isinstance(value, str) and member in PROSE:
                yield f"{path}/{name}", member, value
            yield from prose(value, f"{path}/{name}/{member}")
    elif isinstance(node, list):
        for item in node:
            yield from prose(item, path)


ALL = [*prose(raw())]


def test_every_text_is_there() -> None:
    assert len(ALL) > 500
    assert [where for where, _, text in ALL if not text.strip()] == []
    rows = register().rows
    assert [row.id for row in rows if not (row.title and row.when_absent and row.breaks)] == []
    definitions = [(row.id, at) for row in rows for at in row.definitions.values()]
    assert [row for row, at in definitions if not at.meaning] == []
    assert [row for row, at in definitions if (at.channel is None) != (at.delivery == "")] == []
    assert [row for row, at in definitions if at.deprecated and not at.deprecated.removal] == []


def test_sentences_end_and_titles_do_not() -> None:
    assert [where for where, member, text in ALL if (member not in NO_SENTENCE) != text.endswith((".", "?"))] == []


def test_texts_are_one_line_of_plain_characters() -> None:
    assert [where for where, _, text in ALL if not text.isprintable() or text != " ".join(text.split())] == []


def test_what_is_forbidden_is_told_with_a_negation() -> None:
    norms = register().norms.values()
    assert [norm.id for norm in norms if norm.level.endswith("NOT") and not NEGATION.search(norm.text)] == []


def test_ids_are_unique_and_lead_somewhere() -> None:
    known = register()
    assert len(known.by_id) == len(known.rows)
    assert len({(row.side, row.path) for row in known.rows}) == len(known.rows)
    assert [(row.id, norm) for row in known.rows for norm in row.norms if norm not in known.norms] == []
    assert [(row.id, gap) for row in known.rows for gap in row.gaps if gap not in known.gaps] == []
    families = {row.family for row in known.rows} | {"*", "*client", "*server"}
    assert [norm.id for norm in known.norms.values() if not set(norm.rows) <= families] == []
    assert [norm.id for norm in known.norms.values() if norm.id != f"{norm.id.split('@')[0]}@{norm.revision}"] == []
    assert families - {None} >= {f"CAP-{number:02d}" for number in range(1, 27)}
    assert [*known.gaps] == [f"G-{number:02d}" for number in range(1, 22)]
    assert len(known.norms) == 175


def test_gaps_name_code_that_exists() -> None:
    for gap in register().gaps.values():
        for name in gap.applied:
            assert resolve_name(name), gap.id


def test_rows_and_norms_name_each_other() -> None:
    known = register()
    named = {(row.id, norm) for row in known.rows for norm in row.norms}
    bound = {
        (row.id, norm.id)
        for norm in known.norms.values()
        for family in norm.rows
        for row in known.family(family)
    }  # fmt: skip
    assert named == bound


def test_revisions_are_known_everywhere() -> None:
    known = register()
    used = {at for row in known.rows for at in row.definitions}
    used |= {norm.revision for norm in known.norms.values()}
    used |= {at for error in known.errors for at in error.revisions}
    used |= {related.revision for related in known.related}
    used |= {at for _, at in known.methods}
    assert used == set(known.revisions)


def test_sources_are_places_in_the_specification() -> None:
    known = register()
    places = [source for row in known.rows for source in row.sources]
    places += [at.source for row in known.rows for at in row.definitions.values() if at.source]
    places += [norm.source for norm in known.norms.values()]
    places += [source for error in known.errors for source in error.sources]
    places += [related.source for related in known.related]
    assert [place for place in places if not SOURCE.fullmatch(place)] == []
    without = [row.id for row in known.rows for at in row.definitions.values() if not at.source and not row.extension]
    assert without == []


def test_the_parents_of_a_field_are_defined_wherever_it_is() -> None:
    known = register()
    places = {(row.side, row.key): row for row in known.rows}
    orphans = [
        (row.id, revision)
        for row in known.rows
        for depth in range(1, len(row.key))
        for revision in row.definitions
        if revision not in places[row.side, row.key[:depth]].definitions
    ]
    assert orphans == []


def test_hosts_name_known_fields_methods_and_rows() -> None:
    known = register()
    methods = {method for method, _ in known.methods}
    paths = {row.path for row in known.rows if row.side is Side.SERVER}
    families = {row.family for row in known.rows}
    for host in known.hosts.values():
        uses = [*host.calls, *host.honours, *host.ignores]
        assert {use.needs for use in uses} <= paths | {None}, host.id
        patterns = [use.method for use in uses] + [answer.method for answer in host.answers] + [*host.never_calls]
        assert {name for name in patterns if not name.endswith("*")} <= methods, host.id
        assert {row for quirk in host.quirks for row in quirk.rows} <= families, host.id
        assert [use.method for use in host.calls if host.never(use.method)] == [], host.id
        assert len({quirk.id for quirk in host.quirks}) == len(host.quirks), host.id


def test_hosts_declare_only_fields_of_their_era() -> None:
    known = register()
    for host in known.hosts.values():
        for era, declared in host.declares.items():
            defined = {row.path for row in known.at(Side.CLIENT, known.newest(era))} | {
                "elicitation.form.applyDefaults"
            }
            assert set(_paths(declared or {})) <= defined, (host.id, era)


def _paths(declared: object, path: str = "") -> Iterator[str]:
    for name, value in declared.items() if isinstance(declared, dict) else ():
        full = f'{path}["{name}"]' if path == "extensions" else f"{path}.{name}" if path else name
        yield full
        if not full.startswith("extensions["):
            yield from _paths(value, full)


@pytest.mark.behaviour("CAP-02-B2")
def test_roots_are_deprecated_in_the_modern_era_and_work_fully() -> None:
    definition = register().by_id["CAP-02"].definitions["2026-07-28"]
    assert definition.deprecated
    assert (definition.deprecated.since, definition.deprecated.proposal) == ("2026-07-28", "SEP-2577")
    assert [gate.method for gate in definition.gates] == ["roots/list"]
    assert "works fully" in definition.meaning


@pytest.mark.skipif(not SHARED.is_dir(), reason="the papers to compare with are not beside this repository")
def test_no_sentence_is_a_copy() -> None:
    papers = [*(SHARED / "register").glob("*.json"), *(SHARED / "hosts").glob("*.json")]
    theirs = {_plain(text) for paper in papers for text in _strings(json.loads(paper.read_text("utf-8")))}
    theirs |= {
        _plain(line) for paper in (SHARED / "reference").iterdir() for line in paper.read_text("utf-8").splitlines()
    }
    assert [text for _, _, text in ALL if len(text.split()) > 3 and _plain(text) in theirs] == []


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
        yield from re.split(r"[;.]\s", node)
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _strings(item)
