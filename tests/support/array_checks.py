"""Shapes and types of arrays, checked in every call while the suite runs; `conftest` switches it on.

What has nothing to do with an array stays unchecked: folding ten thousand events through checked values takes ten
times as long and tests nothing about arrays.
"""

import ast
import re
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxtyping
from jaxtyping._import_hook import JaxtypingTransformer, _JaxtypingLoader

ROOT = Path(__file__).parents[2]
_RULES = ("algebra", "clause_pool", "matthews")
UNCHECKED = {"mecharule_ops.predicates.language", *(f"mecharule_ops.rules.{name}" for name in _RULES)}
"""Rules are learned in a million small calls of these; a run takes twice as long where each is checked."""
_ARRAY = r"\b(?:Bool|Float\d*|U?Int\d*|Shaped)\[|\bndarray\b"
"""A tensor of any type and shape is not among them: torch itself refuses what is none."""


def modules_with_arrays() -> Iterator[str]:
    """Names of the library's modules that annotate an array, with its shape or without."""
    for file, text in _sources():
        if re.search(_ARRAY, text):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if name not in UNCHECKED:
                yield name


def check_arrays() -> None:
    """Checks the modules that are imported from here on."""
    _Signatures.arrays = re.compile("|".join((_ARRAY, *(rf"\b{name}\b" for name in _aliases()))))
    _JaxtypingLoader.exec_module = _load  # type: ignore[method-assign]
    jaxtyping.install_import_hook(list(modules_with_arrays()), "beartype.beartype")


class _Signatures(JaxtypingTransformer):
    """Checks classes, and of the functions those whose signature names an array."""

    arrays: re.Pattern[str]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:  # noqa: N802
        given = node.args
        each = chain(
            given.posonlyargs, given.args, given.kwonlyargs, filter(None, (given.vararg, given.kwarg))
        )
        annotations = filter(None, (node.returns, *(argument.annotation for argument in each)))
        if any(self.arrays.search(ast.unparse(annotation)) for annotation in annotations):
            return super().visit_FunctionDef(node)
        self.generic_visit(node)
        return node


def _load(loader: _JaxtypingLoader, module: ModuleType) -> None:
    """Loads a checked module from its source.

    jaxtyping's own way looks for the compiled form of whatever the module imports under a name of its own, and so
    compiles torch and transformers anew in every process: half a minute of two workers.
    """
    tree = ast.parse(loader.get_data(loader.path), loader.path)
    checked = _Signatures(typechecker=loader._typechecker).visit(tree)
    ast.fix_missing_locations(checked)
    exec(SourceFileLoader.source_to_code(loader, checked, loader.path), module.__dict__)


def _aliases() -> Iterator[str]:
    """Names that the library gives to types of arrays."""
    for _, text in _sources():
        for name, value in re.findall(r"^([A-Z][a-z]\w*) = (.+)$", text, re.MULTILINE):
            if re.search(_ARRAY, value):
                yield name


def _sources() -> Iterator[tuple[Path, str]]:
    for file in sorted((ROOT / "mecharule_ops").rglob("*.py")):
        yield file, file.read_text(encoding="utf-8")
