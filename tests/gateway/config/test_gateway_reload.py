"""A configuration that changes while the gateway runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from troth.gateway.config import Faults, load
from troth.gateway.reload import Watch, watch
from troth.gateway.settings import GatewaySettings, Transport, UpstreamSettings, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def server(name: str) -> str:
    return f'[servers.{name}]\ncommand = "x"\n'


class Scene:
    """A file, a watch on it, and what the watch told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "troth.toml"
        self.more = folder / "tokens.json"
        self.path.write_text(server("a"), "utf-8")
        self.told: list[str] = []
        self.watch = Watch((self.path, self.more), self.load, self.hear)

    def load(self) -> GatewaySettings | Faults:
        return load(str(self.path), {})

    def hear(self, found: GatewaySettings | Faults) -> None:
        names = [item.name for item in found.upstreams] if isinstance(found, GatewaySettings) else ["faults"]
        self.told.append(" ".join(names))

    def looks(self, count: int = 2) -> list[str]:
        for _ in range(count):
            self.watch.look()
        told, self.told = self.told, []
        return told


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_nothing_is_told_while_nothing_changes(scene: Scene) -> None:
    assert scene.looks(3) == []
    scene.path.touch()
    scene.path.write_text(server("a"), "utf-8")
    assert scene.looks(3) == []


def test_a_change_is_told_once_it_reads_the_same_twice(scene: Scene) -> None:
    scene.path.write_text(server("a") + server("b"), "utf-8")
    assert scene.looks(1) == []
    assert scene.looks(1) == ["a b"]
    assert scene.looks(3) == []


def test_a_file_that_is_still_written_is_not_loaded(scene: Scene) -> None:
    scene.path.write_text("", "utf-8")
    assert scene.looks(1) == []
    scene.path.write_text(server("a"), "utf-8")
    assert scene.looks(3) == []
    for size in range(1, 10):
        scene.path.write_text((server("a") + server("bcd"))[: 20 + size], "utf-8")
        assert scene.looks(1) == []


def test_an_editor_may_replace_or_remove_the_file(scene: Scene) -> None:
    other = scene.path.with_name("new~")
    other.write_text(server("c"), "utf-8")
    other.replace(scene.path)
    assert scene.looks() == ["c"]
    scene.path.unlink()
    assert scene.looks(1) == []
    scene.path.write_text(server("c"), "utf-8")
    assert scene.looks(3) == []
    scene.path.unlink()
    assert scene.looks() == ["faults"]
    scene.path.write_text(server("c"), "utf-8")
    assert scene.looks() == ["c"]


def test_faults_are_told_once_and_the_mended_file_again(scene: Scene) -> None:
    scene.path.write_text("[servers.a]\n", "utf-8")
    assert scene.looks(4) == ["faults"]
    scene.path.write_text(server("a"), "utf-8")
    assert scene.looks(4) == ["a"]


def test_files_beside_the_configuration_count_too(scene: Scene) -> None:
    scene.more.write_text("{}", "utf-8")
    assert scene.looks() == ["a"]


def test_a_signal_loads_at_once_and_not_again(scene: Scene) -> None:
    scene.path.write_text(server("b"), "utf-8")
    scene.watch.now()
    assert scene.told == ["b"]
    scene.told.clear()
    assert scene.looks(3) == []
    scene.watch.now()
    assert scene.told == ["b"]


class Group:
    """A crew that is a task group."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self.group = group

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        async def run() -> None:
            await work

        self.group.start_soon(run, name=name)


async def test_a_watch_is_a_task_of_its_crew(scene: Scene) -> None:
    heard = anyio.Event()
    hear: Callable[[object], None] = lambda _: heard.set()  # noqa: E731
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            watch([scene.path], scene.load, hear, Group(group), 0.01)
            await anyio.lowlevel.checkpoint()
            scene.path.write_text(server("b"), "utf-8")
            await heard.wait()
            group.cancel_scope.cancel()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes by name")
def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(scene: Scene) -> None:
    scene.path.unlink()
    os.mkfifo(scene.path)
    scene.watch.now()
    assert scene.looks(3) == []


def upstream(name: str, **changes: Any) -> UpstreamSettings:
    return UpstreamSettings(**{"name": name, "transport": Transport.STDIO, "command": ("x",), **changes})


def test_what_hosts_are_shown_changes_nothing_of_the_conversation() -> None:
    plain = upstream("a")
    assert spoken(upstream("a", deny=("x",), prefix="b", where="x:9")) == spoken(plain)
    assert spoken(upstream("a", env={"A": "1"})) != spoken(plain)
