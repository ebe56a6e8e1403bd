"""The page about results says what is so."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from troth import results

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def test_every_example_of_the_page_gives_what_it_shows():
    text = PAGE.read_text("utf-8")
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)

    outcome = doctest.DocTestRunner(verbose=False).run(test, out=report.append)

    assert outcome.attempted > 20
    assert outcome.failed == 0, "".join(report)


@pytest.mark.parametrize("name", [name for name in results.__all__ if name.islower()])
def test_every_builder_is_on_the_page(name):
    assert f"`{name}`" in PAGE.read_text("utf-8")
