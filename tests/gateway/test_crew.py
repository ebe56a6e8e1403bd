"""The owner of tasks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from troth.gateway import crew as crews
from troth.gateway.crew import Crew

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(30):
            await test()

    anyio.run(bounded, backend_options={"use_uvloop": True})


def test_closing_cancels_every_task_and_waits_until_all_have_cleaned_up() -> None:
    seen: list[str] = []

    async def work(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            seen.append(name)

    async def test() -> None:
        crew = Crew()
        for name in ("a", "b"):
            crew.spawn(work(name), name)
        await anyio.wait_all_tasks_blocked()
        assert len(crew) == 2
        await crew.close()
        assert sorted(seen) == ["a", "b"]
        assert len(crew) == 0

    run(test)


def test_a_task_that_raises_is_logged_and_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async def test() -> None:
        crew = Crew()
        other = crew.spawn(anyio.sleep_forever(), "other")
        crew.spawn(fail(), "failing")
        await anyio.wait_all_tasks_blocked()
        assert not other.done()
        await crew.close()

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "task 'failing' failed" in caplog.text
    assert "ValueError: broken" in caplog.text


def test_what_is_spawned_after_the_end_never_begins() -> None:
    async def test() -> None:
        crew = Crew()
        await crew.close()
        begun: list[int] = []

        async def late() -> None:
            begun.append(1)

        task = crew.spawn(late(), "late")
        await anyio.wait_all_tasks_blocked()
        assert task.cancelled()
        assert not begun

    run(test)


def test_a_task_may_close_its_own_crew() -> None:
    async def test() -> None:
        crew = Crew()
        other = crew.spawn(anyio.sleep_forever(), "other")
        ended = anyio.Event()

        async def leader() -> None:
            await crew.close()
            ended.set()

        crew.spawn(leader(), "leader")
        await ended.wait()
        assert other.cancelled()

    run(test)


def test_closing_is_not_cut_short_by_a_cancelled_caller() -> None:
    async def test() -> None:
        crew = Crew()
        task = crew.spawn(anyio.sleep_forever(), "task")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await crew.close()
        assert task.cancelled()

    run(test)


def test_a_task_that_does_not_let_itself_be_cancelled_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "CLOSING", 0.05)

    async def test() -> None:
        release = anyio.Event()

        async def stubborn() -> None:
            while not release.is_set():
                with suppress(asyncio.CancelledError):
                    await release.wait()

        crew = Crew()
        crew.spawn(stubborn(), "stubborn")
        await anyio.wait_all_tasks_blocked()
        await crew.close()
        release.set()
        await anyio.wait_all_tasks_blocked()

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "task 'stubborn' does not end" in caplog.text
