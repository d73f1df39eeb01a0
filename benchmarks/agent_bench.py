"""How questions about a run are answered: by rules, through bad models, through a model in a file; what is left out.

    python -m benchmarks.agent_bench [--run FILE] [--model FILE.gguf --questions N] [--tokenizer FOLDER] [--write]

puts every question of `agent_questions.json` to a copy of a finished run (without one, to a small run that it makes of
the bundled model), and prints the table that `--write` keeps in `docs/agent.md`. A model in a file is slow: it is asked
N of the questions, evenly spread over their list. Deterministic but for that model and its times.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

from agent_faults import faults_row, forget  # noqa: E402
from bundled_run import BUNDLED, finish, new_run  # noqa: E402
from fact_talk import LIES, TRUTHS, case  # noqa: E402

from agent.answering import conversation, toolbox  # noqa: E402
from agent.answering.chat import answer  # noqa: E402
from agent.answering.prose import read  # noqa: E402
from agent.answering.referring import Topic, topic_of  # noqa: E402
from agent.llm.choice import Choice, make_model  # noqa: E402
from agent.llm.protocol import LanguageModel, OnText, Reply, Request, ToolCall, Usage, unheard  # noqa: E402
from agent.llm.retrying import Asker  # noqa: E402
from mecharule_ops.codec import canonical_json  # noqa: E402
from mecharule_ops.errors import MechaRuleError  # noqa: E402
from mecharule_ops.run.opening import findings_of, opened  # noqa: E402
from mecharule_ops.store.keys import LAST_ANSWER, TOPIC, LastAnswer  # noqa: E402
from mecharule_ops.store.run_store import RunStore  # noqa: E402
from tools import registry  # noqa: E402
from tools.registry import ToolResult  # noqa: E402

QUESTIONS = json.loads((ROOT / "benchmarks" / "agent_questions.json").read_text(encoding="utf-8"))[
    "questions"
]
PAGE = ROOT / "docs" / "agent.md"
BEGIN, END = "<!-- agent_bench -->", "<!-- /agent_bench -->"
DRAWS = 10
SEEDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question with a run's own units in it, and what a right answer holds."""

    question: str
    first: str | None
    group: str
    calls: list[tuple[str, dict[str, object]]] | None
    """None where an honest refusal is right."""
    facts: tuple[str, ...]


def asked(path: Path) -> list[Asked]:
    """The committed questions about this run."""
    with opened(str(path)) as run:
        first, second, *rest = (str(one.neuron) for one in findings_of(run).searches[0].agonists)
    found = {first, second, *rest}
    other = next(unit for channel in range(99) if (unit := f"m0.{channel}") not in found)
    names = {"UNIT": first, "SECOND": second, "OTHER": other, "LAYER": first[1:].split(".")[0]}

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            text = re.sub("|".join(names), lambda match: names[match[0]], value)
            return int(text) if value == "LAYER" else text
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    return [
        Asked(
            question=filled(each["ask"]),
            first=filled(each.get("first")),
            group=each["group"],
            calls=None if each["calls"] is None else [tuple(call) for call in filled(each["calls"])],
            facts=tuple(filled(each.get("facts", []))),
        )
        for each in QUESTIONS
    ]


def verdict(wanted: Asked, result: ToolResult) -> str:
    """`right`, `refused` (an honest refusal where there is an answer) or `wrong`."""
    data: Any = result.data
    called = [(one["tool"], _without_run(one["arguments"])) for one in data["tools"] if one["ok"]]
    answered = bool(data["understood"]) and "There is no answer to that" not in data["answer"]
    if not answered:
        return "right" if wanted.calls is None else "refused"
    if wanted.calls is None:
        return "wrong"
    holds = all(fact in data["answer"] for fact in wanted.facts)
    fits = len(called) == len(wanted.calls) and all(
        name == tool and dict(given) == arguments
        for (name, arguments), (tool, given) in zip(wanted.calls, called, strict=True)
    )
    return "right" if fits and holds else "wrong"


def _without_run(arguments: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in arguments.items() if key != "run"}


class Bad:
    """A model that answers badly, always in the same way."""

    name = "openai/bad"

    def __init__(self, say: Callable[[Request], Reply]) -> None:
        self._say = say
        self.first: list[Request] = []

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        if request.purpose == "question" and len(request.turns) == 1:
            self.first.append(request)
        return self._say(request)


def _text(text: str) -> Callable[[Request], Reply]:
    return lambda request: Reply(text=text, usage=Usage(input_tokens=1, output_tokens=1))


def _call(name: str) -> Callable[[Request], Reply]:
    return lambda request: Reply(text="", calls=(ToolCall(id="1", name=name, arguments={}),))


BAD: dict[str, Callable[[Request], Reply]] = {
    "raw JSON": _text('{"foo": {"bar": 1}}'),
    "prose only": _text("The unit computes all carries; it flips 99 % of them."),
    "wrong tool": _call("rm"),
    "loops": _call("neurons"),
    "empty": _text(""),
    "10,000 tokens": _text("It flips 77 examples. " * 2500),
    "forged facts": _text("It flips nearly all ⟦f77⟧ [c:deadbeef0000]."),
}


def through(model: LanguageModel, path: Path, questions: list[Asked]) -> tuple[list[str], list[ToolResult]]:
    """Verdicts and answers of every question put through a model; what it adds may take nothing away."""
    choice = Choice(spec=model.name, why="chosen by --llm", base_url="http://127.0.0.1:1")
    results = []
    for one in questions:
        BY_RULES.begin(path)
        if one.first:
            conversation.ask(str(path), one.first)
        asker = Asker(model=model, sleep=lambda seconds: None, most_requests=50)
        results.append(answer(str(path), one.question, asker, choice, lambda line: None))
    return [_model_verdict(one, result) for one, result in zip(questions, results, strict=True)], results


def _model_verdict(wanted: Asked, result: ToolResult) -> str:
    """As `verdict`; an answer that the model alone gave counts as refused where it rests on facts and is not wanted."""
    if "understood" in result.data:
        return verdict(wanted, result)
    return "right" if wanted.calls is None and result.data["verified"] else "refused"


def offline(path: Path, questions: list[Asked]) -> tuple[list[str], list[ToolResult]]:
    """The same without any model."""
    results = []
    for one in questions:
        BY_RULES.begin(path)
        if one.first:
            conversation.ask(str(path), one.first)
        results.append(conversation.ask(str(path), one.question))
    return [verdict(one, result) for one, result in zip(questions, results, strict=True)], results


class ByRules:
    """Answers by rules, each made once: through nine models the answer by rules is the same.

    A question is known by what was asked before it, since a follow-up means another unit after another question.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[ToolResult, Topic]] = {}
        self._ask, self._before = conversation.ask, ""

    def begin(self, path: Path) -> None:
        """No earlier answer stands before the next question."""
        self._before = ""
        forget(path)

    def __call__(self, path: str, question: str, *rest: Any, **more: Any) -> ToolResult:
        key = (self._before, question)
        if key not in self._known:
            result = self._ask(path, question, *rest, **more)
            with opened(path) as run:
                self._known[key] = result, topic_of(run)
        self._before = question
        result, topic = self._known[key]
        with RunStore.open(Path(path)) as store:
            store.put(TOPIC, topic.record())
            cited = LastAnswer(question=topic.question, certificates=list(topic.certificates))
            store.put(LAST_ANSWER, cited)
        return result


BY_RULES = ByRules()


def call_once() -> None:
    """Makes every tool compute a result once: the same question through eight models is the same call.

    `verify last` is left out, since what it verifies is no argument of it.
    """
    known: dict[str, ToolResult | MechaRuleError] = {}

    def call(name: str, given: Mapping[str, object], tell: registry.Tell = lambda line: None) -> ToolResult:
        key = canonical_json([name, dict(given)])
        if key not in known or name == "verify":
            try:
                known[key] = registry.call(name, given, tell)
            except MechaRuleError as error:
                known[key] = error
        result = known[key]
        if isinstance(result, MechaRuleError):
            raise result
        return result

    for module in (conversation, toolbox):
        module.call = call  # type: ignore[attr-defined]


def shown_badly(results: list[ToolResult]) -> int:
    """Answers that hold raw JSON, or the same sentence twice."""
    return sum(_is_bad(str(result.data["answer"])) for result in results)


def _is_bad(text: str) -> bool:
    said = [part for part in re.split(r"(?<=\])\.\s", text) if part.strip()]
    return bool(re.search(r"\{\s*[\"']", text)) or len(said) != len(set(said))


def tokens(request: Request, count: Callable[[str], int]) -> int:
    """Tokens of a request: rules, turns and the tools, each in its line."""
    return count(request.transcript()) + count("\n".join(one.line for one in request.tools))


def counter(folder: str | None) -> tuple[str, Callable[[str], int]]:
    """What counts tokens: a tokenizer in a folder, else three characters a token, which is too many."""
    if folder is None:
        return "3 characters a token", lambda text: len(text) // 3
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return f"tokens of {Path(folder).name}", lambda text: len(tokenizer(text)["input_ids"])


def prose_rows() -> Iterator[tuple[str, str, str]]:
    """Lies of which anything but whole facts is shown, and sentences left out that state nothing."""
    lies = [(case(draw), lie, draw) for lie in LIES.values() for draw in range(DRAWS)]
    replies = [read(lie(told, random.Random(draw)), told.facts) for told, lie, draw in lies]
    passed = sum(bool(reply.sentence) or not reply.left_out for reply in replies)
    yield f"lies shown, of {len(lies)} in {len(LIES)} kinds", "0 of ≥ 600", str(passed)
    truths = [(case(seed), truth) for seed in range(SEEDS) for truth in TRUTHS]
    lost = sum(not read(truth(told), told.facts).sentence for told, truth in truths)
    yield f"sentences left out that state nothing, of {len(truths)} in {len(TRUTHS)} wordings", "0", str(lost)


def local_rows(
    path: Path, model: str, questions: list[Asked], alone: list[str]
) -> Iterator[tuple[str, str, str]]:
    """A model in a file: right answers, and what they cost."""
    made = make_model(Choice(spec=f"local/{model}", why=""))
    assert made is not None
    began = time.monotonic()
    verdicts, results = through(made, path, questions)
    seconds = (time.monotonic() - began) / len(questions)
    worse = sum(had == "right" and has != "right" for had, has in zip(alone, verdicts, strict=True))
    yield (
        f"{Path(model).name} in this process, {len(questions)} questions: right / worse than offline / shown badly",
        f"{_share(alone)} / 0 / 0",
        f"{_share(verdicts)} / {worse} / {shown_badly(results)}",
    )
    added = sum("added" in result.data for result in results)
    read = [cast(int, result.data.get("input_tokens", 0)) for result in results]
    written = [cast(int, result.data.get("output_tokens", 0)) for result in results]
    yield (
        "… something added that held / tokens read and written a question (median) / seconds a question (mean)",
        "measured",
        f"{added} / {median(read):,.0f} and {median(written):,.0f} / {seconds:.0f}",
    )


def sample(count: int | None, questions: list[Asked]) -> list[int]:
    """Places of `count` questions, evenly spread; all of them without a count."""
    if count is None or count >= len(questions):
        return list(range(len(questions)))
    return [place * len(questions) // count for place in range(count)]


def rows(path: Path, given: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """(figure, goal, measured)."""
    questions = asked(path)
    n = len(questions)
    alone, results = offline(path, questions)
    _tell(questions, alone)
    yield (
        f"offline router: right tool and arguments, or an honest refusal ({n} questions)",
        "≥ 95 %",
        _share(alone),
    )
    yield "… answered wrongly with confidence", "0", str(alone.count("wrong"))
    yield "… raw JSON, or a sentence twice", "0", str(shown_badly(results))
    first: list[Request] = []
    right, worse, bad_looks = [], 0, 0
    for say in BAD.values():
        bad = Bad(say)
        verdicts, results = through(bad, path, questions)
        first += bad.first
        right.append(verdicts.count("right"))
        worse += sum(had == "right" and has != "right" for had, has in zip(alone, verdicts, strict=True))
        bad_looks += shown_badly(results)
    yield (
        f"through {len(BAD)} models that answer badly ({', '.join(BAD)}): right at least / worse than offline / "
        "shown badly",
        "as offline / 0 / 0",
        f"{min(right)}/{n} each / {worse} / {bad_looks}",
    )
    unit, count = counter(given.tokenizer)
    most = max(tokens(request, count) for request in first)
    yield f"prompt tokens of a first turn, at most ({unit})", "≤ 1,200", f"{most:,}"
    yield from prose_rows()
    yield faults_row(path)
    if given.model is not None:
        places = sample(given.questions, questions)
        yield from local_rows(
            path, given.model, [questions[at] for at in places], [alone[at] for at in places]
        )


def _share(verdicts: list[str]) -> str:
    return (
        f"{verdicts.count('right')}/{len(verdicts)} ({100 * verdicts.count('right') / len(verdicts):.1f} %)"
    )


def _tell(questions: list[Asked], verdicts: list[str]) -> None:
    for one, word in zip(questions, verdicts, strict=True):
        if word != "right":
            print(f"{word}: {one.group}: {one.question}", file=sys.stderr)


def table(made: list[tuple[str, str, str]]) -> str:
    """The rows as Markdown."""
    lines = ["| figure | goal | measured |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in made)])


def write(text: str) -> None:
    """Puts the table between its marks in the page."""
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--run", metavar="FILE", help="a finished run of the bundled model, copied before use"
    )
    options.add_argument("--model", metavar="FILE", help="a GGUF file to be asked in this process")
    options.add_argument("--questions", metavar="N", type=int, help="how many the model in a file is asked")
    options.add_argument("--tokenizer", metavar="FOLDER", help="whose tokens are counted")
    options.add_argument("--write", action="store_true", help="keep the table in docs/agent.md")
    given = options.parse_args()
    call_once()
    conversation.ask = BY_RULES  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b00d.mecharule"
        if given.run:
            shutil.copy(given.run, path)
        else:
            with new_run(path, BUNDLED) as run:
                finish(run)
        made = []
        for row in rows(path, given):
            made.append(row)
            print(" | ".join(row), flush=True)
    if given.write:
        write(table(made))


if __name__ == "__main__":
    main()
