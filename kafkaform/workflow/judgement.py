"""Judge plans and live systems by the rules, and name what is judged.

`--fail-on` and `--accept` can name conditions of a plan, levels, harms and rules. Unknown names are
refused before anything is read, because a condition that cannot be met would let every plan pass.

Rules look at changes. A live object is judged without a configuration as the change that would
create it, by the rules that need no live object, and as an object that needs no change, by all
rules. What would block the creation of such an object is worth a look, because the object exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import matches
from ..core.change import Action, Change
from ..core.diagnostics import suggest
from ..core.errors import Blocked, UsageError
from ..core.finding import POLICY, CheckedSystem, Finding, Harm, Level, StandingFinding
from ..core.resource import CoverageKind, Depth, Desired, Facts, Observed, Sweep, Unread
from ..core.rule import Needs, Rule, RuleBook, Scene
from ..plan.model import Plan
from ..plan.rules import collect_rules, load_books, make_creation, run_judge, run_survey
from ..plan.select import names_unread
from ..provider.contract import Provider, ResourceType, Session
from ..provider.registry import Registry
from ..state.model import State

LIST_RULES = "`kafkaform explain rule` lists the rules."
OLDER_NAMES = {"open-access": "access-opened", "unproven-access": "access-unproven"}
"""Older word for what can be accepted -> the rule. `--accept-WORD` is a flag for each."""
_NAMED = 3
"""How many objects a refusal names."""

LEVELS: Mapping[str, tuple[Level, ...]] = {
    "danger": (Level.DANGER,),
    "caution": (Level.DANGER, Level.CAUTION),
}
"""Word for a level -> the levels that it stands for."""
_INCLUDED: Mapping[Harm, tuple[Harm, ...]] = {Harm.DATA_LOSS: (Harm.DURABILITY,)}
"""Harm -> others that are the same to whoever names it: acknowledged records that are lost when
something fails are lost data."""
STANDING = (Needs.BLOCK, Needs.FACTS)
"""What a rule needs that can be asked of an object which exists, as if it were new."""
WORDS = (*LEVELS, *(harm.value for harm in Harm if harm is not Harm.NONE))
"""What `check --fail-on` can name besides rules."""


class Condition(Struct, frozen=True):
    """What a plan must not have under `--fail-on`."""

    text: str
    """What the plan has then."""
    holds: Callable[[Plan], bool]


def _have_level(word: str) -> Callable[[Plan], bool]:
    return lambda plan: any(finding.level in LEVELS[word] for finding in _list_risks(plan))


def _have_harm(*harms: Harm) -> Callable[[Plan], bool]:
    return lambda plan: any(
        # A note tells what is harmless as it is, so a gate that stopped there would stop almost
        # every plan.
        finding.harm in harms and finding.level is not Level.NOTE
        for finding in _list_risks(plan)
    )


def _list_risks(plan: Plan) -> Iterator[Finding]:
    """The findings about what an apply does, and about the systems."""
    for change in plan.effective:
        yield from change.findings
    for instance in plan.instances.values():
        yield from instance.findings


CONDITIONS: Mapping[str, Condition] = {
    "deletes": Condition("deletions", lambda plan: bool(plan.taking)),
    "blocked": Condition("blocked changes", lambda plan: any(plan.list_blocked(stopping=False))),
    "drift": Condition("drift (changes made outside kafkaform)", lambda plan: bool(plan.drifted)),
    "danger": Condition("dangers", _have_level("danger")),
    "caution": Condition("cautions or dangers", _have_level("caution")),
    **{
        harm.value: Condition(f"a risk ({harm.label})", _have_harm(harm, *_INCLUDED.get(harm, ())))
        for harm in Harm
        if harm is not Harm.NONE
    },
    "access": Condition(f"a risk ({Harm.ACCESS_LOST.label})", _have_harm(Harm.ACCESS_LOST)),
}
"""Words of `--fail-on` that are no rules. `access` is the older name of `access-lost`."""


def find_rules(registry: Registry) -> Mapping[str, Rule]:
    """The rules of kafkaform and of all installed providers, by id."""
    return collect_rules(registry.load(name) for name in registry.names)


def check_fail_on(
    names: Sequence[str],
    registry: Registry | None = None,
    words: Collection[str] = tuple(CONDITIONS),
    list_policies: Callable[[], Collection[str]] | None = None,
    *,
    live: bool = False,
) -> tuple[str, ...]:
    """The conditions of `--fail-on`, which may be comma-separated. registry: the providers whose
    rules count; None for all that are installed. words: what can be named besides rules.
    list_policies: the ids of the policies, None where none judges; called only if one is named.
    live: rules about live objects count, too, which find nothing in a plan. Raises UsageError."""
    conditions = tuple(condition for name in names for condition in name.split(",") if condition)
    # A mistyped condition never holds, so the gate would let everything pass.
    unknown = [name for name in conditions if name not in words]
    if list_policies is not None:
        policies = [name for name in unknown if name.startswith(POLICY)]
        _refuse_unknown_policies(policies, list_policies)
        unknown = [name for name in unknown if name not in policies]
    rules = find_rules(registry or Registry()) if unknown else {}
    for name in unknown:
        if name not in rules:
            near = suggest(name, (*words, *rules))
            raise UsageError(
                f"--fail-on {name!r} is not a condition",
                f"{near + ' ' if near else ''}It is one of {', '.join(words)}, or a rule: "
                f"{LIST_RULES}",
            )
        if rules[name].needs is Needs.LIVE and not live:
            raise UsageError(
                f"--fail-on {name}: this rule judges live objects, and no plan",
                f"Use it as `kafkaform check --fail-on {name}`.",
            )
    return conditions


def _refuse_unknown_policies(
    names: Sequence[str], list_policies: Callable[[], Collection[str]]
) -> None:
    policies = list_policies() if names else ()
    for name in names:
        if name not in policies:
            near = suggest(name, policies)
            listing = (
                f"The policies are {', '.join(policies)}."
                if policies
                else ("No policy judges this plan: none is declared, and --policy names no folder.")
            )
            raise UsageError(
                f"--fail-on {name!r} is not a policy", f"{near + ' ' if near else ''}{listing}"
            )


def check_accepted(names: Sequence[str], registry: Registry | None = None) -> tuple[str, ...]:
    """The rules of `--accept`, with an address or none, in the words of today. names: `RULE` or
    `RULE=ADDRESS`; registry: as in `check_fail_on`. Raises UsageError for what lifts nothing."""
    rules = find_rules(registry or Registry()) if names else {}
    liftable = [id for id, rule in rules.items() if rule.accept]
    return tuple(dict.fromkeys(_check_accepted(name, rules, liftable) for name in names))


def _check_accepted(name: str, rules: Mapping[str, Rule], liftable: Sequence[str]) -> str:
    word, equals, glob = name.partition("=")
    id = OLDER_NAMES.get(word, word)
    if equals and not glob:
        raise UsageError(
            f"--accept {name!r} has no address", "Write RULE, or RULE=ADDRESS with a glob."
        )
    if id in liftable:
        return f"{id}{equals}{glob}"
    choice = f"It is one of {', '.join(liftable)}, each with =ADDRESS for single objects."
    if id in rules:
        raise UsageError(
            f"--accept {id}: what this rule finds cannot be accepted",
            f"{choice} `kafkaform explain rule {id}` says what to do.",
        )
    near = suggest(id, liftable)
    raise UsageError(f"--accept {id!r} is not a rule", f"{near + ' ' if near else ''}{choice}")


def refuse_idle_accepted(names: Collection[str], desired: Desired, state: State) -> None:
    """Raises UsageError for an address of `--accept` that no object has: that is a typing error."""
    if names:
        addresses = {str(item.address) for item in desired.declared}
        addresses.update(owner for row in state.objects.values() for owner in row.owners)
        advice = "Nothing of this address is declared or recorded."
        refuse_unmatched(names, addresses, advice, desired.unread)


def refuse_unmatched(
    names: Iterable[str], addresses: Collection[str], advice: str, unread: Sequence[Unread] = ()
) -> None:
    """The same for these addresses. advice: for a glob that is near none of them; unread: blocks
    that wait for a data source, whose objects nobody knows."""
    for glob in filter(None, (name.partition("=")[2] for name in names)):
        if any(names_unread((glob,), block) for block in unread):
            continue
        if not any(matches(glob, address) for address in addresses):
            raise UsageError(
                f"--accept …={glob} matches no object", suggest(glob, addresses) or advice
            )


def list_held(findings: Iterable[Finding], names: Iterable[str]) -> list[str]:
    """The words for levels and harms, and the rules, that some of these findings have."""
    findings = [finding for finding in findings if finding.level is not Level.NOTE]
    return [
        name
        for name in dict.fromkeys(names)
        if any(
            name in (finding.rule, finding.harm) or finding.level in LEVELS.get(name, ())
            for finding in findings
        )
    ]


def describe_conditions(plan: Plan, names: Iterable[str]) -> list[str]:
    """What a plan has of these conditions, in words, in the order of the table; rules last."""
    chosen = set(names)
    findings = [
        condition.text
        for name, condition in CONDITIONS.items()
        if name in chosen and condition.holds(plan)
    ]
    ids = sorted(chosen - CONDITIONS.keys())
    return [*dict.fromkeys(findings), *(text for id in ids if (text := _describe_rule(plan, id)))]


def _describe_rule(plan: Plan, id: str) -> str:
    """What a rule or policy has found, whatever becomes of the change; empty if it has found
    nothing, or only what a waiver covers."""
    subjects = [
        change.address
        for change in plan.changes
        if any(finding.rule == id and not _is_waived(finding) for finding in change.findings)
    ]
    subjects += [
        name
        for name, instance in plan.instances.items()
        if any(finding.rule == id for finding in instance.findings)
    ]
    hidden_count = len(subjects) - _NAMED
    remainder = f" and {hidden_count:,} more" if hidden_count > 0 else ""
    return f"{id} ({', '.join(subjects[:_NAMED])}{remainder})" if subjects else ""


def _is_waived(finding: Finding) -> bool:
    """Whether the waiver of a policy covers what it found."""
    return finding.level is Level.NOTE and finding.waiver is not None


def make_standing_changes(
    items: Iterable[Observed], types: Mapping[str, ResourceType], facts: Facts
) -> list[Change]:
    """Each live object as one that needs no change. Those that the system keeps for itself are left
    out."""
    changes = []
    for item in items:
        kind, identity = types[item.identity.kind], item.identity
        reserved = kind.reserves is not None and kind.reserves(identity.key, item.details)
        if reserved or item.details.get("internal") is True:
            continue
        live = kind.canonical(item.attributes, facts)
        change = Change(identity, str(identity), Action.NOOP, live, live)
        changes.append(replace(change, incarnation=item.incarnation))
    return changes


def judge_standing(
    changes: Sequence[Change],
    types: Mapping[str, ResourceType],
    book: RuleBook,
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> list[StandingFinding]:
    """What the rules find about live objects, dangers first, each thing once.

    changes: of `make_standing_changes`; sweeps: those of `Provider.review_needs`.
    """
    rules = {rule.id: rule for rule in book.rules}
    rows: dict[StandingFinding, None] = {}
    for change in changes:
        for finding in _judge_object(change, types[change.identity.kind], book, rules, facts):
            rows[StandingFinding(change.identity, _soften(finding))] = None
    for survey in (*book.surveys, *book.checks):
        for identity, finding in run_survey(survey, Scene(changes, sweeps, facts)):
            rows[StandingFinding(identity, _soften(finding))] = None
    shown_rows = (row for row in rows if row.finding.level is not Level.NOTE)
    return sorted(
        shown_rows, key=lambda row: (row.finding.order, row.finding.rule, str(row.identity or ""))
    )


def _judge_object(
    change: Change,
    kind: ResourceType,
    book: RuleBook,
    rules: Mapping[str, Rule],
    facts: Facts,
) -> Iterator[Finding]:
    assert change.after is not None  # it exists
    # Rules of blocks judge creations. An object that somebody made without kafkaform has never met
    # them.
    creation = make_creation(change.identity, change.address, change.after, kind)
    for judge in book.judges:
        if change.identity.kind not in judge.types:
            continue
        yield from run_judge(judge, change, facts)
        if judge.needs not in STANDING:
            continue
        for finding in run_judge(judge, creation, facts):
            # A judge of blocks can have rules about changes, too.
            row = rules.get(finding.rule)
            if row is None or row.needs in STANDING:
                yield finding


def _soften(finding: Finding) -> Finding:
    if finding.level is not Level.BLOCK:
        return finding
    # The object exists, so there is no change that a block could stop or that somebody could
    # accept.
    return replace(finding, level=Level.CAUTION, block=None, accept=False)


def check_system(instance: str, provider: Provider, session: Session) -> CheckedSystem:
    """Read every object of a system and judge it. Raises OtherSystem; what cannot be read is a
    gap."""
    # A part of an object is judged with the object.
    types = {
        name: kind
        for name, kind in provider.types.items()
        if kind.expand is None and kind.part_of is None
    }
    facts, gaps, items, failed = session.facts, list[str](), list[Observed](), False
    for name, kind in types.items():
        sweep = session.sweep(name, Depth.FULL)
        fault = sweep.coverage.fault
        # Without this feature the system cannot have such objects.
        if fault is not None and fault.code in kind.switched_off:
            continue
        gaps += _describe_gaps(sweep, facts.principal or "this principal")
        failed = failed or sweep.coverage.kind is CoverageKind.FAILED
        items += sweep.items
    changes = make_standing_changes(items, types, facts)
    needs = provider.review_needs(changes)
    sweeps = {name: session.sweep(name, depth) for name, depth in needs.items()}
    book = load_books({instance: provider})[instance]
    rows = judge_standing(changes, types, book, sweeps, facts)
    numbers = {name: sum(change.identity.kind == name for change in changes) for name in types}
    return CheckedSystem(
        instance,
        facts.scope_id,
        session.words,
        tuple((name, number) for name, number in numbers.items() if number),
        tuple(rows),
        tuple(gaps),
        failed,
    )


def _describe_gaps(sweep: Sweep, principal: str) -> Iterator[str]:
    if sweep.coverage.kind is CoverageKind.VISIBLE_ONLY:
        yield f"{sweep.kind}: this is what {principal} can see; there can be more."
    elif sweep.coverage.kind is CoverageKind.FAILED:
        fault = sweep.coverage.fault
        cause = "the listing failed" if fault is None else f"{fault.message} ({fault.code})"
        advice = f" {fault.advice}" if fault is not None and fault.advice else ""
        yield f"Not checked: {sweep.kind} could not be listed whole: {cause}.{advice}"


def refuse_findings(systems: Iterable[CheckedSystem], fail_on: Sequence[str]) -> None:
    """Raises Blocked if a system has what `--fail-on` names, or if not everything could be read,
    because what was not read may have it."""
    if not fail_on:
        return
    systems = tuple(systems)
    findings = list_held((row.finding for system in systems for row in system.rows), fail_on)
    if findings:
        raise Blocked(
            f"--fail-on: there are findings of {', '.join(findings)}",
            "See what the check says of each object.",
        )
    if any(system.failed for system in systems):
        raise Blocked(
            "--fail-on: not everything could be read, so nobody knows whether it holds",
            "The check names what is missing. Grant the rights to read it.",
        )
