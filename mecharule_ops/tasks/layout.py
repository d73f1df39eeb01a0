"""Which columns of a table are the prompt, what is right and what is wrong; rows of one prompt made one record.

A column is named by a setting or has a name that published sets use; names match without regard to case. What no rule
can read is left out and said; a row without a prompt or an answer is bad, and all bad rows are counted.
"""

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from mecharule_ops.errors import UsageError, did_you_mean
from mecharule_ops.loading import model_names
from mecharule_ops.loading.shape import read_tokenizer
from mecharule_ops.numbers import plural
from mecharule_ops.plain_text import alike, typed_path
from mecharule_ops.tasks.column_words import WORDS
from mecharule_ops.tasks.from_file import HUB, is_separated, read_rows, wanting
from mecharule_ops.tasks.text import TextTask

EXAMPLE_SETS = ("ioi", "agreement", "greater-than", "hans")
"""Tables that come with the package; `benchmarks/example_sets.py` makes them."""
_SETS = Path(__file__).with_name("example_sets")
PROMPT, ANSWER, ANSWERS, TARGET, FOIL = "prompt", "answer", "answers", "target", "foil"
OR = "|"
"""Between several answers, targets or foils of one row; none holds it."""
BEYOND, TOKEN, LAST = ">", "token:", "last:"
"""Before the name of a column of numbers: what is right is a larger number of as many digits (9 beside 12 is 09), or
the token that has this one; of texts: it is the last word, and the prompt what comes before."""
_FINAL = "####"
"""What stands before the final answer of a worked solution."""
COLUMN = re.compile(r"\{([^{}]+)\}")
_SHORT = r"\d+|[^\W_]"
"""Where numbers or letters name all options, no word names one: `option_source` is none beside `option1`."""
_NO_OBJECT = 'none: no row is an object, such as {"prompt": "2+2=", "answer": "4"}'

_Rows = dict[int, dict[str, Any]]
"""Rows by their numbers in the file."""


class Laid(NamedTuple):
    """Rows with columns `prompt` and `answer`, `answers`, or `target` and `foil`, and what was made of the file."""

    rows: list[dict[str, Any]]
    numbers: list[int]
    """Where each row, or the first that it is made of, stands in the file."""
    told: list[str]
    template: str
    """The prompt, its columns in braces as the rows name them."""


class _Roles(NamedTuple):
    parts: dict[str, str]
    """The columns of the template, as it and as the table names them."""
    prompt: str
    right: str
    foil: str
    sentences: bool
    """Whether what is right, and wrong, are whole sentences: the prompt is the words that all begin with."""


@dataclass(frozen=True, kw_only=True)
class LaidTable(TextTask):
    """A task over the rows of a file whose columns are named by settings, or by themselves."""

    file: str = ""
    """The table, or the name of an example set."""
    template: str = ""
    """The prompt of a row, with its columns in braces; empty takes the column `prompt` as it stands."""
    prompt: str = ""
    """The column that the model reads; empty takes the one that is named so, or as published sets name it."""
    answer: str = ""
    """The column of what is right; empty as for `prompt`; `last:COLUMN`: its last word, behind the others."""
    target: str = ""
    """The same where a foil stands beside it; `>COLUMN`: any larger number of as many digits, 9 beside 12 being 09;
    `option{answer}`: the column whose name the row completes, those of another name being foils; `token:COLUMN`: the
    tokens of these numbers."""
    foil: str = ""
    """The column of what is wrong, or of its tokens' numbers, as for `target`."""
    tokenizer: str = ""
    """The model whose tokens these numbers are."""
    means: str = ""
    """What values of the answers' column stand for, each other one's being a foil: `1=are|have,0=is|has`."""
    drop: tuple[str, ...] = ()
    """Columns that are left out."""
    at: str = ""
    """Where an object of JSON has its rows: `data.samples`."""
    skip_bad: bool = False
    """Whether rows that cannot be used are left out."""
    where: str = ""
    """A predicate over the columns; rows where it does not hold are left out."""
    content: str = ""
    """Hash of the rows that a run was begun with; empty takes any."""

    @property
    def path(self) -> Path:
        """Where the table lies: as named, else of that name in this folder."""
        if self.file in EXAMPLE_SETS:
            return _SETS / f"{self.file}.jsonl"
        named = typed_path(self.file)
        here = Path(named.name)
        away = self.content and here.exists() and not (named.exists() or self.file.startswith(HUB))
        return here if away else named

    @cached_property
    def _laid(self) -> Laid:
        return self._lay()

    def _lay(self, chosen: Collection[int] | None = None, *, apart: bool = False) -> Laid:
        """The records of all rows, of those chosen by number alone, or `apart` a record a row.

        Raises `UsageError` where no column, or more than one, could be the prompt or what is right.
        """
        found = read_rows(self.path, self.at)
        columns = list(dict.fromkeys(name for row in found if isinstance(row, dict) for name in row if name))
        if COLUMN.search(self.target):
            columns += [name for name in (TARGET, FOIL) if name not in columns]
            parts = [re.escape(part) for part in COLUMN.split(self.target.lower())]
            for place, name in enumerate(COLUMN.findall(self.target)):
                (column,) = self._named(columns, "--target", [name])
                cells = {str(row.get(column)) for row in found if isinstance(row, dict)} - {"None", ""}
                short = all(re.fullmatch(_SHORT, each) for each in cells)
                parts[2 * place + 1] = f"(?:{_SHORT})" if short else ".+"
            like = re.compile("".join(parts)).fullmatch
            found = [_chosen(row, self.target, like) if isinstance(row, dict) else row for row in found]
        roles = self._roles(columns)
        subject = re.sub(r"[^.]+\Z", "subject", roles.prompt)
        used = {*roles.parts.values(), roles.prompt, roles.right, roles.foil} - {""}
        taken = {PROMPT, ANSWER, ANSWERS, TARGET, FOIL}
        faults = {at: why for at, row in enumerate(found, 1) if (why := self._fault(row, at, used, roles))}
        kept = {at: row for at, row in enumerate(found, 1) if at not in faults}
        holed = sum("{}" in str(row[roles.prompt]) for row in kept.values()) if subject in columns else 0
        gap = {subject} if 0 < holed == len(kept) else set[str]()
        faults |= {at: why for at, row in kept.items() if (why := self._fault(row, at, gap, roles))}
        kept = {at: row for at, row in kept.items() if at not in faults and (chosen is None or at in chosen)}
        dropped = {self._named(columns, "--drop", [each])[0] for each in self.drop}
        free = [name for name in columns if name not in used | dropped]
        left = {name: _unreadable([row.get(name) for row in kept.values()]) for name in free}
        left |= {name: f"another column is the {name}" for name in free if name in taken}
        told = []
        if not {roles.prompt, roles.right, roles.foil} <= taken | {""}:
            names = zip(("prompt", "right", "wrong"), (roles.prompt, roles.right, roles.foil), strict=True)
            of = f", numbers of tokens of {self.tokenizer}" if self.tokenizer else ""
            told = [f"Columns: {', '.join(f'{role}: {name}' for role, name in names if name)}{of}."]
        if 0 < holed < len(kept):
            told.append(f"{{}} stands in {holed:,} of {len(kept):,} prompts alone and is left as it is.")
        for name in gap:
            told.append(f"{{}} in {roles.prompt} is the {name}.")
            for row in kept.values():
                row[roles.prompt] = str(row[roles.prompt]).replace("{}", str(row[name]))
        widths = {len(str(row[roles.right])) for row in kept.values()} if self.target[:1] == BEYOND else set()
        if widths in ({1, 2}, {2, 3}) and roles.right not in roles.parts.values():
            told.append(f"Numbers of {roles.right} have {max(widths)} digits, the shorter a 0 in front.")
            for row in kept.values():
                row[roles.right] = str(row[roles.right]).zfill(max(widths))
        if gone := [f"{name} ({why})" for name, why in left.items() if why]:
            told.append(f"Left out, since no rule can read it: {', '.join(gone)}.")
        template = COLUMN.sub(lambda part: f"{{{roles.parts[part[1]]}}}", self.template) or f"{{{PROMPT}}}"
        free, bad = [name for name, why in left.items() if not why], len(faults)
        rows = self._records(kept, roles, free, template, faults, apart)
        if 0 < len(rows) < (good := len(kept) + bad - len(faults)):
            clash = sum(OR in str(row.get(TARGET, row.get(ANSWERS, ""))) for row in rows.values())
            of = f", and of {clash:,} any of several answers is right" if clash else ""
            told.append(
                f"{good:,} rows are {plural(len(rows), 'prompt')}, a record each with its first row's columns{of}."
            )
        told += self.sifted(faults, len(found)) if faults else []
        return Laid([*rows.values()], [*rows], told, template)

    def _roles(self, columns: Sequence[str]) -> _Roles:
        """Which columns are the prompt, or parts of it, what is right and what is wrong. Raises `UsageError`."""
        named = partial(self._named, columns)
        parts = {name: named("--prompt-template", [name])[0] for name in COLUMN.findall(self.template)}
        if self.template and not parts:
            raise UsageError(f"expected columns in braces in the prompt template, got {self.template!r}")
        # A mark that an option does not know stays in the name, which no column has.
        chosen = re.sub(f"^({TOKEN}|{LAST})", "", self.answer)
        chosen = chosen or re.sub(f"^({BEYOND}|{TOKEN})", "", self.target)
        foil = self.foil.removeprefix(TOKEN)
        said = [[name for name in (chosen, foil) if name]] if chosen else WORDS["layouts"]["right"]
        said = [[TARGET, FOIL]] if COLUMN.search(chosen) else said
        right, foil = (*named("--answer, or --target and --foil", *said), "")[:2]
        paired = foil and not (self.prompt or parts) and right.lower() in ("sentence_good", "sent_more")
        sentences = bool(paired) or self.answer.startswith(LAST)
        if parts or (sentences and not self.prompt):
            return _Roles(parts, "", right, foil, sentences)
        prompts = [[self.prompt]] if self.prompt else WORDS["layouts"]["prompts"]
        (prompt,) = named("--prompt, or several with --prompt-template", *prompts)
        return _Roles(parts, prompt, right, foil, sentences)

    def _records(
        self, kept: _Rows, roles: _Roles, more: Sequence[str], template: str, bad: dict[int, str], apart: bool
    ) -> _Rows:
        """A row a prompt, by its first number, with all that is right or wrong; bad rows are added to `bad`."""
        records: dict[object, Any] = {}
        for number, row in kept.items():
            rights, wrongs = self._sides(row, roles.right, roles.foil)
            start = 0
            if roles.sentences:
                start = len(re.sub(r"\s*\S*\Z", "", rights[0][: alike(rights + wrongs)]))
            shown = {**row, roles.right: rights[0][:start]} if roles.sentences and rights else row
            made = {name: shown[name] for name in roles.parts.values()}
            made = made or {PROMPT: shown[roles.prompt or roles.right]}
            asked = filled(template, made)
            key = number if apart else asked.strip()
            old = records.get(key, (number, made, {name: row[name] for name in more}, {}, {}))
            rights, wrongs = (
                [*known, *(text[start:] for text in side)]
                for known, side in zip(old[3:], (rights, wrongs), strict=True)
            )
            if {*rights} & {*wrongs}:
                bad[number] = self._said("foils that are no targets", number, row[roles.right])
            elif not rights or not all(text.strip() for text in (asked, *rights, *wrongs)):
                bad[number] = self._said("words to read and an answer", number, row[roles.right])
            else:
                records[key] = (*old[:3], dict.fromkeys(rights), dict.fromkeys(wrongs))
        several = roles.right.lower() == ANSWERS or any(len(one[3]) > 1 for one in records.values())
        rows = {}
        for number, made, extra, *both in records.values():
            if (roles.foil or several) and any(OR in text for side in both for text in side):
                bad[number] = self._said(f"no {OR} in an answer", number, kept[number][roles.right])
                continue
            right, wrong = map(OR.join, both)
            sides = {TARGET: right, FOIL: wrong} if wrong else {ANSWERS if several else ANSWER: right}
            rows[number] = {**made, **sides, **extra}
        return rows

    def _said(self, expected: str, number: int, got: object, column: str = "") -> str:
        at = f", column {column!r}" if column else ""
        return f"expected {expected} in row {number}{at} of {self.path}, got {got!r}"

    def _fault(self, row: Any, number: int, used: set[str], roles: _Roles) -> str:
        """What is wrong with a row; empty where it can be used."""
        if not isinstance(row, dict) or None in row:
            return self._said("a cell for each column", number, row)
        for name in sorted(used):
            cell = row.get(name)
            for each in cell if isinstance(cell, list) and name not in roles.parts.values() else [cell]:
                if fault := wanting(each):
                    return self._said(fault, number, each, name)
            if (name, self.target[:1]) == (roles.right, BEYOND) and not re.fullmatch(r"\d{1,3}", str(cell)):
                return self._said("a whole number below 1,000", number, cell, name)
            if not str(cell).strip() or (cell == [] and name in (roles.right, roles.foil)):
                return self._said("a prompt and an answer", number, cell, name)
        return ""

    def _named(self, columns: Sequence[str], option: str, *known: Sequence[str]) -> Sequence[str]:
        """Of the known lists of names the longest that the table has, without regard to case. Raises `UsageError`."""
        lower = {name.lower(): name for name in columns} | {name: name for name in columns}
        found = [names for names in known if all(name in lower or name.lower() in lower for name in names)]
        longest = [names for names in found if len(names) == max(map(len, found))]
        plain = [names for names in longest if names == known[0]] or longest
        if len(plain) != 1:
            wanted, got = " or ".join(map(repr, known[0])), ", ".join(columns) or _NO_OBJECT
            near = did_you_mean(known[0][0], columns)
            bare = is_separated(self.path) and re.search(r"\s|\b\d", "".join(columns))
            line = ", or write a first line of names" if bare else ""
            raise UsageError(
                f"expected a column {wanted} in {self.path}, got {got}{near}; name it with {option}{line}"
            )
        return [lower.get(name) or lower[name.lower()] for name in plain[0]]

    def _sides(self, row: Mapping[str, Any], right: str, foil: str) -> tuple[list[str], list[str]]:
        """What is right and what is wrong in a row."""
        cell = row[right]
        if self.means:
            pairs = [one.partition("=") for one in self.means.split(",")]
            words = [(key, word) for key, _, text in pairs for word in text.split(OR)]
            rights = [word for key, word in words if key == str(cell)]
            return rights, [word for key, word in words if key != str(cell)]
        if self.target.startswith(BEYOND):
            every = [f"{number:0{len(str(cell))}}" for number in range(10 ** len(str(cell)))]
            return every[int(cell) + 1 :], every[: int(cell) + 1]
        found = self._texts(right, cell, self.answer or self.target)
        found = [text.rpartition(_FINAL)[2].strip() if _FINAL in text else text for text in found]
        return found, self._texts(foil, row[foil], self.foil) if foil else []

    def _texts(self, name: str, cell: Any, said: str) -> list[str]:
        """What a cell says, as it is `said` how to read its column; nothing where that cannot be."""
        if said.startswith(TOKEN):
            return [self._tokens.decode([int(cell)])] if str(cell).isdecimal() else []
        return [str(cell).rstrip('.!?"” \t\n')] if said.startswith(LAST) else _several(name, cell)

    @cached_property
    def _tokens(self) -> Any:
        if not self.tokenizer:
            raise UsageError(f"expected the model of the tokens of {TOKEN}COLUMN, got none; name it with -m")
        return read_tokenizer(model_names.resolve(self.tokenizer))


def filled(template: str, row: Mapping[str, Any]) -> str:
    """A template with a row's cells in place of their names."""
    return COLUMN.sub(lambda part: str(row[part[1]]), template)


def _chosen(row: dict[str, Any], template: str, like: Callable[[str], object]) -> dict[str, Any]:
    """A row whose target is in the column, or place of a list, that a cell names; the others `like` it are foils."""
    cells = {name.lower(): cell for name, cell in row.items() if name}
    lists = {name: cell for name, cell in cells.items() if isinstance(cell, list)}
    cells |= {f"{name}.{at}": one for name, every in lists.items() for at, one in enumerate(every)}
    named = COLUMN.sub(lambda part: str(cells.get(part[1].lower())), template).lower()
    options = {name: cell for name, cell in cells.items() if like(name) and name not in lists}
    return {**row, TARGET: options.pop(named, None), FOIL: list(options.values())}


def _unreadable(cells: Sequence[object]) -> str:
    """Why no rule can read a column; empty where one can."""
    empty = sum(cell is None or cell != cell for cell in cells)
    kinds = sorted({type(cell).__name__ for cell in cells if wanting(cell)})
    return f"empty in {plural(empty, 'row')}" if empty else " or ".join(kinds)


def _several(name: str, cell: Any) -> list[str]:
    """The texts of a cell: those of a list, of one that is written out, or what stands between `|` or `;`."""
    if isinstance(cell, str) and name.lower().endswith("s"):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if cell.startswith("[") and isinstance(listed := ast.literal_eval(cell), list):
                return list(map(str, listed))
        cell = re.split(r"[|]" if OR in cell or name.lower() == ANSWERS else r";\s*", cell)
    return list(map(str, cell)) if isinstance(cell, list) else [str(cell)]
