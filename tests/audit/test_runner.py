from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from troth.audit import runner
from troth.audit.targets import StdioTarget, parse_targets

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = """
import os
import subprocess
import sys

from mcp.server import MCPServer, Server

import neighbour

print("printed")
os.write(1, b"written\\n")
subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)

high = MCPServer("high")
low = Server("low")


def make():
    return MCPServer("made")


def fast():
    from fastmcp import FastMCP

    return FastMCP("fast")


class Holder:
    inside = MCPServer("inside")


number = 1
"""


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("", "utf-8")
    path = tmp_path / "servers.py"
    path.write_text(SERVERS, "utf-8")
    return path


def ask(path: Path, name: str) -> subprocess.CompletedProcess[str]:
    (target,) = parse_targets([f"{path}:{name}"])
    assert isinstance(target, StdioTarget)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "troth", "version": "1"},
        },
    }
    return subprocess.run(
        target.command, input=json.dumps(hello) + "\n", capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("name", "server"),
    [("high", "high"), ("low", "low"), ("fast", "fast"), ("make", "made"), ("Holder.inside", "inside")],
)
def test_server_objects_are_served_and_prints_stay_off_standard_output(servers: Path, name: str, server: str) -> None:
    done = ask(servers, name)
    (answer,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert answer["result"]["serverInfo"]["name"] == server
    assert [word in done.stderr for word in ("printed", "written", "by a child")] == [True] * 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "has no object 'nothing'; it defines: number, Kind"),
        ("number", "is a int, not an MCPServer"),
        ("Kind", "is a type, not an MCPServer"),
    ],
)
def test_what_is_no_server_is_refused(
    tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "things.py"
    path.write_text("number = 1\nclass Kind:\n    async def run_stdio_async(self): ...\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert runner.main([f"{path}:{name}"]) == 2
    del sys.modules["troth_target_things"]
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one target: file.py:object"),
        (["missing.py:mcp"], "no such file: 'missing.py'"),
        (["mcp"], "no such file: 'mcp'; write file.py:object"),
    ],
)
def test_a_wrong_call_is_refused(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert runner.main(arguments) == 2
    assert message in capfd.readouterr().err


def test_a_file_that_is_not_python_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("", "utf-8")
    with pytest.raises(runner.NoServerError, match="not a Python file"):
        runner.load(f"{path}:mcp")


def test_a_file_whose_imports_are_not_installed_says_where_they_belong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lonely.py"
    path.write_text("import no_such_package\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert runner.main([f"{path}:mcp"]) == 2
    del sys.modules["troth_target_lonely"]
    assert capfd.readouterr().err == (
        f"troth: {path}: No module named 'no_such_package' for {sys.executable}, which runs Troth and this target; "
        f"install it there, or start the file: -- python {path}\n"
    )


def test_servers_are_told_by_what_they_offer() -> None:
    class Quiet:
        shown: Any = None

        async def run_stdio_async(self, show_banner: bool = True) -> None:
            self.shown = show_banner

    quiet = Quiet()
    serve = runner.serving(quiet)
    assert serve is not None
    with pytest.raises(StopIteration):
        serve().__await__().send(None)  # type: ignore[attr-defined]
    assert quiet.shown is False
    assert runner.serving(object()) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys\nsys.exit(0)\n", r"it ends when it is read \(exit status 0\)"),
        ("def (:\n", "not Python: invalid syntax"),
        ("\0", "not Python: "),
        ("\nraise ValueError('no database')\n", r"it raises ValueError: no database \(.*odd\.py, line 2\)"),
        ("def mcp():\n    return 1 / 0\n", r"it raises ZeroDivisionError: division by zero \(.*odd\.py, line 2\)"),
    ],
)
def test_a_file_that_ends_the_process_is_not_python_or_raises_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text, "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(runner.NoServerError, match=words):
        runner.find(f"{path}:mcp")
    del sys.modules["troth_target_odd"]
