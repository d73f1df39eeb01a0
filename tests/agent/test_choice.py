"""Which model is asked and why; the scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel
from tiny_gguf import laid_out, write_gguf

from agent.chat_models import chat_model, choose, provider_of, scrub
from agent.scripted import ScriptedModel
from mecharule_ops.errors import ModelUnavailable, UsageError

CANARY = "sk-canary-0123456789abcdef"


class Words(BaseModel):
    words: list[str]


def _environment(folder: Path, config: Any = None, **more: str) -> dict[str, str]:
    path = folder / "config.json"
    if config is not None:
        path.write_text(config if isinstance(config, str) else json.dumps(config))
    return {"MECHARULE_CONFIG": str(path), **more}


def _script(folder: Path, *replies: dict[str, Any]) -> ScriptedModel:
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": list(replies)}))
    return ScriptedModel.of(path)


def test_flag_beats_environment_beats_config_beats_none(tmp_path: Path) -> None:
    """Each source wins over those after it and is named; a key alone is no order to send data out, and not shown."""
    key = {"ANTHROPIC_API_KEY": CANARY, "OPENAI_API_KEY": CANARY}
    environment = _environment(tmp_path, {"llm": "openai/c"}, MECHARULE_LLM="anthropic/b", **key)
    assert str(choose("mock:a.json", environment)) == "LLM: mock:a.json: chosen by --llm"
    assert choose("none", environment).spec == "none"
    assert str(choose(None, environment)) == "LLM: anthropic/b: chosen by MECHARULE_LLM"
    del environment["MECHARULE_LLM"]
    assert str(choose(None, environment)) == "LLM: openai/c: chosen by config.json"
    nothing = choose(None, {"MECHARULE_CONFIG": str(tmp_path / "absent.json")})
    assert str(nothing) == "LLM: none (offline): no model is named by --llm, MECHARULE_LLM or the config file"
    alone = str(choose(None, {"MECHARULE_CONFIG": str(tmp_path / "absent.json"), **key}))
    assert "ANTHROPIC_API_KEY is set but no model is named; use --llm anthropic/MODEL" in alone
    assert CANARY not in alone


def test_a_model_in_a_file_answers_behind_llama_cpp(tmp_path: Path) -> None:
    """The real server over a tiny file, on the loopback; questions each on an event loop of its own."""
    file = write_gguf(tmp_path / "tiny.gguf", laid_out())
    for _ in range(3):
        model: Any = chat_model(choose(f"local/{file}", {}), {})
        reply: Any = asyncio.run(model.bind(max_tokens=4).ainvoke("12"))
        assert reply.usage_metadata["output_tokens"] > 0


def test_a_missing_key_is_an_error_by_flag_and_a_fallback_otherwise(tmp_path: Path) -> None:
    """Asked for on the command line it fails with exit code 3; from elsewhere it falls back and says so."""
    for spec, said in (("anthropic/a", "KEY is not set"), ("local/no.gguf", "is no file")):
        with pytest.raises(ModelUnavailable, match=said):
            choose(spec, _environment(tmp_path))
    fallen = choose(None, _environment(tmp_path, MECHARULE_LLM="openai/b"))
    assert fallen.spec == "none"
    assert fallen.why == "openai/b chosen by MECHARULE_LLM, but OPENAI_API_KEY is not set"


def test_a_local_server_needs_no_key(tmp_path: Path) -> None:
    """A base URL from environment or config file is enough for the OpenAI kind."""
    by_config = choose("openai/q", _environment(tmp_path, {"base_url": "http://localhost:1/v1"}))
    assert by_config.base_url == "http://localhost:1/v1"
    by_variable = choose("openai/q", {"OPENAI_BASE_URL": "http://localhost:2/v1", **_environment(tmp_path)})
    assert by_variable.base_url == "http://localhost:2/v1"
    assert chat_model(by_variable, {}) is not None


@pytest.mark.parametrize("spec", ["", "anthropic", "anthropic/", "mock:", "mock", "gpt", "/x", "none/x"])
def test_a_name_of_no_model_is_a_usage_error(spec: str) -> None:
    """The four forms are named."""
    with pytest.raises(
        UsageError, match=r"expected none, mock:FILE, local/FILE\.gguf, anthropic/MODEL or openai/MODEL"
    ):
        provider_of(spec)


@pytest.mark.parametrize("config", ["{", {"api_key": CANARY}, {"price": [1]}, {"price": [-1, 2]}, "\x00"])
def test_an_unreadable_config_file_is_one_line_without_its_content(tmp_path: Path, config: Any) -> None:
    """A key in the config file is refused, and not repeated."""
    with pytest.raises(UsageError, match="keys come from the environment only") as caught:
        choose(None, _environment(tmp_path, config))
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_price_makes_a_cost(tmp_path: Path) -> None:
    """3 and 15 dollars a million: 1,000 and 200 tokens cost 0.6 cents. Without a price the cost is unknown."""
    choice = choose("mock:a", _environment(tmp_path, {"price": [3, 15]}))
    assert choice.dollars(1000, 200) == pytest.approx(0.006)
    assert choose("mock:a", {"MECHARULE_CONFIG": str(tmp_path / "absent.json")}).dollars(1000, 200) is None


def test_keys_are_cut_out_of_any_text() -> None:
    """Values of the environment, shapes of keys and bearer tokens; newlines and length too."""
    environment = {"MY_API_KEY": "hunter22-secret", "HOME": "/home/me", "SHORT_KEY": "abc"}
    text = scrub(
        f"bad hunter22-secret in /home/me\nAuthorization: Bearer {CANARY} abc " + "x" * 500, environment
    )
    assert not [gone for gone in ("hunter22", CANARY, "\n") if gone in text]
    assert ("/home/me" in text, "abc" in text, len(text)) == (True, True, 200)


def _human(*texts: str) -> list[HumanMessage]:
    return [HumanMessage(text) for text in texts]


def test_the_scripted_model_answers_by_content(tmp_path: Path) -> None:
    """The first reply whose texts fit; asked again it says the same; what was found replaces its name."""
    model = _script(
        tmp_path,
        {"when": ["why"], "unless": ["c:"], "calls": [{"name": "why", "arguments": {"unit": "m4.1"}}]},
        {"when": ["why"], "find": "c:(?P<id>[0-9a-f]+)", "text": "It flips [c:$id], at $5."},
        {"when": ["words"], "json": {"words": ["a", "b"]}},
    )
    first = model.invoke(_human("why?"))
    assert first.tool_calls[0]["args"] == {"unit": "m4.1"}
    assert model.invoke(_human("why?")).tool_calls == first.tool_calls
    second = model.invoke([SystemMessage("Be brief."), *_human("why?", "see c:aa and c:bb")])
    assert second.text == "It flips [c:aa], at $5."
    assert second.usage_metadata is not None
    assert second.usage_metadata["output_tokens"] == 5
    assert model.with_structured_output(Words).invoke(_human("words"))["parsed"] == Words(words=["a", "b"])
    with pytest.raises(ModelUnavailable, match=r"has no reply for .*other"):
        model.invoke(_human("other"))


@pytest.mark.parametrize(
    "content", ["", "[]", '{"replies": 1}', '{"replies": [{"tekst": ""}]}', '{"replies": [{"find": "("}]}']
)
def test_a_script_that_does_not_read_is_one_line(tmp_path: Path, content: str) -> None:
    """The file and what is wrong with it."""
    path = tmp_path / "s.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"expected a script of a mock model in .*s\.json") as caught:
        ScriptedModel.of(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="No such file"):
        ScriptedModel.of(tmp_path / "absent")
