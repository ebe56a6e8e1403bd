"""The page of the gateway names every key, option and host, with what the code says of them."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from pathlib import Path

import click
import pytest

from troth.gateway.config import Faults, keys
from troth.gateway.config.read import load_text
from troth.gateway.connect import HOSTS
from troth.gateway.settings import GatewaySettings, UpstreamSettings

PAGE = (Path(__file__).parents[2] / "docs/gateway.md").read_text("utf-8")
TABLES = {
    "How a server is reached": keys.START,
    "What only Troth knows of a server": keys.OWN,
    "The gateway as a whole": keys.GATEWAY,
    "Credentials of hosts": keys.TOKENS,
    "What is declared to hosts": keys.POLICIES,
}
COMMANDS = {
    "Serve": ("serve",),
    "Check": ("check_config",),
    "Change": ("add", "remove"),
    "Connect hosts": ("connect",),
    "Status": ("status",),
}


def section(title: str) -> str:
    return re.split(r"\n##+ ", PAGE.partition(f"# {title}\n")[2])[0]


def row(key: keys.Key) -> str:
    values = f" One of {', '.join(f'`{choice}`' for choice in key.choices)}." if key.choices else ""
    return f"| `{key.name}` | {key.meaning}{values} | {f'`{key.default}`' if key.default else ''} |"


@pytest.mark.parametrize("title", TABLES)
def test_every_key_is_in_its_table_as_the_schema_has_it(title: str) -> None:
    rows = [line for line in section(title).splitlines() if line.startswith("| `")]
    assert rows == [row(key) for key in TABLES[title]]


def test_no_key_of_the_settings_is_missing() -> None:
    own = {key.name for key in (*keys.START, *keys.OWN)} - {"type", "args", "disabled"}
    assert own | {"name", "transport", "where"} == set(UpstreamSettings.__dataclass_fields__)
    whole = {key.name for key in keys.GATEWAY} | {"tokens", "policies", "profiles"}
    assert whole | {"upstreams", "path", "notes"} == set(GatewaySettings.__dataclass_fields__)


def test_the_defaults_of_the_page_are_those_of_the_settings() -> None:
    told = {key.name: tomllib.loads(f"x = {key.default}")["x"] for key in keys.OWN if key.default}
    fields = UpstreamSettings.__dataclass_fields__
    assert {name: list(value) if isinstance(value := fields[name].default, tuple) else value for name in told} == told
    assert GatewaySettings().startup_wait == float(next(key.default for key in keys.GATEWAY if key.default == "5"))


def test_every_command_and_option_of_questions_is_in_its_section() -> None:
    text = section("Questions for people")
    group = import_module("troth.cli.questions").command
    options = {
        param.opts[0] for item in group.commands.values() for param in item.params if isinstance(param, click.Option)
    }
    assert [name for name in group.commands if f"| `{name}" not in text] == []
    assert [name for name in options if f"`{name}" not in text] == []


@pytest.mark.parametrize("title", COMMANDS)
def test_every_option_of_a_command_is_in_its_section(title: str) -> None:
    text = section(title)
    commands = [import_module(f"troth.cli.{name}").command for name in COMMANDS[title]]
    options = [param.opts[0] for item in commands for param in item.params if isinstance(param, click.Option)]
    assert options
    assert [name for name in options if f"`{name}" not in text] == []


def test_every_known_host_is_on_the_page() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (HTTP or )?stdio", section("Connect hosts"), re.MULTILINE)
    assert [(name, bool(http)) for name, http in rows] == [(host.id, host.http) for host in HOSTS]


def test_the_configurations_of_the_page_are_good_and_say_the_same() -> None:
    environ = {"DOCS_TOKEN": "x" * 16, "LAPTOP_TOKEN": "y" * 16}
    toml, plain = (
        re.findall(rf"^```{form}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0] for form in ("toml", "json")
    )
    one, two = load_text("troth.toml", toml, environ), load_text("mcp.json", plain, environ)
    assert isinstance(one, GatewaySettings), str(one)
    assert isinstance(two, GatewaySettings), str(two)
    assert one.upstreams[0].deny == two.upstreams[0].deny == ("write_*",)
    assert one.policies == two.policies
    assert json.loads(plain)


def test_the_faults_of_the_page_are_told_so() -> None:
    text = '[servers.docs]\nurl = "http://a"\ncall_timout = 1\n\n\n[tokens.laptop]\ntoken = "short"\n'
    found = load_text("troth.toml", text, {})
    assert isinstance(found, Faults)
    assert f"```text\n{found}\n```" in PAGE
