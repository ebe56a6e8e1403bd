"""Which runs still run, whatever ended the others."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from troth.gateway.presence import Presence

if TYPE_CHECKING:
    from pathlib import Path

OTHER = """
import sys, time
from pathlib import Path
from troth.gateway.presence import Presence
presence = Presence(Path(sys.argv[1]))
print(presence.name, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_another_process_is_alive_until_it_is_killed(tmp_path: Path) -> None:
    mine = Presence(tmp_path / "runs")
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path / "runs")], stdout=subprocess.PIPE, text=True
    ) as p:
        assert p.stdout is not None
        name = p.stdout.readline().strip()
        assert mine.alive(name)
        assert mine.alive(name)
        p.send_signal(signal.SIGKILL)
    assert not mine.alive(name)
    assert [file.stem for file in (tmp_path / "runs").iterdir()] == [mine.name]
    mine.close()


def test_two_runs_see_each_other_until_one_is_closed(tmp_path: Path) -> None:
    one, two = Presence(tmp_path), Presence(tmp_path)
    assert one.name != two.name
    assert one.alive(one.name)
    assert one.alive(two.name)
    two.close()
    two.close()
    assert not one.alive(two.name)
    one.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "nobody", "../../etc/passwd", "0" * 24, "\x00"])
def test_a_name_that_is_none_is_not_alive(tmp_path: Path, name: str) -> None:
    presence = Presence(tmp_path)
    assert not presence.alive(name)
    presence.close()


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    presence = Presence(tmp_path / "file")
    assert "cannot be written" in presence.problem
    assert presence.alive(presence.name)
    presence.close()
