"""What survives a restart, and files that only the operator may read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from troth.config import Fault
from troth.gateway.config import Faults, keep_token, load_with_tokens, read_tokens
from troth.gateway.run import Run, alive, announce, running, withdraw
from troth.gateway.settings import GatewaySettings, TokenSettings, Transport, UpstreamSettings
from troth.gateway.state import Seen, State, state_path

if TYPE_CHECKING:
    from pathlib import Path


def settings(*names: str, **prefixes: str) -> GatewaySettings:
    upstreams = tuple(
        UpstreamSettings(name=name, transport=Transport.STDIO, command=("x",), prefix=prefixes.get(name))
        for name in names
    )
    return GatewaySettings(upstreams=upstreams)


def again(state: State) -> State:
    assert state.save() == ""
    return State.load(state.path)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_rule_9_a_lone_upstream_stays_bare_and_later_ones_get_prefixes(tmp_path: Path) -> None:
    state = State.load(tmp_path / "deep" / "state.json")
    assert state.prefixes(settings("Files")) == {"Files": ""}

    state = again(state)
    assert state.prefixes(settings("web", "Files")) == {"web": "web", "Files": ""}
    state = again(state)
    assert state.prefixes(settings("web")) == {"web": "web"}
    assert state.prefixes(settings("late")) == {"late": "late"}
    assert state.prefixes(settings("Files")) == {"Files": ""}


def test_rule_9_several_upstreams_at_first_all_get_prefixes_and_keep_them_alone(tmp_path: Path) -> None:
    state = State.load(tmp_path / "state.json")
    assert state.prefixes(settings("a", "My Files")) == {"a": "a", "My Files": "my-files"}
    assert again(state).prefixes(settings("a")) == {"a": "a"}


def test_rule_9_the_operators_prefix_wins_and_stays_when_it_is_taken_away(tmp_path: Path) -> None:
    state = State.load(tmp_path / "state.json")
    assert state.prefixes(settings("a", "b", a="")) == {"a": "", "b": "b"}
    assert state.prefixes(settings("a", "b", a="x")) == {"a": "x", "b": "b"}
    assert state.prefixes(settings("a", "b")) == {"a": "", "b": "b"}


def test_a_prefix_that_was_kept_is_not_given_to_another(tmp_path: Path) -> None:
    state = State.load(tmp_path / "state.json")
    assert state.prefixes(settings("a", "z", a="b")) == {"a": "b", "z": "z"}
    assert state.prefixes(settings("a", "b")) == {"a": "b", "b": "b-2"}
    assert state.prefixes(settings("b", "a")) == {"b": "b-2", "a": "b"}


def test_rule_8_what_an_upstream_declared_is_known_before_it_speaks_again(tmp_path: Path) -> None:
    state = State.load(tmp_path / "state.json")
    assert state.seen("a") is None
    state.prefixes(settings("a"))
    declared = {"tools": frozenset({"listChanged"}), "prompts": frozenset[str]()}
    state.remember("a", era="legacy", revision="2025-11-25", declared=declared)

    assert again(state).seen("a") == Seen(prefix="", era="legacy", revision="2025-11-25", declared=declared)


def test_only_the_owner_may_read_the_state(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state.json"
    state = State.load(path)
    state.prefixes(settings("a"))
    assert state.save() == ""
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert [item.name for item in path.parent.iterdir()] == ["state.json"]


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    state = State.load(tmp_path / "state.json")
    state.prefixes(settings("a"))
    state = again(state)
    (tmp_path / "state.json").unlink()
    state.prefixes(settings("a"))
    assert state.save() == ""
    assert not (tmp_path / "state.json").exists()


def test_two_gateways_on_one_state_keep_what_the_other_wrote(tmp_path: Path) -> None:
    one, two = State.load(tmp_path / "s.json"), State.load(tmp_path / "s.json")
    one.remember("a", era="legacy", revision="r", declared={})
    two.remember("b", era="modern", revision="r", declared={})
    assert (one.save(), two.save()) == ("", "")
    both = State.load(tmp_path / "s.json")
    assert (both.seen("a"), both.seen("b")) == (
        Seen(era="legacy", revision="r", declared={}),
        Seen(era="modern", revision="r", declared={}),
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"version": 2, "upstreams": {}}',
        b'{"version": 1}',
        b"1" * 5_000_000,
    ],
    ids=["empty", "half", "bytes", "list", "deep", "version", "members", "long"],
)
def test_a_damaged_state_is_told_and_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)

    state = State.load(path)

    assert state.problem == f"{path}: is damaged"
    assert state.prefixes(settings("a")) == {"a": ""}
    assert again(state).problem == ""


def test_entries_of_a_wrong_form_count_as_unknown(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    entry = {"prefix": "A B", "era": 1, "revision": "\x1b", "declared": {"tools": [1, "x"], "prompts": 1}}
    path.write_text(json.dumps({"version": 1, "upstreams": {"a": entry, "b": 1}}), "utf-8")
    state = State.load(path)
    assert state.seen("a") == Seen(declared={"tools": frozenset({"x"}), "prompts": frozenset()})
    assert state.seen("b") == Seen()


def test_a_state_that_cannot_be_written_is_told_and_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    state = State.load(tmp_path / "file" / "state.json")
    assert state.prefixes(settings("a")) == {"a": ""}
    assert "cannot be written" in state.save()
    assert state.prefixes(settings("a", "b")) == {"a": "", "b": "b"}
    assert "cannot be read" in State.load(tmp_path).problem


def test_a_state_without_a_file_lives_in_memory() -> None:
    state = State.load(None)
    assert state.prefixes(settings("a")) == {"a": ""}
    assert state.save() == ""


def test_every_configuration_has_a_state_of_its_own(tmp_path: Path) -> None:
    first, second = state_path(tmp_path, tmp_path / "a.json"), state_path(tmp_path, tmp_path / "b.json")
    assert first != second
    assert first == state_path(tmp_path, tmp_path / "x" / ".." / "a.json")
    assert first.is_relative_to(tmp_path)


def finished() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def test_running_gateways_are_found_and_stale_files_removed(tmp_path: Path) -> None:
    older = Run(pid=os.getppid(), url="http://127.0.0.1:1", operator="o" * 32, config="/c", started=1.0)
    newer = Run(pid=os.getpid(), url="http://127.0.0.1:2", operator="p" * 32, started=2.0)
    stale = Run(pid=finished(), url="http://127.0.0.1:3", operator="q" * 32, started=3.0)
    assert [announce(tmp_path, run) for run in (older, newer, stale)] == ["", "", ""]
    file = tmp_path / "run" / f"{newer.pid}.json"
    assert mode(file) == 0o600
    (tmp_path / "run" / "junk.json").write_text("{", "utf-8")
    (tmp_path / "run" / "form.json").write_text('{"pid": "1"}', "utf-8")

    assert running(tmp_path) == (newer, older)

    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        [f"{older.pid}.json", f"{newer.pid}.json", "junk.json", "form.json"]
    )
    withdraw(tmp_path, newer.pid)
    withdraw(tmp_path, newer.pid)
    assert running(tmp_path) == (older,)
    assert "oooo" not in repr(older)


def test_no_folder_is_no_gateway(tmp_path: Path) -> None:
    assert running(tmp_path / "none") == ()
    (tmp_path / "file").touch()
    withdraw(tmp_path / "file", 1)
    assert "cannot be written" in announce(tmp_path / "file", Run(pid=1, url="", operator=""))


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert alive(1)


def test_a_token_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "troth" / "tokens.json"
    assert read_tokens(path) == ()

    first = keep_token(path, "cursor", "")
    other = keep_token(path, "opencode", "opencode-v1")

    assert isinstance(first, TokenSettings)
    assert isinstance(other, TokenSettings)
    assert len(first.token) >= 43
    assert first.token != other.token
    assert first.token not in repr(first)
    assert keep_token(path, "cursor", "") == first
    assert read_tokens(path) == (first, other)
    assert mode(path) == 0o600


@pytest.mark.parametrize(
    "content",
    ['{"a": {"token": "short"}}', '{"a b": {"token": "0123456789abcdef"}}', '{"a": 1}', '{"a": {"token": 1}}', "["],
)
def test_a_damaged_file_of_tokens_is_a_fault_without_its_content(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(content, "utf-8")
    fault = keep_token(path, "cursor", "")
    assert isinstance(fault, Fault)
    assert str(fault).startswith(f"{path}: ")
    assert "0123456789" not in str(fault)
    (tmp_path / "troth.toml").touch()
    assert load_with_tokens(str(tmp_path / "troth.toml"), {}, path) == Faults((fault,))


def test_tokens_that_cannot_be_kept_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fault = keep_token(tmp_path / "file" / "tokens.json", "cursor", "")
    assert isinstance(fault, Fault)


def test_the_configurations_token_counts_over_one_of_the_same_name(tmp_path: Path) -> None:
    config, tokens = tmp_path / "troth.toml", tmp_path / "tokens.json"
    config.write_text('[tokens.cursor]\ntoken = "0123456789abcdef"\n', "utf-8")
    kept = [keep_token(tokens, name, "") for name in ("cursor", "codex")]
    found = load_with_tokens(str(config), {}, tokens)
    assert isinstance(found, GatewaySettings)
    assert found.tokens == (TokenSettings(name="cursor", token="0123456789abcdef"), kept[1])
    config.write_text("x", "utf-8")
    assert isinstance(load_with_tokens(str(config), {}, tokens), Faults)
