"""Evaluate `check` blocks: assertions whose failure is a warning and never stops anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity
from ..declare.conditions import Rule, check_rules, compile_rules
from ..declare.declarations import CheckBlock
from ..expressions.code import Context, Env
from ..expressions.references import Data, Outcome
from .arguments import Report
from .data_blocks import DataInfo, DataPlan, compile_data
from .resources import Site

Asking = Callable[[DataPlan, Site], Outcome]
"""Answers a data source."""


class CompiledCheck(Struct, frozen=True):
    """A compiled check."""

    name: str
    data: DataPlan | None
    """The data source that only its assertions see."""
    rules: tuple[Rule, ...]


def compile_check(
    block: CheckBlock,
    infos: Mapping[str, DataInfo],
    context: Context,
    providers: Mapping[str, str],
    report: Report,
) -> CompiledCheck:
    """Compile a block. A data source of an unknown type has been reported, and is left out."""
    source = block.data
    plan = None
    if source is not None and source.address.type in infos:
        info = infos[source.address.type]
        plan = compile_data(source, info, context, providers, report)
    return CompiledCheck(block.name, plan, compile_rules(block.assertions, context))


def evaluate_check(
    check: CompiledCheck, site: Site, data: Mapping[str, Mapping[str, Outcome]], ask_data: Asking
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
