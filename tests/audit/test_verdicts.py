"""The tables of verdicts and findings: complete, ordered, and grounded in the register."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import troth.audit
from troth.audit.context import fault, laid_down
from troth.audit.model import Severity, Verdict
from troth.audit.verdicts import FINDINGS, RANK, VERDICTS
from troth.register import register

SOURCES = sorted(Path(troth.audit.__file__).parent.rglob("*.py"))
NORMS = {norm.id.partition("@")[0] for norm in register().norms.values()}


def test_every_verdict_has_its_meaning() -> None:
    assert set(VERDICTS) == set(Verdict)
    assert sorted(RANK.values()) == list(range(len(Verdict)))
    assert RANK[Verdict.BROKEN] == max(RANK.values())


def test_the_more_serious_verdict_stands_later() -> None:
    order = list(Severity)
    severities = [order.index(meaning.severity) for meaning in VERDICTS.values()]
    assert severities == sorted(severities)


def test_every_code_that_is_used_is_in_the_table_and_every_code_of_the_table_is_used() -> None:
    text = "\n".join(path.read_text("utf-8") for path in SOURCES if path.name != "verdicts.py")
    used = set(re.findall(r'"([a-z]+(?:-[a-z]+)*\.[a-z-]+)"', text)) & set(FINDINGS)
    asked = set(re.findall(r'(?:finding|fault)\(\s*"([^"]+)"', text))
    assert asked <= set(FINDINGS)
    assert used == set(FINDINGS)


@pytest.mark.behaviour("AUD-A14")
@pytest.mark.parametrize("code", FINDINGS)
def test_a_finding_says_where_it_is_laid_down(code: str) -> None:
    meaning = FINDINGS[code]
    assert meaning.text.endswith(".")
    assert not meaning.source.startswith("N-") or meaning.source in NORMS
    assert fault(code, "Text.").source == laid_down(meaning.source)


@pytest.mark.behaviour("AUD-A14")
def test_a_norm_is_named_by_file_and_line() -> None:
    assert re.fullmatch(r"docs/specification/2026-07-28/.+\.mdx:\d+", laid_down("N-32021"))
    assert laid_down("JSON-RPC 2.0, section 5") == "JSON-RPC 2.0, section 5"
