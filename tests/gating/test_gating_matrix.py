"""Plug-ins list what is registered with what it needs, and the table tells which host sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import gating_servers
import pytest
from click.testing import CliRunner

import troth
from troth.cli import gate_page, main
from troth.gating import NEEDS, Listed, Need, Needs, Primitive, matrix, needs_of
from troth.plugins import fastmcp, mcp_sdk
from troth.register import Era, register

FILE = str(Path(gating_servers.__file__))
ASK = Need(troth.ROOTS | troth.any_of(troth.ELICITATION_FORM, troth.SAMPLING_TOOLS))
WANTED = [
    Listed(Primitive("tools", "echo"), None),
    Listed(Primitive("tools", "summarize"), Need(troth.SAMPLING)),
    Listed(Primitive("tools", "ask"), ASK),
    Listed(Primitive("prompts", "login"), Need(troth.ELICITATION_URL)),
    Listed(Primitive("resources", "test://roots"), Need(troth.ROOTS)),
    Listed(Primitive("templates", "test://roots/{name}"), Need(troth.ROOTS)),
]


def run(*words):
    return CliRunner().invoke(main, ["gate", *words])


def test_what_an_sdk_server_holds_is_listed_with_its_needs():
    assert anyio.run(mcp_sdk.listed, gating_servers.sdk, Needs()) == WANTED


def test_what_a_fastmcp_server_holds_is_listed_with_its_needs():
    assert anyio.run(fastmcp.listed, gating_servers.fast, Needs()) == WANTED


def test_what_a_mounted_server_holds_is_listed_with_its_needs_under_its_new_name():
    found = anyio.run(fastmcp.listed, gating_servers.outer, Needs({"in_echo": troth.TASKS}))
    assert [need for _, need in found] == [Need(troth.TASKS), *(need for _, need in WANTED[1:])]
    assert [primitive.name for primitive, _ in found][:4] == ["in_echo", "in_summarize", "in_ask", "in_login"]


def test_mounts_inside_mounts_are_looked_through():
    from fastmcp import FastMCP

    server = FastMCP("outermost")
    server.mount(gating_servers.outer, "far")
    found = dict(anyio.run(fastmcp.listed, server, Needs()))
    assert found[Primitive("tools", "far_in_ask")] == ASK


def test_what_a_low_level_server_holds_cannot_be_seen_in_it():
    assert anyio.run(mcp_sdk.listed, gating_servers.low, Needs()) is None


@pytest.mark.parametrize(("plugin", "server"), [(mcp_sdk, gating_servers.fast), (fastmcp, gating_servers.sdk)])
def test_a_plug_in_refuses_what_is_not_its_own(plugin, server):
    with pytest.raises(TypeError, match="is n"):
        anyio.run(plugin.listed, server, Needs())


def test_the_sources_of_needs_that_a_server_was_given_are_found():
    class Server: ...

    server = Server()
    assert needs_of(server).of(Primitive("tools", "a")) is None
    setattr(server, NEEDS, needs := Needs({"a": troth.ROOTS}))
    assert needs_of(server) is needs


def test_each_host_has_a_column_for_each_era_that_it_speaks():
    made = matrix(WANTED, register().hosts.values())
    assert [(host.profile.id, host.era) for host in made.hosts] == [
        (host.id, era) for host in register().hosts.values() for era in Era if host.declares[era] is not None
    ]
    assert [row.listed for row in made.rows] == WANTED
    assert all(len(row.decisions) == len(made.hosts) for row in made.rows)


@pytest.mark.behaviour("CAP-19-S3")
def test_the_table_shows_what_a_host_sees_and_why_not_the_rest():
    done = run(f"{FILE}:sdk", "--as", "opencode-v2", "--as", "lootbox")
    assert done.exit_code == 0, done.output
    assert (
        done.output
        == """\
gating_servers.py:sdk: what each host sees

                       opencode-v2  lootbox
Tools
  echo                 visible      visible
  summarize            hidden       hidden
  ask                  in part      hidden
Prompts
  login                visible      hidden
Resources
  test://roots         in part      hidden
Resource templates
  test://roots/{name}  in part      hidden

summarize: hidden from opencode-v2, lootbox: needs sampling
ask: hidden from opencode-v2 (modern, 2026-07-28): needs roots
ask: hidden from lootbox: needs roots, sampling.tools or elicitation.form
login: hidden from lootbox: needs elicitation.url
test://roots: hidden from opencode-v2 (modern, 2026-07-28), lootbox: needs roots
test://roots/{name}: hidden from opencode-v2 (modern, 2026-07-28), lootbox: needs roots
"""
    )


def test_a_narrow_table_is_broken_into_blocks():
    hosts = list(register().hosts.values())
    text = gate_page.as_text("a", matrix(WANTED, hosts), 60)
    table = text.partition("\nsummarize:")[0]
    assert max(map(len, table.splitlines())) <= 60
    assert all(host.id in table for host in hosts)
    assert len(gate_page.as_text("a", matrix(WANTED, hosts), 1).splitlines()) > len(text.splitlines())


def test_the_table_without_profiles_has_them_all():
    done = run(f"{FILE}:fast", "--format", "json")
    told = json.loads(done.output)
    assert [item["name"] for item in told["primitives"]] == [primitive.name for primitive, _ in WANTED]
    assert {cell["host"] for cell in told["primitives"][0]["hosts"]} == set(register().hosts)
    ask = told["primitives"][2]
    assert ask["needs"] == ["roots", ["sampling.tools", "elicitation.form"]]
    assert ask["hosts"][0] == {
        "host": "opencode-v1",
        "era": "legacy",
        "revision": "2025-11-25",
        "visible": False,
        "missing": ["sampling.tools or elicitation.form"],
        "code": -32600,
        "message": "Client missing capabilities to call 'ask': sampling.tools or elicitation.form",
    }


def test_the_table_for_a_page_is_markdown():
    done = run(f"{FILE}:made", "--as", "full-2026", "--format", "markdown")
    assert done.output.splitlines()[2:5] == ["| | full-2026 |", "|---|---|", "| tools: `echo` | visible |"]
    assert done.output.endswith("Nothing is hidden from any of these hosts.\n")


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_a_server_without_anything_is_said_to_have_nothing(style):
    done = run(f"{FILE}:empty", "--format", style)
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "The server lists nothing.")


def test_names_of_strangers_cannot_break_the_table():
    listed = [Listed(Primitive("tools", "a|b`\n\x1b[31m" + "c" * 90), Need(troth.ROOTS))]
    made = matrix(listed, [register().hosts["lootbox"]])
    text, page = gate_page.as_text("s\n", made, 90), gate_page.as_markdown("s\n", made, 90)
    assert "\x1b" not in text + page
    assert "a\\|b'" in page
    assert len(page.splitlines()) == 7
    assert max(len(line) for line in text.splitlines()[:6]) < 90


@pytest.mark.parametrize("words", [(f"{FILE}:low",), ("--", sys.executable, FILE, "low")])
def test_a_running_server_is_known_by_its_meta(words):
    done = run("--as", "none-legacy", *words)
    assert done.exit_code == 0, done.output
    assert "summarize: hidden from none-legacy: needs sampling" in done.output


def test_a_server_object_of_another_framework_is_started_and_asked():
    done = run(f"{FILE}:other", "--as", "none-legacy")
    assert done.exit_code == 0, done.output
    assert done.output.endswith("\nask: hidden from none-legacy: needs roots\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "No target."),
        ((f"{FILE}:sdk", "--as", "opencode"), "--as opencode: no host profile is called so; did you mean 'opencode-v"),
        ((f"{FILE}:sdk", "--", "python"), "Give one server"),
        ((f"{FILE}:nothing",), "has no object 'nothing'"),
        ((f"{FILE}:SUMMARIZE",), "is a Need, not an MCPServer"),
        (("--",), "The command after -- is empty"),
    ],
)
def test_wrong_usage_is_named(words, told):
    done = run(*words)
    assert (done.exit_code, told in " ".join(done.output.split())) == (2, True), done.output


def test_a_server_that_does_not_start_is_said_to_have_shown_nothing():
    done = run("--", sys.executable, "-c", "raise SystemExit('broken')")
    assert done.exit_code == 3
    assert "did not show its lists" in done.output


def test_a_program_that_does_not_exist_is_named():
    done = run("--", "no-such-program-anywhere")
    assert done.exit_code == 3
    assert "no-such-program-anywhere" in done.output
