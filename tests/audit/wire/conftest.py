import gc
import os
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import anyio
import anyio.abc
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream

from held_ports import held_port


@pytest.fixture
def anyio_backend():
    return "asyncio"


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """No child, not even a zombie, and no unclosed pipe or socket (whose warning is an error)."""
    before = children()
    yield
    gc.collect()
    assert children() - before == set()


class Inbox:
    """What arrived on a link, and a way to wait for it."""

    def __init__(self, link):
        self.items = []
        self._changed = anyio.Event()
        link.receive = self._receive

    def _receive(self, incoming):
        self.items.append(incoming)
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def values(self):
        return [item.value for item in self.items if item.value is not None]

    @property
    def problems(self):
        return [item.problem for item in self.items if item.problem]

    async def until(self, wanted, seconds=30):
        with anyio.fail_after(seconds):
            while not wanted(self):
                await self._changed.wait()

    async def count(self, number):
        await self.until(lambda box: len(box.items) >= number)

    async def end(self):
        await self.until(lambda box: any(item.end for item in box.items))


@pytest.fixture
def inbox():
    return Inbox


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: bytes


class Peer:
    """An HTTP server of bytes, so that it can break any rule of HTTP. It keeps what it was asked."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.requests = []
        self.cut = anyio.Event()
        """Set when a client leaves while `endless` writes to it."""

    async def wait_for_cut(self):
        with anyio.fail_after(30):
            await self.cut.wait()

    async def endless(self, stream, start, again=b""):
        """Sends the start, then again and again; for nothing to repeat, waits for the client to leave."""
        try:
            await stream.send(start)
            while again:
                await stream.send(again)
            await stream.receive()
        except (anyio.BrokenResourceError, anyio.EndOfStream):
            self.cut.set()


async def read_request(stream):
    buffered = BufferedByteReceiveStream(stream)
    head = (await buffered.receive_until(b"\r\n\r\n", 65536)).decode()
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await buffered.receive_exactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split()
    return Request(method, path, headers, body)


@pytest.fixture
def serving():
    """`async with serving(answer) as peer`: the answer is bytes, or a function of (peer, stream, request)."""

    @asynccontextmanager
    async def serve(answer, greeting=b"", tls=None):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        peer = Peer(listener.extra(anyio.abc.SocketAttribute.local_port))

        async def handle(stream):
            async with stream:
                try:
                    if tls is not None:
                        stream = await TLSStream.wrap(stream, server_side=True, ssl_context=tls)
                    await stream.send(greeting)
                    request = await read_request(stream)
                    peer.requests.append(request)
                    if isinstance(answer, bytes):
                        await stream.send(answer)
                    else:
                        await answer(peer, stream, request)
                except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, ssl.SSLError):
                    peer.cut.set()

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            yield peer
            tasks.cancel_scope.cancel()

    return serve


@pytest.fixture
def unused_port():
    """A port where nobody listens."""
    with held_port() as port:
        yield port


@pytest.fixture
def own_certificate(tmp_path):
    """A server's TLS context with a certificate for 127.0.0.1 that it signed itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "peer.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
