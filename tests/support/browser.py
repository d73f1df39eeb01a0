"""A headless Chromium driven over its debugging protocol, and the terminal that the served page draws.

What the app sends to the page is kept on a small screen of characters, so that a test reads what stands there;
a screenshot tells that the browser has really drawn it.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import io
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image

PATIENCE = 120.0
ESCAPE = re.compile(r"\x1b(?:\[([0-9;?<>=$]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--window-size=1280,800",
    "--enable-unsafe-swiftshader",
    "--no-first-run",
    "--disable-background-networking",
)


class Characters:
    """A screen of characters that follows cursor moves and text and ignores colours."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], str] = {}
        self._row = self._column = 0
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, data: bytes) -> None:
        """Draw what was sent; a sequence cut in two waits for its end."""
        text = self._rest + self._decoder.decode(data)
        self._rest, at = "", 0
        while at < len(text):
            found = ESCAPE.match(text, at)
            if found:
                self._escape(found[1] or "", found[2] or "")
                at = found.end()
            elif text[at] == "\x1b" and len(text) - at < 64:
                self._rest, at = text[at:], len(text)
            else:
                self._put(text[at])
                at += 1

    def _escape(self, numbers: str, kind: str) -> None:
        if kind == "H":
            row, column = ([int(n or 1) for n in numbers.split(";")] + [1, 1])[:2] if numbers else (1, 1)
            self._row, self._column = row - 1, column - 1
        elif kind == "J":
            self.cells.clear()

    def _put(self, char: str) -> None:
        if char == "\n":
            self._row, self._column = self._row + 1, 0
        elif char == "\r":
            self._column = 0
        elif char >= " ":
            self.cells[self._row, self._column] = char
            self._column += 1

    @property
    def text(self) -> str:
        """What stands there, without trailing spaces."""
        height = max((row for row, _ in self.cells), default=-1) + 1
        width = max((column for _, column in self.cells), default=-1) + 1
        lines = (
            "".join(self.cells.get((row, column), " ") for column in range(width)) for row in range(height)
        )
        return "\n".join(line.rstrip() for line in lines)


class Page:
    """One page: its terminal, its keys, and where it tried to connect."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._calls = 0
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self.screen = Characters()
        self.asked_for: list[str] = []
        """Addresses that the page loaded or connected to."""
        self.errors: list[str] = []

    async def listen(self) -> None:
        """Take in what the browser tells, until it goes."""
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            else:
                self._note(told["method"], told["params"])

    def _note(self, method: str, told: Mapping[str, Any]) -> None:
        if method == "Network.webSocketFrameReceived" and told["response"]["opcode"] == 2:
            self.screen.feed(base64.b64decode(told["response"]["payloadData"]))
        elif method == "Network.requestWillBeSent":
            self.asked_for.append(told["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.asked_for.append(told["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"]))

    async def call(self, method: str, **given: object) -> Mapping[str, Any]:
        """The browser's answer to a command of its protocol."""
        self._calls += 1
        answer = self._answers[self._calls] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._calls, "method": method, "params": given})
        return (await answer)["result"]

    async def open(self, address: str) -> None:
        """Go to an address, watching what it loads, until keys would go to its terminal."""
        for domain in ("Network", "Page", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await self.call("Page.navigate", url=address)
        await self.until(self._takes_keys, "the terminal to have the focus")

    async def _takes_keys(self) -> bool:
        asked = await self.call("Runtime.evaluate", expression="document.activeElement?.className")
        return "xterm-helper-textarea" in str(asked["result"].get("value"))

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until something holds; fail with what is on the screen when it never does."""
        deadline = time.monotonic() + PATIENCE
        while not await condition():
            shown = self.screen.text
            assert time.monotonic() < deadline, f"expected {what}; the page shows\n{shown}\n{self.errors}"
            await asyncio.sleep(0.2)

    async def press(self, *keys: str) -> None:
        """Press keys as a person does: a character, or a named key such as `F3`, `Enter`, `Escape`."""
        for key in keys:
            code, text = _KEYS.get(key, (ord(key[0].upper()), key))
            given = {"key": key, "windowsVirtualKeyCode": code}
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **given)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    async def type(self, line: str) -> None:
        await self.call("Input.insertText", text=line)
        await self.press("Enter")

    async def sees(self, *texts: str) -> str:
        """Wait until every text stands on the screen at once."""

        async def there() -> bool:
            return all(text in self.screen.text for text in texts)

        await self.until(there, " and ".join(map(repr, texts)))
        return self.screen.text

    async def reads_on_to(self, text: str) -> None:
        """Page down until a text stands on the screen."""

        async def there() -> bool:
            await self.press("PageDown")
            return text in self.screen.text

        await self.until(there, f"{text!r} further down")

    async def picture(self) -> Image.Image:
        """What the browser has drawn."""
        shot = await self.call("Page.captureScreenshot", format="png")
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")


_KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "PageDown": (34, ""),
    **{f"F{n}": (111 + n, "") for n in range(1, 13)},
}


@asynccontextmanager
async def browser(binary: str, profile: Path) -> AsyncIterator[Page]:
    """A page of a fresh Chromium, which ends with the block."""
    child = await asyncio.create_subprocess_exec(
        binary,
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as session:
            target = await _first_page(session, profile / "DevToolsActivePort")
            async with session.ws_connect(target, max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                yield page
                listening.cancel()
    finally:
        child.terminate()
        await child.wait()


async def _first_page(session: aiohttp.ClientSession, port_file: Path) -> str:
    """The debugging address of the page that Chromium opened."""
    deadline = time.monotonic() + PATIENCE
    while not (port_file.is_file() and "\n" in port_file.read_text()):
        assert time.monotonic() < deadline, "Chromium did not start"
        await asyncio.sleep(0.1)
    port = port_file.read_text().splitlines()[0]
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        return next(each["webSocketDebuggerUrl"] for each in await answer.json() if each["type"] == "page")
