"""Tool calls that a model wrote into its text: read where they give exactly one listed tool, else left alone."""

from __future__ import annotations

import pytest

from agent.answering.toolbox import spec_of
from agent.llm.calls import calls_in, looks_like_a_call

TOOLS = (spec_of("why"), spec_of("missed"), spec_of("flip"))
WHY = {"neuron": "m1.3"}


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "why", "arguments": {"neuron": "m1.3"}}',
        '```json\n{"tool": "why", "arguments": {"neuron": "m1.3"}}\n```',
        'I will look.\n```\n{"function": "why", "parameters": {"neuron": "m1.3"}}\n```\nThen I answer.',
        '<tool_call>{"name": "why", "arguments": {"neuron": "m1.3"}}</tool_call>',
        "{'name': 'why', 'arguments': {'neuron': 'm1.3'}}",
        '{"name": "why", "arguments": {"neuron": "m1.3",},}',
        '{"name": "why", "arguments": "{\\"neuron\\": \\"m1.3\\"}"}',
        '{"type": "function", "function": {"name": "why", "arguments": {"neuron": "m1.3"}}}',
        '{"thought": "let me see", "action": "why", "action_input": {"neuron": "m1.3"}}',
        '{"tool": "why", "neuron": "m1.3"}',
        '[{"name": "why", "arguments": {"neuron": "m1.3"}}]',
        'why(neuron="m1.3")',
        '{"name": "why", "arguments": {"neuron": "m1.3"}} {"name": "why", "arguments": {"neuron": "m1.3"}}',
    ],
)
def test_a_call_is_read_however_it_is_wrapped(text: str) -> None:
    """Fences, tags, Python's quoting, a comma too many, other keys, extra fields beside the call."""
    (call,) = calls_in(text, TOOLS)
    assert (call.name, dict(call.arguments)) == ("why", WHY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ablating it flips outcomes.",
        '{"name": "rm", "arguments": {"path": "/"}}',
        '{"name": "why", "arguments": {}}',
        '{"name": "why", "arguments": {"neuron": "m1.3", "yes": true}}',
        '{"name": "why", "arguments": {"neuron": "m1.3"}} {"name": "missed", "arguments": {}}',
        '{"name": "why", "arguments": {"neuron": "m1.3"}',
        'why("m1.3")',
        "why(neuron=__import__('os').system('x'))",
        "{" * 5000,
    ],
)
def test_what_is_no_single_fitting_call_is_none(text: str) -> None:
    """An unknown tool, missing or strange arguments, two calls, broken text; nothing is evaluated."""
    assert calls_in(text, TOOLS) == ()


def test_machine_text_is_told_from_words() -> None:
    """What must not be shown to a person."""
    assert looks_like_a_call('{"foo": 1}')
    assert looks_like_a_call("```json\n{}")
    assert looks_like_a_call('Sure: "tool": "why"')
    assert not looks_like_a_call("It flips ⟦f1⟧, as the tool says.")
