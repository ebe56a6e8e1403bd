"""The engine: who sees what, moves, time, restarts, work."""

from __future__ import annotations

import asyncio
import string
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from msgspec import Raw

from troth.bridge.errors import ErrorValue
from troth.tasks import Asked, Engine, Job, MemoryStore, Outcome, Requester, Status, StoreError, Task, TaskLimits, work
from troth.tasks.engine import EXPIRED, FAULT, LOST

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

pytestmark = pytest.mark.anyio

ANN, BOB, ALL = Requester("ann"), Requester("bob"), Requester("anonymous", shared=True)
DONE = Outcome(result=Raw(b'{"content":[]}'))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Engine:
    return Engine(MemoryStore(), TaskLimits(recheck=30), clock=clock)


async def made(engine: Engine, requester: Requester = ANN, **options: Any) -> Task:
    task = await engine.create(requester, "tools/call", **options)
    assert isinstance(task, Task)
    return task


async def now(engine: Engine, task: Task, requester: Requester = ANN) -> Task:
    found = await engine.get(requester, task.id)
    assert isinstance(found, Task), found
    return found


def code(value: object) -> int:
    assert isinstance(value, ErrorValue), value
    return value.code


@pytest.mark.behaviour("CAP-26-S2")
async def test_ids_have_256_random_bits_and_fit_into_a_header(engine: Engine) -> None:
    ids = {(await made(engine)).id for _ in range(50)}
    assert len(ids) == 50
    for one in ids:
        assert len(one) == 43
        assert set(one) <= set(string.ascii_letters + string.digits + "-_")


async def test_a_task_is_in_the_store_before_its_id_is_handed_out(clock: Clock) -> None:
    class Slow(MemoryStore):
        async def create(self, task: Task) -> None:
            await anyio.lowlevel.checkpoint()
            await super().create(task)

    store = Slow()
    task = await made(Engine(store, clock=clock))
    assert await store.get(task.id) == task
    assert task.status is Status.WORKING


@pytest.mark.behaviour("CAP-22-S1", "GEN-B10")
async def test_a_foreign_id_looks_unknown_in_every_way(engine: Engine) -> None:
    task = await made(engine)
    unknown = await engine.get(BOB, "no-such-id")
    assert code(unknown) == -32602
    assert await engine.get(BOB, task.id) == unknown
    assert await engine.cancel(BOB, task.id) == unknown
    assert await engine.answer(BOB, task.id, {}) == unknown
    assert await engine.wait(BOB, task.id) == unknown
    assert (await engine.page(BOB)).tasks == ()
    assert (await now(engine, task)) == task


@pytest.mark.behaviour("CAP-22-S1")
async def test_a_list_has_exactly_what_get_opens(engine: Engine, clock: Clock) -> None:
    ended, working = await made(engine, ttl=60_000), await made(engine, ttl=60_000)
    await engine.finish(ended.id, DONE)
    assert {task.id for task in (await engine.page(ANN)).tasks} == {ended.id, working.id}
    clock.now += 61
    assert code(await engine.get(ANN, ended.id)) == -32602
    assert [task.id for task in (await engine.page(ANN)).tasks] == [working.id]
    assert (await now(engine, working)).status is Status.WORKING


async def test_whoever_shares_a_key_opens_a_task_by_its_id_and_it_lives_shortly(engine: Engine) -> None:
    task = await made(engine, ALL, ttl=10**12)
    assert task.ttl == engine.limits.ttl_shared
    assert await engine.get(Requester("anonymous", shared=True), task.id) == task
    assert code(await engine.get(ANN, task.id)) == -32602


@pytest.mark.parametrize("one", [None, 5, "", "x" * 10_000, ["a"], {"a": 1}, True])
async def test_any_value_for_an_id_is_refused(engine: Engine, one: object) -> None:
    assert code(await engine.get(ANN, one)) == -32602
    assert code(await engine.wait(ANN, one)) == -32602


async def test_times_to_live_are_brought_within_limits(engine: Engine) -> None:
    limits = engine.limits
    lived = [(await made(engine, ttl=ttl)).ttl for ttl in (None, 0, 5_000, 10**15)]
    assert lived == [limits.ttl, limits.ttl_least, 5_000, limits.ttl_most]


async def test_tasks_are_capped_by_requester_and_in_all_with_the_name_of_the_limit(clock: Clock) -> None:
    engine = Engine(MemoryStore(), TaskLimits(kept=3, requester_kept=2), clock=clock)
    await made(engine)
    await made(engine)
    refused = await engine.create(ANN, "tools/call")
    assert isinstance(refused, ErrorValue)
    assert refused.data == {"limit": "tasks.requester_kept"}
    await made(engine, BOB)
    refused = await engine.create(BOB, "tools/call")
    assert isinstance(refused, ErrorValue)
    assert refused.data == {"limit": "tasks.kept"}


async def test_a_finished_task_keeps_its_result_and_changes_no_more(engine: Engine) -> None:
    task = await made(engine)
    assert await engine.finish(task.id, DONE) is not None
    ended = await now(engine, task)
    assert (ended.status, ended.outcome) == (Status.COMPLETED, DONE)
    assert await engine.finish(task.id, Outcome(error=FAULT)) is None
    assert await engine.cancel(ANN, task.id) is None
    assert not await engine.say(task.id, "more")
    assert isinstance(await engine.ask(task.id, {"a": Asked("roots/list")}), ErrorValue)
    assert not await engine.withdraw(task.id, frozenset({"a"}))
    assert await now(engine, task) == ended


@pytest.mark.behaviour("CAP-23-S1")
async def test_a_cancelled_task_stays_cancelled_whatever_its_work_does(engine: Engine) -> None:
    task = await made(engine)
    cancelled = await engine.cancel(ANN, task.id)
    assert isinstance(cancelled, Task)
    assert cancelled.status is Status.CANCELLED
    assert await engine.finish(task.id, DONE) is None
    assert await now(engine, task) == cancelled


async def test_an_error_fails_a_task_with_words(engine: Engine) -> None:
    task = await made(engine)
    await engine.finish(task.id, Outcome(error=ErrorValue(-32603, "API rate limit exceeded")))
    failed = await now(engine, task)
    assert (failed.status, failed.message) == (Status.FAILED, "API rate limit exceeded")


async def test_a_result_that_is_too_large_fails_the_task(clock: Clock) -> None:
    engine = Engine(MemoryStore(), TaskLimits(outcome=100), clock=clock)
    task = await made(engine)
    await engine.finish(task.id, Outcome(result=Raw(b'{"x":"%s"}' % (b"x" * 200))))
    assert (await now(engine, task)).status is Status.FAILED


async def test_words_are_bounded(engine: Engine) -> None:
    task = await made(engine, message="w" * 5000)
    assert len(task.message) == engine.limits.message
    await engine.say(task.id, "short")
    assert (await now(engine, task)).message == "short"


async def test_questions_are_answered_in_parts_and_strangers_are_ignored(engine: Engine) -> None:
    task = await made(engine)
    names = await engine.ask(task.id, {"a": Asked("roots/list"), "b": Asked("elicitation/create", {"message": "?"})})
    assert names == {"a": "a", "b": "b"}
    asked = await now(engine, task)
    assert asked.status is Status.INPUT_REQUIRED
    assert asked.asked["a"] == Raw(b'{"method":"roots/list","params":{}}')
    await engine.answer(ANN, task.id, {"a": DONE, "never-asked": DONE})
    part = await now(engine, task)
    assert (part.status, set(part.asked)) == (Status.INPUT_REQUIRED, {"b"})
    before = part.version
    assert isinstance(await engine.answer(ANN, task.id, {"a": DONE}), Task)
    assert (await now(engine, task)).version == before
    await engine.answer(ANN, task.id, {"b": DONE})
    assert (await now(engine, task)).status is Status.WORKING
    assert await engine.fetch(task.id, frozenset({"a", "b"})) == {"a": DONE, "b": DONE}
    assert (await now(engine, task)).answers == {}


@pytest.mark.behaviour("CAP-26-S1")
async def test_no_key_of_a_question_comes_twice_in_the_life_of_a_task(engine: Engine) -> None:
    task = await made(engine)
    keys = []
    for _ in range(3):
        names = await engine.ask(task.id, {"name": Asked("roots/list")})
        assert not isinstance(names, ErrorValue)
        keys.append(names["name"])
        await engine.answer(ANN, task.id, {names["name"]: DONE})
    assert len(set(keys)) == 3


async def test_questions_are_capped_each_limit_by_its_name(clock: Clock) -> None:
    engine = Engine(MemoryStore(), TaskLimits(asked=2, questions=3, question=200), clock=clock)
    task = await made(engine)

    async def refused(**questions: Asked) -> object:
        answer = await engine.ask(task.id, questions)
        return answer.data if isinstance(answer, ErrorValue) else None

    plain = Asked("roots/list")
    assert await refused(a=Asked("x", {"long": "y" * 300})) == {"limit": "tasks.question"}
    assert await refused(a=plain, b=plain, c=plain) == {"limit": "tasks.asked"}
    assert await refused(a=plain, b=plain) is None
    await engine.answer(ANN, task.id, {"a": DONE, "b": DONE})
    assert await refused(a=plain, b=plain) == {"limit": "tasks.questions"}
    assert code(await engine.ask("no-such-task", {"a": plain})) == -32602


async def test_a_question_that_is_taken_back_lets_the_task_work_on(engine: Engine) -> None:
    task = await made(engine)
    await engine.ask(task.id, {"a": Asked("roots/list")})
    assert await engine.withdraw(task.id, frozenset({"a"}))
    assert (await now(engine, task)).status is Status.WORKING


async def test_waiting_ends_with_the_task_and_sees_every_change(engine: Engine) -> None:
    task = await made(engine)
    seen: list[object] = []

    async def wait() -> None:
        seen.append(await engine.wait(ANN, task.id))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await engine.say(task.id, "half")
            await anyio.wait_all_tasks_blocked()
            assert seen == []
            await engine.finish(task.id, DONE)
    assert seen == [await now(engine, task)]
    assert len(engine._signals) == 0


async def test_a_change_by_another_process_is_seen_after_a_while(clock: Clock) -> None:
    store = MemoryStore()
    here, there = (Engine(store, TaskLimits(recheck=0.01), clock=clock) for _ in range(2))
    task = await made(here)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(here.wait, ANN, task.id)
            group.start_soon(here.gone, task.id)
            await anyio.wait_all_tasks_blocked()
            await there.finish(task.id, DONE)


async def test_listeners_hear_of_every_change_until_they_stop(engine: Engine) -> None:
    heard: list[Status] = []

    def broken(_task: Task) -> None:
        raise RuntimeError("a listener's own fault")

    engine.listen(broken)
    stop = engine.listen(lambda task: heard.append(task.status))
    task = await made(engine)
    await engine.ask(task.id, {"a": Asked("roots/list")})
    await engine.answer(ANN, task.id, {"a": DONE})
    await engine.finish(task.id, DONE)
    assert heard == [Status.INPUT_REQUIRED, Status.WORKING, Status.COMPLETED]
    stop()
    stop()
    await engine.cancel(ANN, (await made(engine)).id)
    assert len(heard) == 3


# Time


async def test_the_result_stays_until_the_time_to_live_is_over_and_then_goes(engine: Engine, clock: Clock) -> None:
    task = await made(engine, ttl=60_000)
    await engine.finish(task.id, DONE)
    clock.now += 59.9
    assert await engine.sweep() == 0
    assert (await now(engine, task)).outcome == DONE
    clock.now += 0.2
    assert code(await engine.get(ANN, task.id)) == -32602
    assert await engine.sweep() == 1
    assert await engine.sweep() == 0


async def test_a_task_that_runs_out_of_time_fails_with_words_and_then_goes(engine: Engine, clock: Clock) -> None:
    task = await made(engine, ttl=60_000)
    clock.now += 61
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(engine.wait, ANN, task.id)
            await anyio.wait_all_tasks_blocked()
            await engine.sweep()
    failed = await now(engine, task)
    assert (failed.status, failed.message) == (Status.FAILED, EXPIRED.message)
    clock.now += engine.limits.grace
    await engine.sweep()
    assert code(await engine.get(ANN, task.id)) == -32602


async def swept(store: MemoryStore, clock: Clock) -> None:
    """Has a task swept away whose time is over, however often that fails first."""
    engine = Engine(store, TaskLimits(sweep=0.001), clock=clock)
    task = await made(engine, ttl=1000)
    clock.now += 2
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(engine.keep_time)
            await engine.gone(task.id)
            group.cancel_scope.cancel()


async def test_time_is_kept_by_whoever_owns_the_engine(clock: Clock) -> None:
    class Failing(MemoryStore):
        fails = 1

        async def due(self, now: float, most: int) -> Any:
            if self.fails:
                self.fails -= 1
                raise RuntimeError("the disk is gone for a moment")
            return await super().due(now, most)

    await swept(Failing(), clock)


async def test_a_file_that_cannot_be_used_is_said_once_and_without_a_traceback(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    failures = ["a", "a", "a", "b", "b"]

    class Failing(MemoryStore):
        async def due(self, now: float, most: int) -> Any:
            if failures:
                raise StoreError(f"tasks.db: {failures.pop(0)}")
            return await super().due(now, most)

    await swept(Failing(), clock)
    words = "tasks whose time is over cannot be swept away: tasks.db:"
    assert [record.message for record in caplog.records] == [f"{words} a", f"{words} b"]
    assert all(record.exc_info is None for record in caplog.records)


# Restart


async def test_after_a_restart_what_ran_is_failed_with_words_or_taken_on(clock: Clock) -> None:
    store = MemoryStore()
    before = Engine(store, run="before", clock=clock)
    other = Engine(store, run="other", clock=clock)
    lost, kept, done = await made(before), await made(before, keep="upstream x"), await made(before)
    alive = await made(other)
    await before.finish(done.id, DONE)
    after = Engine(store, run="after", clock=clock)
    mine = await made(after)
    resumed = await after.recover(lambda run: run == "other", lambda task: bool(task.keep))
    assert [(task.id, task.run) for task in resumed] == [(kept.id, "after")]
    failed = await now(after, lost)
    assert (failed.status, failed.message) == (Status.FAILED, LOST.message)
    assert failed.outcome == Outcome(error=LOST)
    assert (await now(after, done)).outcome == DONE
    for untouched in (alive, mine):
        assert await now(after, untouched) == untouched


async def test_two_that_recover_at_once_take_a_task_on_once(clock: Clock) -> None:
    store = MemoryStore()
    for _ in range(5):
        await made(Engine(store, run="before", clock=clock), keep="x")
    taken: list[str] = []

    async def recover(run: str) -> None:
        found = await Engine(store, run=run, clock=clock).recover(lambda run: run in ("a", "b"), lambda _task: True)
        taken.extend(task.id for task in found)

    async with anyio.create_task_group() as group:
        group.start_soon(recover, "a")
        group.start_soon(recover, "b")
    assert len(taken) == len(set(taken)) == 5


async def test_a_task_that_is_for_somebody_else_is_left_alone(clock: Clock) -> None:
    store = MemoryStore()
    task = await made(Engine(store, run="before", clock=clock), keep="x")
    after = Engine(store, run="after", clock=clock)
    assert await after.recover(resume=lambda _task: None) == ()
    assert await now(after, task) == task


async def test_what_is_kept_of_a_task_changes_in_silence(engine: Engine) -> None:
    task = await made(engine)
    heard: list[Task] = []
    engine.listen(heard.append)
    assert await engine.keep(task.id, "upstream x")
    assert (await now(engine, task)).keep == "upstream x"
    assert heard == []
    await engine.finish(task.id, DONE)
    assert not await engine.keep(task.id, "upstream y")


async def test_a_task_of_nobody_can_be_forgotten(engine: Engine) -> None:
    task = await made(engine)
    await engine.forget(task.id)
    assert isinstance(await engine.get(ANN, task.id), ErrorValue)


async def test_questions_that_an_earlier_run_left_are_asked_under_their_keys_again(clock: Clock) -> None:
    store = MemoryStore()
    before = Engine(store, run="before", clock=clock)
    task = await made(before, keep="x")
    asked = {key: Asked("elicitation/create", {"message": key}) for key in ("open", "answered", "stale")}
    await before.ask(task.id, asked)
    await before.answer(ANN, task.id, {"answered": DONE})
    after = Engine(store, run="after", clock=clock)
    (taken,) = await after.recover(resume=lambda _task: True)
    job = Job(after, taken)
    found: list[object] = []

    async def ask() -> None:
        found.append(await job.ask({key: asked[key] for key in ("open", "answered")}))

    async with anyio.create_task_group() as group, anyio.create_task_group() as asking:
        asking.start_soon(ask)
        while (await now(after, task)).version == taken.version:  # noqa: ASYNC110 - nobody sets an event
            await anyio.sleep(0.001)
        assert set((await now(after, task)).asked) == {"open", "stale"}
        await job.settle()
        assert set((await now(after, task)).asked) == {"open"}
        group.start_soon(after.answer, ANN, task.id, {"open": DONE})
    assert found == [{"open": DONE, "answered": DONE}]
    assert await after.ask(task.id, {"open": asked["open"]}) == {"open": "open-2"}


# Work


async def test_work_asks_and_ends_its_task(engine: Engine) -> None:
    task = await made(engine)

    async def do(job: Job) -> Outcome:
        await job.say("about to ask")
        answers = await job.ask({"name": Asked("elicitation/create", {"message": "Who?"})}, "waiting for a name")
        assert answers == {"name": Outcome(result=Raw(b'{"action":"decline"}'))}
        return DONE

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(work, engine, task, do)
            await anyio.wait_all_tasks_blocked()
            waiting = await now(engine, task)
            assert (waiting.status, waiting.message) == (Status.INPUT_REQUIRED, "waiting for a name")
            await engine.answer(ANN, task.id, {"name": Outcome(result=Raw(b'{"action":"decline"}'))})
    assert (await now(engine, task)).status is Status.COMPLETED


async def test_work_is_cancelled_with_its_task(engine: Engine) -> None:
    task = await made(engine)
    ended: list[str] = []

    async def do(_job: Job) -> Outcome:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        return DONE

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(work, engine, task, do)
            await anyio.wait_all_tasks_blocked()
            await engine.cancel(ANN, task.id)
    assert ended == ["cancelled"]


class OutOfOrder(BaseException):
    """What no work should raise, and some does."""


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError, OutOfOrder])
async def test_work_that_fails_fails_its_task_without_telling_why(engine: Engine, kind: type[BaseException]) -> None:
    task = await made(engine)

    async def do(_job: Job) -> Outcome:
        raise kind("password=hunter2")

    await work(engine, task, do)
    failed = await now(engine, task)
    assert failed.outcome == Outcome(error=FAULT)
    assert "hunter2" not in repr(failed)


async def test_work_that_asks_when_its_task_has_ended_is_told(engine: Engine) -> None:
    task = await made(engine)
    job = Job(engine, task)
    await engine.finish(task.id, DONE)
    assert isinstance(await job.ask({"a": Asked("roots/list")}), ErrorValue)
    assert isinstance(await engine.fetch(task.id, frozenset({"a"})), ErrorValue)


async def test_work_that_no_longer_waits_takes_its_question_back(engine: Engine) -> None:
    task = await made(engine)
    with anyio.move_on_after(0.01):
        await Job(engine, task).ask({"a": Asked("roots/list")})
    found = await now(engine, task)
    assert (found.status, found.asked) == (Status.WORKING, {})


async def test_work_that_is_stopped_with_its_process_leaves_the_task_to_the_next_run(engine: Engine) -> None:
    task = await made(engine)

    async def do(_job: Job) -> Outcome:
        await anyio.sleep_forever()
        return DONE

    async with anyio.create_task_group() as group:
        group.start_soon(work, engine, task, do)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert (await now(engine, task)).status is Status.WORKING


async def test_work_whose_task_of_asyncio_is_cancelled_leaves_the_task_to_the_next_run(engine: Engine) -> None:
    loop, task, begun = asyncio.get_running_loop(), await made(engine), anyio.Event()

    async def do(_job: Job) -> Outcome:
        begun.set()
        await loop.create_future()
        return DONE

    working = loop.create_task(work(engine, task, do))
    with anyio.fail_after(30):
        await begun.wait()
        working.cancel()
        await asyncio.wait({working})
    assert working.cancelled()
    assert (await now(engine, task)).status is Status.WORKING


class FullDisk(MemoryStore):
    """A store in which nothing can be written for a while, nor read if that is wanted."""

    def __init__(self, *, unread: bool) -> None:
        super().__init__()
        self.unread = unread
        self.left = 0
        self.met = anyio.Event()

    def _fail(self) -> None:
        if self.left:
            self.left -= 1
            self.met.set()
            raise StoreError("the disk is full")

    async def get(self, task_id: str) -> Task | None:
        if self.unread:
            self._fail()
        return await super().get(task_id)

    async def update(self, task: Task) -> bool:
        self._fail()
        return await super().update(task)


@pytest.mark.parametrize("unread", [False, True])
async def test_work_whose_end_cannot_be_kept_ends_its_task_as_soon_as_it_can(clock: Clock, unread: bool) -> None:
    store = FullDisk(unread=unread)
    engine = Engine(store, TaskLimits(recheck=0.01), clock=clock)
    task = await made(engine)

    async def do(_job: Job) -> Outcome:
        store.left = 5
        if unread:
            # Whoever looks whether the task has ended meets the full disk, too.
            await store.met.wait()
        return DONE

    with anyio.fail_after(30):
        await work(engine, task, do)
    assert (await now(engine, task)).outcome == DONE


# A model


class Tasks(RuleBasedStateMachine):
    """Three requesters do anything in any order; what each sees is what a simple model says."""

    tasks = Bundle("tasks")
    who = st.sampled_from([ANN, BOB, ALL])

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.store = MemoryStore()
        self.engine = Engine(self.store, TaskLimits(requester_kept=6, asked=3, questions=6), clock=self.clock)
        self.owners: dict[str, Requester] = {}
        self.ends: dict[str, Task] = {}
        self.keys: dict[str, list[str]] = {}
        self.versions: dict[str, int] = {}
        self.engine.listen(self.heard)

    def heard(self, task: Task) -> None:
        assert task.version == self.versions[task.id] + 1
        self.versions[task.id] = task.version
        assert task.id not in self.ends, "a task that ended changed"
        if task.ended:
            self.ends[task.id] = task

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        async def run() -> Any:
            with anyio.fail_after(30):
                return await work

        return anyio.run(run)

    @rule(target=tasks, who=who, ttl=st.sampled_from([None, 1, 5_000, 10**12]))
    def create(self, who: Requester, ttl: int | None) -> str:
        task = self.do(self.engine.create(who, "tools/call", ttl=ttl))
        if isinstance(task, ErrorValue):
            assert self.do(self.store.count(who.key)) == 6
            return "none"
        self.owners[task.id], self.keys[task.id], self.versions[task.id] = who, [], 0
        return task.id

    @rule(one=tasks, who=who)
    def get(self, one: str, who: Requester) -> None:
        task = self.do(self.engine.get(who, one))
        if self.owners.get(one) != who:
            assert isinstance(task, ErrorValue)
        elif isinstance(task, Task):
            assert one not in self.ends or task == self.ends[one]
        else:
            assert self.ends[one].expires <= self.clock.now

    @rule(who=who)
    def list(self, who: Requester) -> None:
        for task in self.do(self.engine.page(who)).tasks:
            assert self.owners[task.id] == who
            assert isinstance(self.do(self.engine.get(who, task.id)), Task)

    @rule(one=tasks, who=who)
    def cancel(self, one: str, who: Requester) -> None:
        was = one in self.ends
        found = self.do(self.engine.cancel(who, one))
        if isinstance(found, Task):
            assert not was
            assert self.owners[one] == who
            assert found.status is Status.CANCELLED

    @rule(one=tasks, number=st.integers(0, 4))
    def ask(self, one: str, number: int) -> None:
        names = self.do(self.engine.ask(one, {f"q{index}": Asked("roots/list") for index in range(number)}))
        if not isinstance(names, ErrorValue):
            assert one not in self.ends
            assert not set(names.values()) & set(self.keys[one]), "a key was used twice"
            self.keys[one] += names.values()

    @rule(one=tasks, who=who, data=st.data())
    def answer(self, one: str, who: Requester, data: st.DataObject) -> None:
        keys = data.draw(st.lists(st.sampled_from([*self.keys.get(one, []), "never"]), unique=True))
        before = self.do(self.store.get(one))
        found = self.do(self.engine.answer(who, one, dict.fromkeys(keys, DONE)))
        if self.owners.get(one) != who:
            assert isinstance(found, ErrorValue)
            assert self.do(self.store.get(one)) == before

    @rule(one=tasks, good=st.booleans())
    def finish(self, one: str, good: bool) -> None:
        was = one in self.ends
        found = self.do(self.engine.finish(one, DONE if good else Outcome(error=FAULT)))
        assert (found is None) or not was

    @rule(one=consumes(tasks))
    def say(self, one: str) -> None:
        assert self.do(self.engine.say(one, "words")) == (one in self.owners and one not in self.ends)

    @rule(seconds=st.sampled_from([0.5, 3, 61, 4000]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.do(self.engine.sweep())

    @rule()
    def restart(self) -> None:
        self.engine = Engine(self.store, self.engine.limits, clock=self.clock)
        self.engine.listen(self.heard)
        self.do(self.engine.recover())
        assert not self.do(self.store.unfinished("", 100))

    @invariant()
    def states_fit_their_questions(self) -> None:
        for task in self.do(self.store.unfinished("", 100)):
            assert (task.status is Status.INPUT_REQUIRED) == bool(task.asked)
            assert len(task.asked) <= 3
            assert task.outcome is None


Tasks.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestTasks = Tasks.TestCase
