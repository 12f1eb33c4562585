"""Evaluate `output` blocks, which can refer to attributes that the server sets, and `check` blocks,
whose failure is a warning and never stops anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity
from ...core.resource import Output
from ...core.value import SecretRef
from ..declare.blocks import (
    CheckBlock,
    ConditionRule,
    Header,
    OutputBlock,
    check_rules,
    compile_rules,
)
from ..declare.modules import Module
from ..expressions.code import Code, Context, Env
from ..expressions.references import Data, Outcome
from ..values.conversion import lower_value, require_bounded
from ..values.faults import Deferred, EvalError, Poisoned, make_diagnostic
from ..values.value import (
    SECRET,
    SENSITIVE,
    SEQUENCES,
    Composite,
    Computed,
    MapVal,
    Marked,
    ObjectVal,
    SetVal,
    Val,
    add_marks,
    find_sealed,
    marks_of,
    unmark_deep,
)
from .arguments import Report
from .providers import DataInfo, DataPlan, compile_data
from .resources import OpenFields, Site


def evaluate_output(
    block: OutputBlock,
    code: Code,
    rules: tuple[ConditionRule, ...],
    env: Env,
    report: Report,
    title: str,
) -> Outcome:
    """What the caller of the module sees. title: the name of the output in messages."""
    faults = [*check_rules(rules, title, env)]
    for fault in faults:
        report(fault)
    if faults:
        return Poisoned()
    try:
        env.budget.charge(1, block.value)
        value = require_bounded(code(env), block.value, f'The output "{block.name}"')
    except EvalError as fault:
        report(make_diagnostic(fault, context=[f"while evaluating {title}"]))
        return Poisoned()
    except (Poisoned, Deferred) as outcome:
        return outcome
    if block.ephemeral:
        return add_marks(value, frozenset({SENSITIVE, SECRET}))
    return add_marks(value, frozenset({SENSITIVE})) if block.sensitive else value


def make_root_output(block: OutputBlock, outcome: Outcome, report: Report) -> Output | None:
    """What the state keeps; None after a fault. An output that needs a computed attribute which is
    not known yet is deferred as a whole."""
    try:
        if block.ephemeral:
            raise EvalError(
                Header(block.block),
                f'The output "{block.name}" cannot be ephemeral',
                "The outputs of the root folder are stored in the state.",
                "Remove ephemeral, or the output.",
            )
        if isinstance(outcome, Poisoned | Deferred):
            raise outcome
        return _make_output(block, outcome)
    except Deferred:
        return Output(block.name, None, block.sensitive, deferred=True)
    except EvalError as fault:
        report(make_diagnostic(fault, context=[f"while evaluating output.{block.name}"]))
    except Poisoned:
        pass
    return None


def _make_output(block: OutputBlock, value: Val) -> Output:
    # A whole secret counts as its reference, so it can be an output, if that is sensitive.
    value = replace_secrets(value)
    marks, sealed = marks_of(value), find_sealed(value)
    if SECRET in marks:
        raise EvalError(
            block.value,
            f'The output "{block.name}" is computed from a sensitive variable',
            "Outputs are stored in the state, which must not contain secrets.",
            "Remove it, or use nonsensitive(…) if everyone is allowed to see it.",
        )
    if (marks or isinstance(sealed, SecretRef)) and not block.sensitive:
        raise EvalError(
            block.value,
            f'The output "{block.name}" is sensitive',
            "It would be printed at the end of a run.",
            "Add sensitive = true, or use nonsensitive(…) if everyone is allowed to see it.",
        )
    if isinstance(sealed, Computed):
        raise sealed.defer()
    if (fields := _find_open_fields(value)) is not None:
        raise Deferred(fields.address, min(fields.left_out))
    return Output(block.name, lower_value(unmark_deep(value)), block.sensitive)


def _find_open_fields(value: Val) -> OpenFields | None:
    """The fields of an object in the value that the system has not filled yet."""
    if isinstance(value, Marked):
        return _find_open_fields(value.value)
    if isinstance(value, ObjectVal) and isinstance(value.fields, OpenFields):
        return value.fields
    children = value.children if isinstance(value, Composite) else ()
    return next(filter(None, map(_find_open_fields, children)), None)


def replace_secrets(value: Val) -> Val:
    """The value with each whole secret replaced by its reference."""
    if isinstance(value, Marked):
        if value.ref is not None:
            return value.ref
        return replace(value, value=replace_secrets(value.value))
    if not marks_of(value):
        return value
    if isinstance(value, SEQUENCES):
        items = tuple(map(replace_secrets, value.items))
        # A set has the marks of its elements and cannot contain references.
        return value if isinstance(value, SetVal) else replace(value, items=items)
    if isinstance(value, ObjectVal | MapVal):
        return replace(value, fields={n: replace_secrets(v) for n, v in value.fields.items()})
    return value


AskData = Callable[[DataPlan, Site], Outcome]
"""Answers a data source."""


class CompiledCheck(Struct, frozen=True):
    """A compiled check."""

    name: str
    data: DataPlan | None
    """The data source that only its assertions see."""
    rules: tuple[ConditionRule, ...]


def compile_check(
    block: CheckBlock,
    infos: Mapping[str, DataInfo],
    context: Context,
    module: Module,
    report: Report,
) -> CompiledCheck:
    """Compile a block. A data source of an unknown type has been reported, and is left out."""
    source = block.data
    plan = None
    if source is not None and source.address.type in infos:
        info = infos[source.address.type]
        plan = compile_data(source, info, context, module, report)
    return CompiledCheck(block.name, plan, compile_rules(block.assertions, context))


def evaluate_check(
    check: CompiledCheck, site: Site, data: Mapping[str, Mapping[str, Outcome]], ask_data: AskData
) -> None:
    """Report a warning for each assertion that is not met, and for a data source that cannot be
    read. data: the data sources of the module."""

    def warn(fault: Diagnostic) -> None:
        site.report(replace(fault, severity=Severity.WARNING))

    # A data source that cannot be read is a warning, too: the check exists to find that out.
    warning_site = replace(site, report=warn)
    env = site.env
    if check.data is not None:
        address = check.data.block.address
        answers_of_type = {
            **data.get(address.type, {}),
            address.name: ask_data(check.data, warning_site),
        }
        data_space = Data({**data, address.type: answers_of_type})
        env = Env({**env.roots, "data": data_space}, {}, env.budget)
    title = ".".join((*site.path, f"check.{check.name}"))
    for fault in check_rules(check.rules, title, env):
        warn(fault)
