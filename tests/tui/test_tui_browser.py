"""`mecharule serve`: the same app in a browser, held to loopback and to its own page."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from browser import Characters, Page, browser

from app import main
from tui.serving import listen

COLOURS_DRAWN = 20
"""Colours that a screenshot of a drawn screen has at least; a blank page has one or two."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """The installed command serving on a free port, its address, and its process."""
    command = Path(sys.executable).with_name("mecharule")
    assert command.is_file(), f"expected the installed command at {command}; run `make install`"
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"MECHARULE_RUNS": str(tmp_path / "runs"), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [command, "serve", "--port", "0", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    address = json.loads(child.stdout.readline())["address"]
    yield SimpleNamespace(address=address, child=child)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)


def _asked(address: str, **headers: str) -> tuple[int, str]:
    """Status and text of a page asked for with these headers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_the_server_answers_its_own_page_and_nobody_elses(served: SimpleNamespace) -> None:
    """On loopback; another site's page, or a name that was pointed here, is refused; ^C ends it with 0."""
    host = urlsplit(served.address).netloc
    assert urlsplit(served.address).hostname == "127.0.0.1"
    status, page = _asked(served.address)
    assert status == 200
    assert f'data-session-websocket-url="ws://{host}/ws"' in page
    port = host.split(":")[1]
    assert f"ws://localhost:{port}/ws" in _asked(served.address, Host=f"localhost:{port}")[1]
    for path in ("", "/ws"):
        for headers in ({"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}):
            status, text = _asked(served.address + path, **headers)
            assert (status, text.startswith("expected a ")) == (403, True), (path, headers)
    assert _asked(served.address + "/ws")[0] == 403, "a websocket must say whose page it is of"
    served.child.send_signal(signal.SIGINT)
    assert served.child.wait(timeout=60) == 0


def test_a_taken_port_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, the address, what to do; in JSON too. A port that is none is refused as a usage error."""
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--json"]) == 2
    captured = capsys.readouterr()
    said = json.loads(captured.out)
    assert said["exit_code"] == 2
    assert said["error"] == (
        f"expected a free port of this machine, got 127.0.0.1:{port} (Address already in use); "
        "choose another with --port"
    )
    for wrong in ("65536", "-1", "http"):
        assert main(["serve", "--port", wrong]) == 2
        assert "expected a port from 0 to 65535" in capsys.readouterr().err


def test_the_characters_of_a_screen_follow_cursor_moves() -> None:
    """Text, moves, colours and cut sequences, by hand."""
    screen = Characters()
    screen.feed(b"\x1b[2J\x1b[1;3Hab\x1b[31mc\x1b[0m\r\nd\x1b[3;1")
    screen.feed("H\x1b]0;title\x07é".encode()[:-1])
    screen.feed("é".encode()[-1:])
    assert screen.text == "  abc\nd\né"


@pytest.mark.slow
def test_the_story_in_a_browser(served: SimpleNamespace, tmp_path: Path) -> None:
    """Home, demo, the tree, a question and its answer, quit; drawn, and nothing asked of another machine."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert binary, "expected Chromium for the test in a browser; install it (apt install chromium)"

    async def story() -> Page:
        async with browser(binary, tmp_path / "profile") as page:
            await page.open(served.address)
            await page.sees("MechaRule", "no runs yet", "demo")
            await page.press("d")
            await page.sees("LIVE", "CHA tree")
            await page.sees("DONE", "finished", "[F3 tree]", "AGONIST")
            await page.press("F2")
            await page.type("why does the strongest neuron flip?")
            await page.sees("you why does", "Switch channel m1.")
            await page.reads_on_to("you may ask")
            colours = (await page.picture()).getcolors(1 << 24)
            assert colours is not None
            assert len(colours) > COLOURS_DRAWN
            await page.press("F5")
            await page.sees("Agonists per layer")
            return page

    page = asyncio.run(story())
    assert page.errors == []
    hosts = {urlsplit(each).netloc for each in page.asked_for if each.startswith(("http", "ws"))}
    assert hosts == {urlsplit(served.address).netloc}
    assert len(list((tmp_path / "runs").glob("*.mecharule"))) == 1
