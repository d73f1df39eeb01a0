"""`mecharule serve` under strangers, slow clients, too many pages and browsers that vanish."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tui.serving import MOST_PAGES

from .result import Figure, Result, Setting

ROOT = Path(__file__).parents[2]
CONNECTIONS = 200
PATIENCE = 60.0
TRAVERSALS = (
    "/static/../serving.py",
    "/static/..%2fserving.py",
    "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/static/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/....//....//etc/passwd",
    "/static/..%5c..%5cetc%5cpasswd",
    "/static/%00",
    "/static/",
    "/static/js/../../../../../../../../etc/passwd",
    "/download/../../../../etc/passwd",
    "/download/%2e%2e%2fetc%2fpasswd",
    "/download/nothing",
    "/page.js/../../etc/passwd",
    "/../../../../etc/passwd",
    "//etc/passwd",
)
"""Paths that would leave the folder of served files."""
NOISE = (
    "no json",
    "{}",
    "[]",
    '["stdin"]',
    '["stdin", 5]',
    '["resize", {}]',
    '["other", 1]',
    "[" * 5000,
    '["ping"]',
)
"""Messages of a websocket that no page sends."""


def serving(setting: Setting) -> Result:
    """One server through all of it; then ^C."""
    return asyncio.run(_all(setting))


class _Served:
    """A running server."""

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        self.child, self.port = child, port
        self.host = f"127.0.0.1:{port}"

    async def asked(self, path: str, **headers: str) -> int:
        """The status of a path, sent as it is; 0 where the server only hangs up."""
        reader, writer = await self.sent(path, **headers)
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        writer.close()
        return int(line.split()[1]) if line.startswith(b"HTTP/") else 0

    async def sent(self, path: str, **headers: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection over which a path was asked for."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        said = {"Host": self.host, "Connection": "close", **headers}
        lines = [
            f"GET {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in said.items() if value),
            "",
            "",
        ]
        writer.write("\r\n".join(lines).encode())
        await writer.drain()
        return reader, writer

    def upgrade(self, **headers: str) -> dict[str, str]:
        """Headers that ask for a websocket."""
        key = base64.b64encode(os.urandom(16)).decode()
        return {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            **headers,
        }

    async def page(self) -> asyncio.StreamWriter | int:
        """An open websocket of a page of this server, or the status that refused it."""
        reader, writer = await self.sent("/ws", **self.upgrade(Origin=f"http://{self.host}"))
        status = int((await asyncio.wait_for(reader.readline(), PATIENCE)).split()[1])
        return writer if status == 101 else status

    def apps(self) -> list[int]:
        """Processes that the server started and that live."""
        return _children(self.child.pid)


async def _all(setting: Setting) -> Result:
    environment = {**os.environ, "MECHARULE_RUNS": str(setting.folder), "PYTHONPATH": str(ROOT)}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "serve", "--port", "0", "--json"),
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    address = json.loads(await child.stdout.readline())["address"]
    served = _Served(child, int(address.rsplit(":", 1)[1]))
    figures: list[Figure] = []
    problems: list[str] = []
    cases = 0
    for step in (_strangers, _traversals, _many, _slow, _noise, _too_many_pages):
        setting.tell(f"serving: {step.__name__.strip('_').replace('_', ' ')}")
        tried, measured, wrong = await step(served)
        cases += tried
        figures += measured
        problems += wrong
    child.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(child.communicate(), PATIENCE)
    left = _children(child.pid)
    problems += [f"^C ended it with {child.returncode}"] * (child.returncode != 0)
    problems += [f"{len(left)} processes left running"] * bool(left)
    problems += ["a traceback on stderr"] * (b"Traceback" in err)
    return Result(
        tried=f"{cases:,} requests of strangers, of slow, noisy and vanishing clients, and of {CONNECTIONS} at once",
        cases=cases,
        figures=(*figures, Figure(what="processes left after ^C", value=str(len(left)))),
        problems=tuple(problems),
    )


_Found = tuple[int, list[Figure], list[str]]


async def _strangers(served: _Served) -> _Found:
    """Other origins, other names pointed here, a websocket that does not say where it comes from."""
    port = served.port
    origins = (
        "http://elsewhere.example",
        "null",
        f"http://127.0.0.1:{port + 1}",
        f"http://127.0.0.1.elsewhere.example:{port}",
        f"http://localhost:{port}",
        "file://",
    )
    hosts = (
        "elsewhere.example",
        f"elsewhere.example:{port}",
        f"127.0.0.1.elsewhere.example:{port}",
        f"[::2]:{port}",
        "a b",
    )
    tried = [(path, {"Origin": origin}) for path in ("/", "/ws") for origin in origins]
    tried += [(path, {"Host": host}) for path in ("/", "/ws") for host in hosts]
    tried += [("/ws", {"Origin": ""}), ("/ws", {"Host": hosts[1], "Origin": f"http://{hosts[1]}"})]
    wrong = []
    for path, headers in tried:
        more = served.upgrade(**headers) if path == "/ws" else headers
        status = await served.asked(path, **more)
        if status not in (400, 403):
            wrong.append(f"{path} with {headers} got {status}")
    return (
        len(tried),
        [Figure(what="strangers refused", value=f"{len(tried) - len(wrong)} of {len(tried)}")],
        wrong,
    )


async def _traversals(served: _Served) -> _Found:
    wrong = [
        f"{path} got {status}" for path in TRAVERSALS if (status := await served.asked(path)) in (101, 200)
    ]
    refused = f"{len(TRAVERSALS) - len(wrong)} of {len(TRAVERSALS)}"
    return len(TRAVERSALS), [Figure(what="paths out of the folder refused", value=refused)], wrong


async def _many(served: _Served) -> _Found:
    """Two hundred pages asked for at once."""
    began = time.monotonic()
    statuses = await asyncio.gather(*(served.asked("/") for _ in range(CONNECTIONS)))
    seconds = time.monotonic() - began
    wrong = [f"one of {CONNECTIONS} at once got {status}" for status in statuses if status != 200]
    return (
        CONNECTIONS,
        [Figure(what=f"{CONNECTIONS} pages at once, all sent after", value=f"{seconds:.1f} s")],
        wrong,
    )


async def _slow(served: _Served) -> _Found:
    """Two hundred clients that never finish asking; another one is served meanwhile."""
    held = []
    for _ in range(CONNECTIONS):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET / HTTP/1.1\r\nHo")
        held.append(writer)
    began = time.monotonic()
    status = await served.asked("/")
    seconds = time.monotonic() - began
    for writer in held:
        writer.transport.abort()
    figure = Figure(
        what=f"a page beside {CONNECTIONS} clients that never finish asking", value=f"{seconds:.2f} s"
    )
    return CONNECTIONS, [figure], [f"beside slow clients a page got {status}"] * (status != 200)


async def _noise(served: _Served) -> _Found:
    """Messages that no page sends, each on a page of its own, one after another."""
    wrong = []
    for text in NOISE:
        writer = await served.page()
        if isinstance(writer, int):
            wrong.append(f"before {text[:20]!r} a page got {writer}")
            continue
        writer.write(_frame(text))
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.transport.abort()
    if await served.asked("/") != 200:
        wrong.append("after odd messages the server does not answer")
    gone, seconds = await _gone(served)
    wrong += [f"{len(served.apps())} apps of vanished pages still run"] * (not gone)
    return len(NOISE), [Figure(what="apps ended after odd messages", value=f"{seconds:.1f} s")], wrong


async def _too_many_pages(served: _Served) -> _Found:
    """Four more pages than there may be; then every browser is killed."""
    opened = [await served.page() for _ in range(MOST_PAGES + 4)]
    writers = [one for one in opened if not isinstance(one, int)]
    refused = [one for one in opened if isinstance(one, int)]
    wrong = []
    if len(writers) != MOST_PAGES or set(refused) != {503}:
        wrong.append(f"of {len(opened)} pages {len(writers)} were served, the others got {refused}")
    await asyncio.sleep(1.0)
    running = len(served.apps())
    for writer in writers:
        writer.transport.abort()
    gone, seconds = await _gone(served)
    wrong += [f"{len(served.apps())} apps of killed browsers still run"] * (not gone)
    again = await served.page()
    wrong += [f"after that a page got {again}"] * isinstance(again, int)
    if not isinstance(again, int):
        again.transport.abort()
    return (
        len(opened),
        [
            Figure(what="pages open at once, apps running", value=f"{len(writers)}, {running}"),
            Figure(what="all their apps ended, after the browsers were killed", value=f"{seconds:.1f} s"),
        ],
        wrong,
    )


async def _gone(served: _Served) -> tuple[bool, float]:
    """Whether every app ends by itself, and after how long."""
    began = time.monotonic()

    async def none() -> bool:
        return not served.apps()

    gone = await _until(none)
    return gone, time.monotonic() - began


async def _until(condition: Callable[[], Awaitable[bool]]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not await condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True


def _frame(text: str) -> bytes:
    """A masked text frame of a websocket."""
    body = text.encode()
    size = (
        bytes([0x80 | len(body)]) if len(body) < 126 else bytes([0x80 | 126]) + len(body).to_bytes(2, "big")
    )
    return b"\x81" + size + bytes(4) + body


def _children(parent: int) -> list[int]:
    """Living processes below a process; only on Linux."""
    found, parents = list[int](), dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    for child, above in parents.items():
        while above > 1 and above != parent:
            above = parents.get(above, 0)
        if above == parent:
            found.append(child)
    return found
