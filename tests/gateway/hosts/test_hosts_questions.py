"""Questions over HTTP: for the operator alone, within bounds."""

from __future__ import annotations

import io
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted_front import serving

from troth.bridge.questions import QuestionKind
from troth.gateway.broker import Broker, Pending, State
from troth.gateway.crew import Crew
from troth.gateway.hosts import Access
from troth.gateway.hosts import questions as module
from troth.gateway.limits import Limits
from troth.gateway.settings import TokenSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

OPERATOR = {"Authorization": "Bearer operator"}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def asking(path: Path) -> AsyncIterator[tuple[Any, Broker, Pending]]:
    crew = Crew()
    limits = Limits(watching=600.0)
    broker = Broker(path / "questions.sqlite", limits, run="run", clock=time.time, crew=crew)
    question = await broker.ask(QuestionKind.FORM, FORM, upstream="files", principal="ann")
    assert isinstance(question, Pending)
    access = Access([TokenSettings(name="ann", token="host-token-of-ann")], operator="operator")
    async with serving(access=access, broker=broker) as served:
        yield served, broker, question
    await crew.close()
    await broker.close()


async def test_questions_are_for_the_operator_alone(tmp_path: Path) -> None:
    async with asking(tmp_path) as (served, _, question):
        url = f"{served.base}/questions"
        for headers in ({}, {"Authorization": "Bearer host-token-of-ann"}, {"Authorization": "Bearer x"}):
            async with served.client.get(url, headers=headers) as response:
                assert response.status == 401
                assert question.id not in await response.text()
            async with served.client.post(url, headers=headers, json={"id": question.id}) as response:
                assert response.status == 401
        async with served.client.get(url, headers=OPERATOR) as response:
            (told,) = (await response.json())["questions"]
            assert (told["id"], told["params"], told["state"]) == (question.id, FORM, "pending")
        async with served.client.delete(url, headers=OPERATOR) as response:
            assert response.status == 405


async def test_pages_of_the_web_do_not_reach_them(tmp_path: Path) -> None:
    headers = {**OPERATOR, "Origin": "https://evil.example"}
    async with (
        asking(tmp_path) as (served, _, _),
        served.client.get(f"{served.base}/questions", headers=headers) as response,
    ):
        assert response.status == 403


async def test_a_question_is_settled_and_then_only_listed_with_all(tmp_path: Path) -> None:
    async with asking(tmp_path) as (served, broker, question):
        url = f"{served.base}/questions"
        body = {"id": question.id, "action": "accept", "content": {"name": "Ann"}}
        async with served.client.post(url, headers=OPERATOR, json=body) as response:
            assert response.status == 200
            told = (await response.json())["question"]
            assert told["state"] == "answered"
            assert "Ann" not in str(told)
        async with served.client.post(url, headers=OPERATOR, json=body) as response:
            assert response.status == 409
            assert "answered already" in (await response.json())["error"]
        async with served.client.get(url, headers=OPERATOR) as response:
            assert (await response.json())["questions"] == []
        async with served.client.get(f"{url}?all", headers=OPERATOR) as response:
            assert len((await response.json())["questions"]) == 1
        found = await broker.wait(question.id)
        assert found is not None
        assert found.state is State.ANSWERED


async def test_a_look_counts_as_watching_only_where_it_says_so(tmp_path: Path) -> None:
    async with asking(tmp_path) as (served, broker, _):
        async with served.client.get(f"{served.base}/questions", headers=OPERATOR):
            assert not broker.watched
        async with served.client.get(f"{served.base}/questions?watch", headers=OPERATOR):
            assert broker.watched


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"a":"\\ud800"}', b"x" * (module.LARGEST + 1)])
async def test_a_body_of_no_use_is_refused(tmp_path: Path, body: bytes) -> None:
    async with asking(tmp_path) as (served, broker, _):
        async with served.client.post(f"{served.base}/questions", headers=OPERATOR, data=io.BytesIO(body)) as response:
            assert response.status == 400
            assert (await response.json())["error"]
        assert len(await broker.pending()) == 1


@pytest.mark.parametrize(
    "said",
    [{}, {"id": 5}, {"id": "nobody", "action": "accept"}, {"id": "nobody", "action": "explode"}, {"action": "decline"}],
)
async def test_what_cannot_be_done_is_said(tmp_path: Path, said: dict[str, object]) -> None:
    async with (
        asking(tmp_path) as (served, _, _),
        served.client.post(f"{served.base}/questions", headers=OPERATOR, json=said) as response,
    ):
        assert response.status == 409
        assert (await response.json())["error"]


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await stop.wait()

    stop = anyio.Event()
    async with asking(tmp_path) as (served, _, _):
        async with served.client.post(f"{served.base}/questions", headers=OPERATOR, data=never()) as response:
            assert response.status == 400
            assert "in time" in (await response.json())["error"]
        stop.set()


async def test_a_gateway_without_a_broker_says_how_to_get_one() -> None:
    async with (
        serving(access=Access(operator="operator")) as served,
        served.client.get(f"{served.base}/questions", headers=OPERATOR) as response,
    ):
        assert response.status == 404
        message = (await response.json())["error"]["message"]
        assert 'ask = ["broker"]' in message


def spoil(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    (folder / "questions.sqlite").mkdir()


async def test_a_file_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    async with asking(tmp_path) as (served, broker, _):
        await broker.close()
        await anyio.to_thread.run_sync(spoil, tmp_path)
        async with served.client.get(f"{served.base}/questions", headers=OPERATOR) as response:
            assert response.status == 503
            assert "questions.sqlite" in (await response.json())["error"]
