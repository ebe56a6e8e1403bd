"""The broker: questions for people and for a command, deadlines, restarts, caps."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from troth.bridge.errors import ErrorValue
from troth.bridge.questions import QuestionKind
from troth.gateway import answering
from troth.gateway.broker import RETRY, Broker, Pending, State, act, as_told
from troth.gateway.crew import Crew
from troth.gateway.limits import Limits
from troth.tasks.database import Database
from troth.tasks.model import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

FORM = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
URL = {"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def brokers(path: Path, clock: Any, run: str = "run", command: tuple[str, ...] = (), **limits: Any) -> Any:
    crew = Crew()
    broker = Broker(path / "questions.sqlite", Limits(**limits), run=run, clock=clock, crew=crew, command=command)
    try:
        yield broker
    finally:
        await crew.close()
        await broker.close()


@pytest.fixture
async def broker(tmp_path: Path, clock: Clock) -> AsyncIterator[Broker]:
    async with brokers(tmp_path, clock) as made:
        await made.start()
        yield made


async def asked(broker: Broker, kind: QuestionKind = QuestionKind.FORM, params: Any = FORM, **options: Any) -> Pending:
    found = await broker.ask(kind, params, **{"upstream": "files", "principal": "ann", **options})
    assert isinstance(found, Pending), found
    return found


def plain(raw: Raw) -> Any:
    return msgspec.json.decode(raw)


async def test_a_question_waits_for_people_and_their_answer_is_handed_out_once(broker: Broker) -> None:
    question = await asked(broker)
    assert [one.id for one in await broker.pending()] == [question.id]
    found: list[Pending | None] = []

    async def wait() -> None:
        found.append(await broker.wait(question.id))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert isinstance(await broker.answer(question.id, {"name": "Ann"}), Pending)
    (answered,) = found
    assert answered is not None
    assert (answered.state, plain(answered.result)) == (
        State.ANSWERED,
        {"action": "accept", "content": {"name": "Ann"}},
    )
    shown = await broker.show(question.id)
    assert shown is not None
    assert (shown.state, plain(shown.result)) == (State.ANSWERED, None)
    assert await broker.pending() == ()
    assert [one.state for one in await broker.pending(settled=True)] == [State.ANSWERED]


async def test_an_answer_that_does_not_fit_the_form_is_refused_and_the_question_stays(broker: Broker) -> None:
    question = await asked(broker)
    for value in ({}, {"name": 5}, {"name": "x", "more": {}}, None, [], "x"):
        refused = await broker.answer(question.id, value)
        assert isinstance(refused, str), value
    assert len(await broker.pending()) == 1


@pytest.mark.parametrize("state", [State.DECLINED, State.CANCELLED])
async def test_people_say_no(broker: Broker, state: State) -> None:
    question = await asked(broker)
    await (broker.decline(question.id) if state is State.DECLINED else broker.cancel(question.id, "not now"))
    found = await broker.wait(question.id)
    assert found is not None
    assert found.state is state


async def test_one_of_several_answers_wins_and_the_others_hear_why(broker: Broker) -> None:
    question = await asked(broker)
    results: list[object] = []

    async def answer(name: str) -> None:
        results.append(await broker.answer(question.id, {"name": name}))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(answer, str(number))
    assert sum(isinstance(result, Pending) for result in results) == 1
    assert await broker.decline(question.id) == f"the question {question.id} is answered already"
    assert await broker.decline("nobody") == "there is no question nobody"
    assert await broker.answer("nobody", {}) == "there is no question nobody"
    assert await broker.wait("nobody") is None


async def test_a_question_expires_at_its_deadline_of_50_seconds(broker: Broker, clock: Clock) -> None:
    question = await asked(broker)
    assert question.expires - question.asked == 50
    clock.now += 51
    assert await broker.pending() == ()
    refused = await broker.answer(question.id, {"name": "late"})
    assert isinstance(refused, str)
    assert "deadline" in refused
    found = await broker.wait(question.id)
    assert found is not None
    assert (found.state, found.why) == (State.EXPIRED, "nobody answered in time")


async def test_a_deadline_passes_while_somebody_waits(tmp_path: Path) -> None:
    async with brokers(tmp_path, time.time) as broker:
        question = await asked(broker, seconds=0.05)
        with anyio.fail_after(30):
            found = await broker.wait(question.id)
        assert found is not None
        assert found.state is State.EXPIRED


async def test_an_answer_that_another_process_took_is_seen(tmp_path: Path, clock: Clock) -> None:
    async with brokers(tmp_path, clock, "one") as one, brokers(tmp_path, clock, "two") as two:
        question = await asked(one)
        assert (await two.start(lambda run: run == "one")) == (0, 0)
        assert isinstance(await two.answer(question.id, {"name": "Ann"}), Pending)
        with anyio.fail_after(30):
            found = await one.wait(question.id)
        assert found is not None
        assert found.state is State.ANSWERED


async def test_after_a_restart_questions_whose_asker_survives_stay_and_others_are_cancelled(
    tmp_path: Path, clock: Clock
) -> None:
    async with brokers(tmp_path, clock, "before") as before:
        stays = await asked(before, survives=True, seconds=600)
        late = await asked(before, survives=True, seconds=10)
        lost = await asked(before)
        gone = await asked(before, seconds=10)
        done = await asked(before)
        await before.decline(done.id)
    clock.now += 20
    async with brokers(tmp_path, clock, "after") as after:
        assert await after.start() == (1, 3)
        assert [one.id for one in await after.pending()] == [stays.id]
        told = {one.id: (one.state, one.why) for one in await after.pending(settled=True)}
        assert told[lost.id] == (State.CANCELLED, "the gateway was started anew")
        assert told[late.id] == (State.EXPIRED, "nobody answered in time")
        assert told[gone.id] == (State.EXPIRED, "nobody answered in time")
        assert told[done.id] == (State.DECLINED, "")
        assert isinstance(await after.answer(stays.id, {"name": "Ann"}), Pending)
        found = await after.wait(stays.id)
        assert found is not None
        assert plain(found.result)["content"] == {"name": "Ann"}
    clock.now += 2 * 24 * 3600
    async with brokers(tmp_path, clock, "later") as later:
        await later.start()
        assert await later.pending(settled=True) == ()


async def test_a_file_that_cannot_be_opened_is_tried_again_for_the_next_question_after_a_pause(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokers(tmp_path, clock, "before") as before:
        lost = await asked(before, seconds=600)
    kept = tmp_path / "questions.sqlite"
    aside = kept.rename(tmp_path / "aside")
    kept.mkdir()
    async with brokers(tmp_path, clock, "after") as after:
        assert after.problem == ""
        with pytest.raises(StoreError, match="cannot be used"):
            await after.start()
        assert "cannot be used" in after.problem
        tried: list[object] = []
        opened = Database._open
        monkeypatch.setattr(Database, "_open", lambda self: (tried.append(self), opened(self))[1])
        for _ in range(3):
            with pytest.raises(StoreError, match="cannot be used"):
                await asked(after)
        assert tried == []
        clock.now += RETRY
        with pytest.raises(StoreError, match="cannot be used"):
            await asked(after)
        kept.rmdir()
        aside.rename(kept)
        clock.now += RETRY
        question = await asked(after)
        assert len(tried) == 2
        assert after.problem == ""
        # What earlier runs left is looked after by then.
        assert [one.id for one in await after.pending()] == [question.id]
        found = await after.show(lost.id)
        assert found is not None
        assert found.state is State.CANCELLED


def damage(path: Path, name: str, question: object, expires: float) -> None:
    """Puts a row into the file whose question is nothing that the broker wrote."""
    with sqlite3.connect(path / "questions.sqlite") as connection:
        values = (name, "files", "pending", expires - 1000, expires, question)
        connection.execute("INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?)", values)
    connection.close()


@pytest.mark.parametrize(
    "question", [b"{", b"null", b'{"id":5}', b"", b"\xff\xfe", "text", 7, b"[" * 100_000, b"params"]
)
async def test_a_row_that_cannot_be_read_costs_its_own_question_only(
    tmp_path: Path, clock: Clock, question: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(tmp_path, clock, "before") as before:
        stays = await asked(before, survives=True, seconds=600)
        if question == b"params":
            # A question whose params are no object.
            question = msgspec.json.encode(msgspec.structs.replace(stays, id="zzzzzz", params=Raw(b"7")))
    damage(tmp_path, "zzzzzz", question, clock.now + 1000)
    async with brokers(tmp_path, clock, "after") as after:
        assert await after.start() == (1, 0)
        damage(tmp_path, "yyyyyy", question, clock.now + 1000)
        clock.now += 1
        new = await asked(after)
        for _ in range(2):
            for settled in (False, True):
                assert [one.id for one in await after.pending(settled=settled)] == [stays.id, new.id]
        assert await after.show("zzzzzz") is None
        for said in (after.answer("zzzzzz", {"name": "Ann"}), after.decline("zzzzzz"), after.cancel("zzzzzz")):
            assert await said == "there is no question zzzzzz"
        assert await after.withdraw("files", "gone") == 1
        assert isinstance(await after.answer(stays.id, {"name": "Ann"}), Pending)
        assert after.problem == ""
    told = [record.message for record in caplog.records]
    assert len(told) == 2
    assert all("questions.sqlite: the question in row " in one and "is damaged and left out: " in one for one in told)
    with sqlite3.connect(tmp_path / "questions.sqlite") as connection:
        rows = connection.execute("SELECT id FROM questions WHERE id IN ('yyyyyy', 'zzzzzz') AND state = 'pending'")
        assert len(rows.fetchall()) == 2
    connection.close()


async def test_what_is_over_its_deadline_takes_no_room_from_other_questions(tmp_path: Path, clock: Clock) -> None:
    async with brokers(tmp_path, clock, upstream_questions=1) as broker:
        await broker.start()
        damage(tmp_path, "zzzzzz", b"{", clock.now + 10)
        assert isinstance(await broker.ask(QuestionKind.FORM, FORM, upstream="files", principal="ann"), ErrorValue)
        clock.now += 10
        await asked(broker)


async def test_a_file_that_another_program_holds_is_waited_for_by_one_asker_and_not_by_each_in_turn(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("troth.tasks.database.BUSY", 0.01)
    async with brokers(tmp_path, clock) as broker:
        await broker.start()
        first = await asked(broker)
        waited: list[bool] = []
        run = Database._run
        monkeypatch.setattr(
            Database, "_run", lambda self, work, write: (waited.append(write), run(self, work, write))[1]
        )
        holder = sqlite3.connect(tmp_path / "questions.sqlite", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        failed: list[str] = []

        async def ask() -> None:
            with pytest.raises(StoreError, match="locked") as raised:
                await asked(broker)
            failed.append(str(raised.value))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(ask)
            await ask()
        assert waited == [True]
        assert failed == [broker.problem] * 6
        # Reading goes on.
        assert [one.id for one in await broker.pending()] == [first.id]
        clock.now += RETRY
        await ask()
        assert waited == [True, False, True]
        holder.execute("ROLLBACK")
        holder.close()
        await ask()
        clock.now += RETRY
        for _ in range(2):
            await asked(broker)
        assert broker.problem == ""


ASKER = """
import sys, time, anyio
from pathlib import Path
from troth.bridge.questions import QuestionKind
from troth.gateway.broker import Broker
from troth.gateway.crew import Crew
from troth.gateway.limits import Limits

async def main():
    broker = Broker(Path(sys.argv[1]), Limits(), run="killed", clock=time.time, crew=Crew())
    await broker.start()
    for number in range(20):
        question = await broker.ask(QuestionKind.FORM, {"message": str(number)}, upstream="files", principal="ann",
                                    survives=number % 2 == 0, seconds=600)
        print(question.id, flush=True)
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
async def test_twenty_pending_questions_survive_kill_9_as_their_askers_do(tmp_path: Path) -> None:
    path = tmp_path / "questions.sqlite"
    killed = await anyio.to_thread.run_sync(lambda: ask_and_be_killed(path))
    async with brokers(tmp_path, time.time, "after") as after:
        assert await after.start() == (10, 10)
        assert [one.id for one in await after.pending()] == killed[::2]
    assert path.stat().st_mode & 0o777 == 0o600


def ask_and_be_killed(path: Path) -> list[str]:
    with subprocess.Popen([sys.executable, "-c", ASKER, str(path)], stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        names = []
        while (line := asker.stdout.readline().strip()) not in ("ready", ""):
            names.append(line)
        asker.send_signal(signal.SIGKILL)
    assert len(names) == 20
    return names


async def test_somebody_watches_only_while_he_says_so_again(broker: Broker, clock: Clock) -> None:
    assert not broker.watched
    broker.watch()
    assert broker.watched
    clock.now += 5
    assert not broker.watched


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (QuestionKind.URL, None, {"action": "accept"}),
        (QuestionKind.URL, {}, {"action": "accept"}),
        (QuestionKind.URL, {"a": 1}, None),
        (QuestionKind.ROOTS, {"roots": []}, {"roots": []}),
        (QuestionKind.ROOTS, {"root": []}, None),
        (QuestionKind.ROOTS, None, None),
        (
            QuestionKind.SAMPLING,
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}},
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}},
        ),
        (QuestionKind.SAMPLING, {"role": "assistant", "model": "m"}, None),
        (QuestionKind.SAMPLING, "x", None),
    ],
)
async def test_every_kind_is_answered_in_its_way(
    broker: Broker, kind: QuestionKind, value: object, result: object
) -> None:
    question = await asked(broker, kind, URL)
    answered = await broker.answer(question.id, value)
    if result is None:
        assert isinstance(answered, str)
    else:
        found = await broker.wait(question.id)
        assert found is not None
        assert plain(found.result) == result


async def test_questions_are_capped_each_limit_by_its_name(tmp_path: Path, clock: Clock) -> None:
    async with brokers(tmp_path, clock, questions=3, upstream_questions=2, question_bytes=2000) as broker:

        async def refused(**options: Any) -> object:
            found = await broker.ask(QuestionKind.FORM, FORM, **{"upstream": "files", "principal": "ann", **options})
            return found.data if isinstance(found, ErrorValue) else None

        first = await asked(broker)
        await asked(broker)
        assert await refused() == {"limit": "upstream_questions"}
        assert await refused(upstream="mail") is None
        assert await refused(upstream="web") == {"limit": "questions"}
        await broker.decline(first.id)
        assert await refused() is None
        large = await broker.ask(QuestionKind.FORM, {"message": "x" * 3000}, upstream="x", principal="ann")
        assert isinstance(large, ErrorValue)
        assert large.data == {"limit": "question_bytes"}


async def test_questions_of_an_upstream_that_is_gone_are_cancelled(broker: Broker) -> None:
    mine, other = await asked(broker), await asked(broker, upstream="mail")
    assert await broker.withdraw("files", "its session was lost") == 1
    found = await broker.wait(mine.id)
    assert found is not None
    assert (found.state, found.why) == (State.CANCELLED, "its session was lost")
    assert [one.id for one in await broker.pending()] == [other.id]


async def test_what_people_get_holds_no_answer_and_no_run(broker: Broker) -> None:
    question = await asked(broker)
    await broker.answer(question.id, {"name": "SECRET"})
    (shown,) = await broker.pending(settled=True)
    told = plain(Raw(msgspec.json.encode(as_told(shown))))
    assert "SECRET" not in str(told)
    assert set(told) == {
        "id", "upstream", "principal", "kind", "params", "asked", "expires", "survives", "state", "why"
    }  # fmt: skip
    assert told["params"] == FORM


async def test_what_is_said_of_a_question_is_done_or_refused(broker: Broker) -> None:
    question = await asked(broker)
    assert "action" in str(await act(broker, question.id, {}))
    assert "action" in str(await act(broker, question.id, {"action": ["accept"]}))
    assert isinstance(await act(broker, question.id, {"action": "accept"}), str)
    assert isinstance(await act(broker, question.id, {"action": "accept", "content": {"name": "x"}}), Pending)
    assert isinstance(await act(broker, (await asked(broker)).id, {"action": "decline"}), Pending)
    cancelled = await act(broker, (await asked(broker)).id, {"action": "cancel"})
    assert isinstance(cancelled, Pending)
    assert cancelled.why == "cancelled by the operator"


# The operator's command


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


GOOD = """
import json, sys
question = json.load(sys.stdin)
assert question["params"]["message"] == "Who?", question
print(json.dumps({"action": "accept", "content": {"name": question["upstream"]}}))
"""


async def test_a_command_answers_and_people_need_not(tmp_path: Path) -> None:
    async with brokers(tmp_path, time.time, command=python(GOOD)) as broker:
        question = await asked(broker)
        with anyio.fail_after(30):
            found = await broker.wait(question.id)
        assert found is not None
        assert plain(found.result) == {"action": "accept", "content": {"name": "files"}}


async def test_people_and_the_command_may_say_more_than_the_form_asks_for(tmp_path: Path) -> None:
    said = {"name": "Ann", "more": ["a"]}
    code = f"import json; print(json.dumps({{'action': 'accept', 'content': {said!r}}}))"
    for command in ((), python(code)):
        async with brokers(tmp_path, time.time, command=command) as broker:
            question = await asked(broker)
            if not command:
                assert isinstance(await broker.answer(question.id, said), Pending)
            with anyio.fail_after(30):
                found = await broker.wait(question.id)
            assert found is not None
            assert plain(found.result) == {"action": "accept", "content": said}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (python(""), "it said nothing"),
        (python("print('no json')"), "no JSON"),
        (python("print([])"), "no JSON object"),
        (python("import sys; sys.exit(3)"), "status 3"),
        (python("print('x' * 2_000_000)"), "longer than"),
        (("/no/such/program",), "cannot be started"),
        (python('print(\'{"action":"accept","content":{"name":5}}\')'), "name"),
        (python('print(\'{"action":"maybe"}\')'), "action"),
    ],
)
async def test_a_command_without_an_answer_leaves_the_question_to_people(
    tmp_path: Path, command: tuple[str, ...], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(tmp_path, time.time, command=command) as broker:
        question = await asked(broker)
        await asyncio.wait(broker._crew._tasks, timeout=30)
        assert why in caplog.text
        assert isinstance(await broker.answer(question.id, {"name": "by hand"}), Pending)


@pytest.mark.skipif(sys.platform != "linux", reason="processes outside of a session are found in /proc")
@pytest.mark.parametrize("session", [False, True])
async def test_what_a_command_started_neither_holds_its_answer_up_nor_outlives_it(
    session: bool, tmp_path: Path
) -> None:
    import fcntl

    path = tmp_path / "held"
    code = f"""
import fcntl, json, subprocess, sys
held = open({str(path)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
more = {{"pass_fds": [held.fileno()], "start_new_session": {session}}}
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **more)
print(json.dumps({{"action": "decline"}}))
"""
    with anyio.fail_after(30):
        assert await answering.ask_command(python(code), {"id": "x"}, 600) == {"action": "decline"}
        with path.open() as held:
            # It comes when the last of them is gone.
            await anyio.to_thread.run_sync(fcntl.flock, held, fcntl.LOCK_EX, abandon_on_cancel=True)


@pytest.mark.skipif(sys.platform == "win32", reason="groups of processes")
async def test_a_command_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "held"
    code = f"""
import fcntl, subprocess, sys, time
held = open({str(path)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=[held.fileno()])
held.write("both hold it")
held.flush()
time.sleep(600)
"""
    # Time for a busy machine to start both of them.
    with anyio.fail_after(60):
        assert await answering.ask_command(python(code), {"id": "x"}, 8) == "it did not end in time"
        with path.open() as held:
            assert held.read() == "both hold it"
            # It comes when the last of them is gone.
            await anyio.to_thread.run_sync(fcntl.flock, held, fcntl.LOCK_EX, abandon_on_cancel=True)
