"""What every store of tasks must do, as cases over a function that opens it. A second store runs them all.

`CASES` are coroutine functions that take an opener; each call of the opener opens the same, at first empty, store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from troth.bridge.errors import ErrorValue
from troth.tasks import Outcome, Status, Store, StoreError, Task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Open = Callable[[], Store]

CASES: list[Callable[[Open], Awaitable[None]]] = []


def case(function: Callable[[Open], Awaitable[None]]) -> Callable[[Open], Awaitable[None]]:
    CASES.append(function)
    return function


def task(name: str = "one", **changes: Any) -> Task:
    base: dict[str, Any] = {
        "id": name,
        "owner": "ann",
        "method": "tools/call",
        "created": 1000.125,
        "updated": 1000.125,
        "ttl": 60_000,
        "expires": 1060.125,
        "poll": 1000,
    }
    return Task(**{**base, **changes})


def later(old: Task, **changes: Any) -> Task:
    return msgspec.structs.replace(old, version=old.version + 1, **changes)


@case
async def what_was_kept_comes_back_whole(opened: Open) -> None:
    store = opened()
    whole = task(
        status=Status.INPUT_REQUIRED,
        message="Ünï\u2028code \x00 and more",
        asked={"a": Raw(b'{"method":"roots/list","params":{"n":1.50}}')},
        answers={"b": Outcome(result=Raw(b'{"action":"accept"}')), "c": Outcome(error=ErrorValue(-1, "no"))},
        used=("a", "b", "c"),
        run="run-1",
        keep='{"upstream":"x"}',
        outcome=Outcome(result=Raw(b'{"content":[],"big":12345678901234567890123}'), is_error=True),
        is_error=True,
    )
    await store.create(whole)
    assert await store.get("one") == whole
    assert await store.get("two") is None
    await store.close()


@case
async def an_error_comes_back_whole(opened: Open) -> None:
    store = opened()
    failed = task(status=Status.FAILED, outcome=Outcome(error=ErrorValue(-32603, "broken", {"why": ["x", None]})))
    await store.create(failed)
    assert await store.get("one") == failed
    await store.close()


@case
async def an_id_is_given_out_once(opened: Open) -> None:
    store = opened()
    await store.create(task())
    with pytest.raises(StoreError):
        await store.create(task(owner="bob"))
    assert await store.get("one") == task()
    await store.close()


@case
async def an_update_follows_the_version_before(opened: Open) -> None:
    store = opened()
    first = task()
    await store.create(first)
    second = later(first, message="second")
    assert await store.update(second)
    assert not await store.update(later(first, message="too late"))
    assert not await store.update(later(later(second), message="too early"))
    assert await store.get("one") == second
    await store.close()


@case
async def an_unknown_task_is_not_updated(opened: Open) -> None:
    store = opened()
    assert not await store.update(task(version=1))
    assert await store.count() == 0
    await store.close()


@case
async def one_of_many_updates_at_once_wins(opened: Open) -> None:
    store = opened()
    first = task()
    await store.create(first)
    won: list[str] = []

    async def update(word: str) -> None:
        if await store.update(later(first, message=word)):
            won.append(word)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(update, str(number))
    assert len(won) == 1
    found = await store.get("one")
    assert found is not None
    assert found.message == won[0]
    await store.close()


@case
async def a_list_has_the_tasks_of_its_owner_by_age_and_without_outcomes(opened: Open) -> None:
    store = opened()
    outcome = Outcome(result=Raw(b"{}"))
    for number in (3, 1, 2):
        await store.create(task(f"a{number}", created=float(number), status=Status.COMPLETED, outcome=outcome))
    await store.create(task("b", owner="bob", created=0.5))
    page = await store.page("ann", None, 10, 1001.0)
    assert [(found.id, found.outcome) for found in page.tasks] == [("a1", None), ("a2", None), ("a3", None)]
    assert page.after is None
    assert (await store.page("nobody", None, 10, 1001.0)).tasks == ()
    await store.close()


@case
async def pages_join_to_the_whole_list_also_where_ages_are_equal(opened: Open) -> None:
    store = opened()
    names = [f"t{number:02}" for number in range(7)]
    for name in reversed(names):
        await store.create(task(name))
    found: list[str] = []
    after = None
    for _ in range(10):
        page = await store.page("ann", after, 3, 1001.0)
        found += [one.id for one in page.tasks]
        after = page.after
        if after is None:
            break
    assert found == names
    await store.close()


@case
async def a_page_goes_on_where_a_task_was_that_is_gone(opened: Open) -> None:
    store = opened()
    for name in ("a", "b", "c", "d"):
        await store.create(task(name))
    page = await store.page("ann", None, 2, 1001.0)
    assert page.after is not None
    assert await store.delete("b")
    assert [one.id for one in (await store.page("ann", page.after, 2, 1001.0)).tasks] == ["c", "d"]
    await store.close()


@case
async def a_list_leaves_out_what_ended_and_is_over(opened: Open) -> None:
    store = opened()
    await store.create(task("ended", status=Status.COMPLETED))
    await store.create(task("working"))
    assert [one.id for one in (await store.page("ann", None, 9, 1060.0)).tasks] == ["ended", "working"]
    assert [one.id for one in (await store.page("ann", None, 9, 1061.0)).tasks] == ["working"]
    await store.close()


@case
async def what_is_deleted_is_gone(opened: Open) -> None:
    store = opened()
    await store.create(task())
    assert await store.delete("one")
    assert not await store.delete("one")
    assert await store.get("one") is None
    assert (await store.page("ann", None, 9, 0.0)).tasks == ()
    await store.create(task())
    await store.close()


@case
async def what_is_due_is_found_oldest_end_first_and_no_more_than_asked_for(opened: Open) -> None:
    store = opened()
    for name, expires in (("late", 30.0), ("early", 10.0), ("middle", 20.0)):
        await store.create(task(name, expires=expires, outcome=Outcome(result=Raw(b"{}"))))
    assert [(one.id, one.outcome) for one in await store.due(25.0, 9)] == [("early", None), ("middle", None)]
    assert [one.id for one in await store.due(30.0, 1)] == ["early"]
    assert list(await store.due(9.0, 9)) == []
    await store.update(later(task("early"), expires=99.0))
    assert [one.id for one in await store.due(25.0, 9)] == ["middle"]
    await store.close()


@case
async def what_has_not_ended_is_found_by_id_in_parts(opened: Open) -> None:
    store = opened()
    for name, status in (("c", Status.WORKING), ("a", Status.INPUT_REQUIRED), ("b", Status.FAILED), ("d", "working")):
        await store.create(task(name, status=Status(status)))
    assert [one.id for one in await store.unfinished("", 9)] == ["a", "c", "d"]
    assert [one.id for one in await store.unfinished("", 2)] == ["a", "c"]
    assert [one.id for one in await store.unfinished("c", 2)] == ["d"]
    await store.update(later(task("d"), status=Status.COMPLETED))
    assert list(await store.unfinished("c", 2)) == []
    await store.close()


@case
async def tasks_are_counted(opened: Open) -> None:
    store = opened()
    assert await store.count() == 0
    for name, owner in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        await store.create(task(name, owner=owner))
    assert (await store.count(), await store.count("ann"), await store.count("eve")) == (3, 2, 0)
    await store.delete("a")
    assert (await store.count(), await store.count("ann")) == (2, 1)
    await store.close()


@case
async def owners_and_ids_are_text_of_any_kind(opened: Open) -> None:
    store = opened()
    strange = "x' OR 1=1; --\x00%_\U0001f600"
    await store.create(task(strange, owner=strange))
    assert (await store.page(strange, None, 9, 0.0)).tasks == (task(strange, owner=strange),)
    assert await store.get(strange) == task(strange, owner=strange)
    assert await store.count("x") == 0
    await store.close()


@case
async def it_is_closed_twice_without_harm(opened: Open) -> None:
    store = opened()
    await store.close()
    await store.close()
