"""The guide of the library: each of its code blocks is a file that runs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import troth
from troth.plugins.install import install

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/library.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
GUIDE = ROOT / "examples" / "guide"


def test_each_block_is_the_file_that_it_names():
    assert set(FILES) == {f"examples/guide/{path.name}" for path in GUIDE.glob("*.py")}
    assert {name: (ROOT / name).read_text("utf-8") for name in FILES} == FILES


def test_the_table_of_the_sample_server_is_what_troth_gate_prints():
    page = (ROOT / "docs/gating.md").read_text("utf-8")
    (shown,) = re.findall(r"<!-- gate -->\n(.*?)<!-- /gate -->", page, re.DOTALL)
    # In a process of its own: other tests add tools to the sample server.
    command = [sys.executable, "-W", "ignore", "-m", "troth", "gate", "examples/sample_server.py:server"]
    command += ["--format", "markdown"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert shown == done.stdout


def test_the_example_of_troth_gate_is_what_it_prints():
    page = (ROOT / "docs/gating.md").read_text("utf-8")
    ((words, shown),) = re.findall(r"```console\n\$ troth gate ([^\n]*)\n(.*?)```", page, re.DOTALL)
    command = [sys.executable, "-W", "ignore", "-m", "troth", "gate", *words.split()]
    environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert shown == done.stdout


def test_all_that_install_takes_is_shown():
    blocks = re.findall(r"```python\n(troth\.install.*?)```", PAGE, re.DOTALL)
    (call,) = (node for node in ast.walk(ast.parse(blocks[0])) if isinstance(node, ast.Call) and node.keywords)
    names = install.__kwdefaults__
    assert {keyword.arg for keyword in call.keywords} == set(names)


@pytest.mark.parametrize("name", [name for name in troth.__all__ if name.startswith("notify_")])
def test_the_page_names_what_is_called_by_hand(name):
    assert f"{name}(" in PAGE


def test_the_tests_of_the_guide_pass_in_a_folder_of_their_own(tmp_path):
    for name, text in FILES.items():
        (tmp_path / Path(name).name).write_text(text, "utf-8")
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "anyio", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d+ passed", done.stdout)
