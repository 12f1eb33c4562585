"""The `kafkaform` block: which version may read the folder, and where its state lives."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.diagnostics import Diagnostic, Diagnostics, Range
from ..core.value import EMPTY, FrozenMap, Value
from ..syntax.nodes import Block, Expression
from .blocks import BACKEND, attribute, header, shape_faults, single
from .code import Context
from .convert import lower
from .declare import declare
from .evaluate import context as make_context
from .faults import EvalError, as_diagnostic, error
from .functions import function_table
from .tree import Tree
from .values import sealed
from .variables import constant


@dataclass(frozen=True, slots=True)
class Settings:
    """required_version: as written; backend: its kind, None for the default; options: its
    arguments; range: of the backend block."""

    required_version: str | None = None
    backend: str | None = None
    options: FrozenMap = EMPTY
    range: Range | None = None


def settings(tree: Tree) -> tuple[Settings, Diagnostics]:
    """What must be known before variables are: only constants may stand there. Faults of the
    structure are those of `build` and are not repeated here."""
    blocks = declare(tree)[0].settings
    if not blocks:
        return Settings(), ()
    context = make_context(function_table())
    faults: list[Diagnostic] = []
    block = blocks[0]
    version = _constant(attribute(block, "required_version"), context, faults)
    if version is not None and not isinstance(version, str):
        faults.append(error(header(block), "required_version must be a string"))
    backend, problems = single(block, "backend")
    faults.extend(problems)
    if backend is None:
        return Settings(version if isinstance(version, str) else None), tuple(faults)
    faults.extend(shape_faults(backend, BACKEND))
    return (
        Settings(
            version if isinstance(version, str) else None,
            backend.labels[0].text if backend.labels else None,
            _options(backend, context, faults),
            header(backend).range,
        ),
        tuple(faults),
    )


def _options(block: Block, context: Context, faults: list[Diagnostic]) -> FrozenMap:
    for inner in block.body.blocks:
        faults.append(error(header(inner), "A backend block holds arguments only"))
    return FrozenMap(
        {
            name: _constant(item.value, context, faults)
            for name, item in block.body.attributes.items()
        }
    )


def _constant(node: Expression | None, context: Context, faults: list[Diagnostic]) -> Value:
    if node is None:
        return None
    try:
        value = constant(node, context)
        if sealed(value) is not None:
            raise EvalError(node, "A secret cannot stand here")
        return lower(value)
    except EvalError as fault:
        faults.append(as_diagnostic(fault, context=["while reading the kafkaform block"]))
        return None
