"""The terminal app in a browser: a small server around `textual-serve`, on loopback unless told otherwise.

Every page gets an app of its own, in a process of its own, and so many at most. A page of another site cannot open
one: the websocket must say that it comes from this server's own page, and on loopback the browser must have asked for
it by a loopback name. Nothing is fetched from elsewhere.
"""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from mecharule_ops.errors import UsageError

APP = "import sys; from tui.terminal_app import run_app; sys.exit(run_app())"
"""What a page's process runs."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SHUTDOWN_SECONDS = 2.0
"""How long open pages may take to go when the server ends; their work is stopped then."""
MOST_PAGES = 16
"""Open pages at once; each has a process with an app."""
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)


class AppServer(Server):
    """Serves the app's page, its files, and a websocket a page."""

    def __init__(self, host: str) -> None:
        super().__init__(shlex.join([sys.executable, "-c", APP]), host=host, title="MechaRule")
        self._open_pages = 0
        self._page = Template(_own_file("page.html"))
        self._script = _own_file("page.js")

    def application(self) -> web.Application:
        """The routes of the server."""
        made = web.Application()
        made.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/page.js", self.handle_script),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
            ]
        )
        return made

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page; it connects back to the name it was asked for by, so it works through a tunnel too."""
        self._refuse_strangers(request)
        scheme = "wss" if request.secure else "ws"
        page = self._page.substitute(websocket=escape(f"{scheme}://{request.host}/ws", quote=True))
        return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": POLICY})

    async def handle_script(self, request: web.Request) -> web.Response:
        """The page's own script."""
        return web.Response(text=self._script, content_type="text/javascript")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One app for one page of this server; 403 to what does not say that it is one, 503 to one too many."""
        self._refuse_strangers(request)
        if "Origin" not in request.headers:
            raise web.HTTPForbidden(
                text=f"expected a page of {request.host}, got one that does not say whose it is"
            )
        if self._open_pages >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(
                text=f"expected at most {MOST_PAGES} open pages; close one and reload"
            )
        self._open_pages += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._open_pages -= 1

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """A page's keys and sizes; a message that no page of ours sends ends the page."""
        try:
            await super()._process_messages(websocket, app_service)
        except (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError):
            await websocket.close(code=WSCloseCode.POLICY_VIOLATION)

    def _refuse_strangers(self, request: web.Request) -> None:
        """Answers 403 to a page of another origin, and on loopback to a name that is not loopback's."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text=f"expected a page of {request.host}, got one of {origin}")
        name = urlsplit(f"//{request.host}").hostname
        if self.host in LOOPBACK and name not in LOOPBACK:
            raise web.HTTPForbidden(
                text=f"expected a loopback name, got {name}; see `mecharule serve --host ADDRESS`"
            )


def serve(host: str, port: int, ready: Callable[[str], None]) -> int:
    """Serve until interrupted; 0 then. `ready` is told the address once pages can be opened.

    Port 0 takes any free one. Raises `UsageError` when the address cannot be had.
    """
    with listen(host, port) as listening:
        address = _url(host, listening.getsockname()[1])
        web.run_app(
            AppServer(host).application(),
            sock=listening,
            print=lambda line: ready(address),
            access_log=None,
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises `UsageError` when the port is taken or the host is not this one."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = str(error.strerror).split(" (")[0]
        raise UsageError(
            f"expected a free port of this machine, got {host}:{port} ({reason}); choose another with --port"
        ) from error


def _own_file(name: str) -> str:
    return files("tui").joinpath(name).read_text(encoding="utf-8")


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
