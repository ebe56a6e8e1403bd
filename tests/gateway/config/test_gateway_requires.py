"""What an operator requires of hosts, in the configuration."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from troth.gateway.config import Faults, load
from troth.gateway.settings import spoken
from troth.gating import ELICITATION_FORM, ROOTS, SAMPLING, Need, any_of

if TYPE_CHECKING:
    from pathlib import Path


def loaded(folder: Path, text: str, name: str = "troth.toml"):
    file = folder / name
    file.write_text(text, "utf-8")
    return load(str(file), {})


TOML = """
[gateway]
allow_when_not_declared = true
[servers.a]
command = "x"
[servers.a.requires]
ask = "sampling, roots or elicitation.form"
"file:///a" = ["roots"]
"""
WANTED = {"ask": Need(SAMPLING | any_of(ROOTS, ELICITATION_FORM)), "file:///a": Need(ROOTS)}


def test_requirements_are_read_from_toml(tmp_path: Path) -> None:
    settings = loaded(tmp_path, TOML)
    assert not isinstance(settings, Faults)
    assert settings.allow_when_not_declared
    assert settings.upstreams[0].requires == WANTED


def test_requirements_are_read_from_the_file_of_a_host(tmp_path: Path) -> None:
    requires = {"ask": "sampling, roots or elicitation.form", "file:///a": ["roots"]}
    text = json.dumps({"mcpServers": {"a": {"command": sys.executable, "troth": {"requires": requires}}}})
    settings = loaded(tmp_path, text, "mcp.json")
    assert not isinstance(settings, Faults)
    assert settings.upstreams[0].requires == WANTED
    assert not settings.allow_when_not_declared


@pytest.mark.parametrize(
    ("requires", "told"),
    [
        ('"sampling"', "servers.a.requires: must be an object of requirements"),
        ('{ ask = "rots" }', "servers.a.requires.ask: says no requirement: no client capability is called 'rots'"),
        ("{ ask = [] }", "servers.a.requires.ask: says no requirement: a requirement names at least one capability"),
        ("{ ask = 7 }", "servers.a.requires.ask: says no requirement: a number where capabilities belong"),
    ],
)
def test_what_is_no_requirement_is_a_fault_that_names_the_tool(tmp_path: Path, requires: str, told: str) -> None:
    found = loaded(tmp_path, f'[servers.a]\ncommand = "x"\nrequires = {requires}\n')
    assert isinstance(found, Faults)
    assert told in str(found)


def test_a_change_of_requirements_restarts_no_server(tmp_path: Path) -> None:
    before = loaded(tmp_path, TOML)
    after = loaded(tmp_path, TOML.replace('"roots"', '"sampling"'))
    assert not isinstance(before, Faults)
    assert not isinstance(after, Faults)
    assert before.upstreams != after.upstreams
    assert [*map(spoken, before.upstreams)] == [*map(spoken, after.upstreams)]
