"""The generated pages are what the register says now."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from register.mutations import raw, with_row
from troth.register import Register, register
from troth.register.explain import capability
from troth.register.layout import as_markdown

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "scripts" / "generate_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate_docs"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.behaviour("GEN-D1")
def test_the_pages_in_the_repository_are_not_stale(generator: ModuleType) -> None:
    assert generator.stale(ROOT) == []


@pytest.mark.behaviour("GEN-D1")
def test_a_changed_page_is_stale_until_it_is_written_again(
    generator: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main([], tmp_path) == 0
    assert generator.main(["--check"], tmp_path) == 0
    page = tmp_path / "docs" / "capabilities.md"
    page.write_text(page.read_text("utf-8").replace("| yes |", "| – |", 1), "utf-8")
    assert generator.main(["--check"], tmp_path) == 1
    assert generator.main([], tmp_path) == 0
    assert generator.main(["--check"], tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote docs/capabilities.md",
        "wrote docs/findings.md",
        "docs/capabilities.md is stale: run `make docs`",
        "wrote docs/capabilities.md",
    ]


def test_an_unknown_argument_is_refused(generator: ModuleType, tmp_path: Path) -> None:
    assert generator.main(["--chek"], tmp_path) == 2


def test_a_change_of_any_row_makes_the_page_stale(generator: ModuleType) -> None:
    page = generator.capabilities_page(register())
    data = raw()
    for row in register().rows:
        assert _section(register(), row.id) in page
        for change in (_other_words, _drop_the_newest):
            assert _section(with_row(data, row.id, change), row.id) not in page


def _section(known: Register, row: str) -> str:
    return as_markdown(capability(known, row, whole=False), level=2)


def _other_words(row: dict[str, Any]) -> None:
    next(iter(row["revisions"].values()))["meaning"] = "Something else."


def _drop_the_newest(row: dict[str, Any]) -> None:
    row["revisions"].popitem()


def test_every_link_within_the_page_leads_to_a_heading(generator: ModuleType) -> None:
    page = generator.capabilities_page(register())
    headings = {generator.slug(heading.replace("\\", "")) for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert len(links) == len(register().rows)
    assert links - headings == set()
