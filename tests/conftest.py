"""What all tests share: the list of behaviours, which of them the collected tests claim, and patience.

`pytest --behaviours` prints the list: each id with the number of tests that claim it. A test that claims an id that is
not in the list is an error.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

LIST = Path(__file__).parents[2] / "shared" / "behaviours" / "behaviours.json"
CLAIMED = pytest.StashKey["Counter[str]"]()

# How long an example takes is the machine's affair; pytest bounds the whole test.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def known() -> frozenset[str]:
    """Ids of the list; empty where it is not at hand."""
    if not LIST.exists():
        return frozenset()
    return frozenset(item["id"] for item in json.loads(LIST.read_text("utf-8"))["items"])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--behaviours", action="store_true", help="print which behaviours the collected tests claim")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    claimed: Counter[str] = Counter()
    ids = known()
    for item in items:
        for marker in item.iter_markers("behaviour"):
            claimed.update(marker.args)
            strangers = [name for name in marker.args if ids and name not in ids]
            if strangers or not marker.args:
                raise pytest.UsageError(f"{item.nodeid} claims behaviours that are not in the list: {strangers}")
    config.stash[CLAIMED] = claimed


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--behaviours"):
        return
    claimed = config.stash.get(CLAIMED, Counter())
    ids = known() or frozenset(claimed)
    terminalreporter.section(f"behaviours: {len(claimed)} of {len(ids)} claimed")
    for name in sorted(ids):
        terminalreporter.line(f"{name:12}{claimed.get(name, 0) or '-':>6}")
