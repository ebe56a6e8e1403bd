"""From files to settings: what is read, and everything that is said of what cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import config_samples as samples
import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.gateway.config import Faults, config_folder, find_config, load, state_folder
from troth.gateway.config.read import load_text
from troth.gateway.settings import (
    EraChoice,
    GatewaySettings,
    Policy,
    Share,
    TokenSettings,
    Transport,
    UpstreamSettings,
)

if TYPE_CHECKING:
    from pathlib import Path

SECRET = samples.ENVIRON["SECRET"]


def read(folder: Path, text: str, name: str = "mcp.json") -> GatewaySettings | Faults:
    path = folder / name
    path.write_text(text, "utf-8")
    return load(str(path), samples.ENVIRON)


def settings(folder: Path, text: str, name: str = "mcp.json") -> GatewaySettings:
    found = read(folder, text, name)
    assert isinstance(found, GatewaySettings), str(found)
    return found


def test_a_file_of_a_host_is_read_as_it_is(tmp_path: Path) -> None:
    found = settings(tmp_path, samples.GOOD_JSON["claude"])

    path = str(tmp_path / "mcp.json")
    assert found == GatewaySettings(
        upstreams=(
            UpstreamSettings(
                name="files",
                transport=Transport.STDIO,
                command=("npx", "-y", "files", "8000"),
                env={"A": SECRET},
                cwd=str(tmp_path / "sub"),
                where=f"{path}:4",
            ),
            UpstreamSettings(
                name="web",
                transport=Transport.HTTP,
                url="https://a.example/mcp",
                headers={"Authorization": f"Bearer {SECRET}"},
                era=EraChoice.MODERN,
                prefix="w",
                deny=("drop_*",),
                poll=60.0,
                where=f"{path}:5",
            ),
            UpstreamSettings(name="old", transport=Transport.SSE, url="http://localhost:1/sse", where=f"{path}:7"),
        ),
        tokens=(TokenSettings(name="claude-code", token=SECRET),),
        policies={"resources": Policy.NEVER},
        profiles={"opencode-v1": {"resources": Policy.NEVER, "tools": Policy.ALWAYS}},
        page_size=100,
        allowed_hosts=("mcp.example",),
        path=path,
        notes=("mcpServers.web.alwaysAllow: has no effect here.",),
    )


def test_troth_toml_says_the_same_and_more(tmp_path: Path) -> None:
    found = settings(tmp_path, samples.GOOD_TOML["full"], "troth.toml")

    path = str(tmp_path / "troth.toml")
    files = UpstreamSettings(
        name="files",
        transport=Transport.STDIO,
        command=("run", "-v", SECRET),
        env={"A": SECRET},
        cwd=str(tmp_path / "sub"),
        era=EraChoice.LEGACY,
        prefix="",
        allow=("read_*", "list"),
        deny=("read_secret",),
        rename={"list": "list_files"},
        describe={"list": "Lists files."},
        share=Share.ALWAYS,
        max_sessions=2,
        start_timeout=10.0,
        call_timeout=30.5,
        poll=45.0,
        relay_extensions=("com.example/x",),
        relay_experimental=("y",),
        where=f"{path}:18",
    )
    second = UpstreamSettings(
        name="second one",
        transport=Transport.HTTP,
        url="https://b.example/mcp",
        headers={"X-Key": SECRET},
        where=f"{path}:37",
    )
    assert found == GatewaySettings(
        upstreams=(files, second),
        tokens=(TokenSettings(name="laptop", token=SECRET, profile="opencode-v1"),),
        policies={"prompts": Policy.ALWAYS},
        profiles={"opencode-v1": {"resources": Policy.NEVER}},
        page_size=50,
        startup_wait=2.5,
        allowed_hosts=("mcp.example",),
        allowed_origins=("https://a.example",),
        path=path,
    )


@pytest.mark.parametrize("name", [name for name in samples.GOOD_JSON if name != "claude"])
def test_every_form_of_a_host_is_read(tmp_path: Path, name: str) -> None:
    found = settings(tmp_path, samples.GOOD_JSON[name])
    assert [item.name for item in found.upstreams] == ([] if name == "empty" else ["a"])


def test_an_empty_file_has_no_servers(tmp_path: Path) -> None:
    found = settings(tmp_path, "", "troth.toml")
    assert found == GatewaySettings(path=str(tmp_path / "troth.toml"))


FAULTY = [
    *(pytest.param("mcp.json", sample, id=f"json {sample.name}") for sample in samples.FAULTY_JSON),
    *(pytest.param("troth.toml", sample, id=f"toml {sample.name}") for sample in samples.FAULTY_TOML),
]


@pytest.mark.parametrize(("name", "sample"), FAULTY)
def test_a_fault_is_told_with_file_place_and_mend(tmp_path: Path, name: str, sample: samples.Faulty) -> None:
    found = read(tmp_path, sample.text, name)

    assert isinstance(found, Faults)
    assert len(found.faults) == 1, str(found)
    text = str(found)
    assert text.startswith(str(tmp_path / name))
    assert [part for part in sample.told if part not in text] == [], text
    assert "hunter2" not in text


def test_all_faults_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        '[servers.a]\ncommand = "${NO}"\nera = "x"\n[servers.b]\nurl = "ftp://x"\n[gateway]\npage_size = -1\n'
        '[tokens.c]\ntoken = "x"\n[unknown]\n'
    )
    found = read(tmp_path, text, "troth.toml")

    assert isinstance(found, Faults)
    assert [(fault.line, fault.path) for fault in found.faults] == [
        (2, "servers.a.command"),
        (3, "servers.a.era"),
        (5, "servers.b.url"),
        (7, "gateway.page_size"),
        (9, "tokens.c.token"),
        (10, "unknown"),
    ]


def test_servers_that_are_off_are_not_judged(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "${NO}", "disabled": true}, "b": {"command": "x"}}}'
    assert [item.name for item in settings(tmp_path, text).upstreams] == ["b"]


def test_members_that_mean_nothing_here_are_noted(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "x", "envFile": ".env", "zzz": 1}}}'
    assert settings(tmp_path, text).notes == (
        "mcpServers.a.envFile: has no effect here.",
        "mcpServers.a.zzz: has no effect here.",
    )


def test_a_misspelt_list_beside_the_one_that_is_read_is_noted(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "x"}}, "mcpservers": {"b": {"command": "y"}}}'
    assert settings(tmp_path, text).notes == ("mcpservers: has no effect here; did you mean 'mcpServers'?",)
    assert settings(tmp_path, '{"mcpServers": {}, "mcpServerz": {"font": 1}, "serve": 1}').notes == ()


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    found = load(str(tmp_path / "none.toml"), {})
    assert isinstance(found, Faults)
    assert "cannot be read: No such file" in str(found)
    assert "cannot be read" in str(load(str(tmp_path), {}))


def test_no_secret_is_in_the_repr_of_settings(tmp_path: Path) -> None:
    for name, text in (("mcp.json", samples.GOOD_JSON["claude"]), ("troth.toml", samples.GOOD_TOML["full"])):
        assert SECRET not in repr(settings(tmp_path, text, name))


def test_a_key_of_text_over_several_lines_is_no_table(tmp_path: Path) -> None:
    text = '[servers.a]\ncommand = """\n[servers.b]\nx = 1"""\n[servers.b]\ncommand = 1.5\nera = "x"\n'
    found = read(tmp_path, text, "troth.toml")
    assert isinstance(found, Faults)
    assert [(fault.line, fault.path) for fault in found.faults] == [(7, "servers.b.era")]


def test_the_configuration_is_looked_for_here_and_then_in_the_operators_folder(tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    own = home / ".config" / "troth"
    mac = home / "Library" / "Application Support" / "troth"
    for folder in (here, own, mac):
        folder.mkdir(parents=True)
    order = [here / "troth.toml", here / "mcp.json", own / "troth.toml", own / "mcp.json", mac / "troth.toml"]
    for path in order:
        path.touch()

    found = []
    for _ in range(6):
        path = find_config(here, {}, home, "darwin")
        found.append(path)
        if path is not None:
            path.unlink()

    assert found == [*order, None]
    (mac / "mcp.json").touch()
    assert find_config(here, {}, home, "linux") is None
    assert find_config(here, {}, home, "darwin") == mac / "mcp.json"


def test_folders_follow_the_environment_unless_it_is_relative(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": "relative"}
    assert config_folder(environ, tmp_path) == tmp_path / "c" / "troth"
    assert state_folder(environ, tmp_path) == tmp_path / ".local" / "state" / "troth"


NAMES = st.sampled_from(
    [
        "mcpServers",
        "servers",
        "mcp",
        "troth",
        "a",
        "b",
        "command",
        "args",
        "env",
        "url",
        "headers",
        "type",
        "disabled",
        "era",
        "prefix",
        "allow",
        "rename",
        "share",
        "poll",
        "gateway",
        "page_size",
        "policies",
        "tools",
        "profiles",
        "opencode-v1",
        "tokens",
        "token",
        "profile",
        "relay_extensions",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | NAMES | st.just("${X}"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)


@given(VALUES, st.sampled_from(["mcpServers", "servers", "mcp"]), VALUES)
def test_whatever_a_file_says_it_is_taken_or_refused(servers: object, home: str, ours: object) -> None:
    text = json.dumps({home: servers, "troth": ours})
    found = load_text("mcp.json", text, {})
    assert isinstance(found, GatewaySettings) or found.faults


@given(st.text(alphabet="[]servers.a=\"'{}\n#,1 command${X}"), st.sampled_from(["mcp.json", "troth.toml"]))
def test_whatever_stands_in_a_file_it_is_taken_or_refused(text: str, name: str) -> None:
    found = load_text(name, text, {})
    assert isinstance(found, GatewaySettings) or found.faults


def test_settings_can_be_compared(tmp_path: Path) -> None:
    first = settings(tmp_path, samples.GOOD_TOML["full"], "troth.toml")
    assert first == settings(tmp_path, samples.GOOD_TOML["full"], "troth.toml")
    assert first != replace(first, page_size=1)
