"""Policies: rules in HCL over each change of a plan, from the configuration or from outside it.

    policy "no_data_loss" {
      severity  = "error"
      when      = change.type == "kafka_topic"
      condition = !contains(change.risk_kinds, "data-loss")
      message   = "${change.key} would lose data."

      waiver {
        addresses = ["kafka_topic.scratch*"]
        reason    = "scratch data, agreed with the team"
        until     = "2027-01-31"
      }
    }

A policy that cannot be evaluated counts as broken: a rule that nobody could check must not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase

from msgspec import Struct

from ..core.diagnostics import Diagnostic, Diagnostics, Range, suggest
from ..core.value import FrozenMap
from ..syntax.nodes import Block, Expression, Lit, Tuple
from .declare.blocks import Header, Shape, find_shape_faults
from .expressions.code import Code, Context, Env
from .expressions.compilation import make_context
from .expressions.namespaces import Fixed
from .expressions.operators import require_truth
from .expressions.templates import render_piece
from .functions import FunctionTable
from .values.conversion import lift_value
from .values.faults import Deferred, EvalError, Poisoned, make_error
from .values.limits import Budget
from .values.value import ObjectVal, unmark

ERROR, WARNING = "error", "warning"
SEVERITIES = (ERROR, WARNING)

POLICY = Shape(
    ("the name",),
    required=("condition", "message"),
    optional=("severity", "when", "description"),
    blocks=("waiver",),
)
WAIVER = Shape(required=("addresses", "reason", "until"))


class Waiver(Struct, frozen=True):
    """Lets some objects break a policy until a date."""

    addresses: tuple[str, ...]
    """Globs of addresses."""
    reason: str
    until: date
    """The last day on which it counts, in UTC."""

    def covers(self, address: str, today: date) -> bool:
        return today <= self.until and any(fnmatchcase(address, one) for one in self.addresses)


class Policy(Struct, frozen=True):
    """One compiled rule."""

    name: str
    severity: str
    range: Range
    waivers: tuple[Waiver, ...]
    when: Code | None
    """Which changes it is about; None for all."""
    condition: Code
    message: Code
    nodes: tuple[Expression, Expression]
    """`condition` and `message`, as places."""


class Breach(Struct, frozen=True):
    """A change that breaks a policy."""

    policy: Policy
    message: str
    waiver: Waiver | None = None


def compile_policies(blocks: Iterable[Block]) -> tuple[tuple[Policy, ...], Diagnostics]:
    """The policies of these blocks, and the faults of their form. A name counts once."""
    context = make_context(FunctionTable())
    found: dict[str, Policy] = {}
    faults: list[Diagnostic] = []
    for block in blocks:
        wrong = list(_find_faults(block))
        faults += wrong
        if wrong:
            continue
        policy = _compile_policy(block, context)
        if policy.name in found:
            faults.append(
                make_error(
                    Header(block),
                    f'The policy "{policy.name}" is declared twice',
                    f"The first one is at {found[policy.name].range}.",
                    "Rename one of the two.",
                )
            )
        found.setdefault(policy.name, policy)
    return tuple(found.values()), tuple(faults)


def find_breaches(
    policies: Iterable[Policy], change: FrozenMap, address: str, today: date
) -> Iterator[Breach]:
    """The policies that a change breaks. change: what expressions find behind `change.`."""
    roots: Mapping[str, Fixed] = {"change": Fixed(_lift_object(change))}
    for policy in policies:
        message = _check_policy(policy, roots)
        if message is not None:
            waivers = (one for one in policy.waivers if one.covers(address, today))
            yield Breach(policy, message, next(waivers, None))


def _check_policy(policy: Policy, roots: Mapping[str, Fixed]) -> str | None:
    """Why the change breaks the policy; None if it does not."""
    env = Env(roots, {}, Budget())
    condition, message = policy.nodes
    try:
        if policy.when is not None and not require_truth(unmark(policy.when(env))[0], condition):
            return None
        if require_truth(unmark(policy.condition(env))[0], condition):
            return None
        text, _ = render_piece(policy.message(env), message)
        return text
    except EvalError as fault:
        return f"this policy cannot be evaluated ({policy.range}): {fault}"
    except (Poisoned, Deferred):
        return f"this policy cannot be evaluated ({policy.range})"


def _lift_object(data: FrozenMap) -> ObjectVal:
    return ObjectVal({name: lift_value(item) for name, item in data.items()})


# ── blocks ──────────────────────────────────────────────────────────────────────────────


def _compile_policy(block: Block, context: Context) -> Policy:
    condition, message = block.get_argument("condition"), block.get_argument("message")
    assert condition is not None and message is not None  # the shape was checked
    when = block.get_argument("when")
    return Policy(
        block.labels[0].text,
        _read_text(block, "severity") or ERROR,
        block.header_range,
        tuple(_read_waiver(inner) for inner in block.body.blocks),
        None if when is None else context.compile_node(when),
        context.compile_node(condition),
        context.compile_node(message),
        (condition, message),
    )


def _read_waiver(block: Block) -> Waiver:
    until = _read_date(block)
    assert until is not None  # it was checked
    return Waiver(_read_texts(block, "addresses") or (), _read_text(block, "reason") or "", until)


def _find_faults(block: Block) -> Iterator[Diagnostic]:
    yield from find_shape_faults(block, POLICY)
    severity = block.get_argument("severity")
    if severity is not None and _read_text(block, "severity") not in SEVERITIES:
        yield make_error(
            severity,
            "The severity of a policy is written out",
            f'It is "{ERROR}", which blocks the change, or "{WARNING}", which only shows it.',
            suggest(_read_text(block, "severity") or "", SEVERITIES) or "",
        )
    for inner in block.body.blocks:
        yield from _find_waiver_faults(inner)


def _find_waiver_faults(block: Block) -> Iterator[Diagnostic]:
    yield from find_shape_faults(block, WAIVER)
    addresses, reason = block.get_argument("addresses"), block.get_argument("reason")
    until = block.get_argument("until")
    if addresses is not None and not _read_texts(block, "addresses"):
        yield make_error(addresses, "A waiver lists addresses", advice='["kafka_topic.scratch*"]')
    if reason is not None and not _read_text(block, "reason"):
        yield make_error(reason, "A waiver says why it is there", advice="Write one sentence.")
    if until is not None and _read_date(block) is None:
        yield make_error(
            until, "A waiver ends on a day", "It counts up to that day, in UTC.", '"2027-01-31"'
        )


def _read_text(block: Block, name: str) -> str | None:
    node = block.get_argument(name)
    return node.value if isinstance(node, Lit) and isinstance(node.value, str) else None


def _read_texts(block: Block, name: str) -> tuple[str, ...] | None:
    node = block.get_argument(name)
    items = node.items if isinstance(node, Tuple) else ()
    texts = [one.value for one in items if isinstance(one, Lit) and isinstance(one.value, str)]
    return tuple(texts) if texts and len(texts) == len(items) else None


def _read_date(block: Block) -> date | None:
    try:
        return date.fromisoformat(_read_text(block, "until") or "")
    except ValueError:
        return None
