"""The command palette, which outlives keys that come before it is drawn."""

from __future__ import annotations

from contextlib import suppress

from textual import work
from textual.command import CommandPalette
from textual.css.query import NoMatches


class Palette(CommandPalette):
    """Textual's own, whose list has no lines until it is drawn and which may be closed while it is filled."""

    ID = "--command-palette"

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        with suppress(NoMatches):
            await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)
