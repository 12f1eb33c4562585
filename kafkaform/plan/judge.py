"""The judge: applies the rules of the providers to changes, and guards against a plan that takes
away much more than anybody meant (architecture §4.3). Nothing else judges what it knows.

A rule that raises blocks the change: what was not judged must not pass. A release of an object that
others share counts like a deletion (`Change.takes_away`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import matches
from ..core.change import Action, Change, RateLimit, add_findings
from ..core.finding import POLICY, Block, Finding, Harm, Level, Waiver
from ..core.resource import Desired, Facts, Identity
from ..core.rule import Judge, Rule, RuleBook, Scene
from ..core.text import render_count
from ..provider.contract import Provider
from ..state.model import State
from .model import Mode, Options, Plan, PolicyFolders, seal_plan
from .observe import Look
from .rules import (
    EMPTY_CONFIGURATION,
    LIMIT_DATA_LOSS,
    LIMIT_DELETIONS,
    RULE_FAILED,
    run_judge,
    run_survey,
)
from .rules import load_books as load_books

PolicyJudge = Callable[[Change, Facts], Sequence[Finding]]
"""A change and the facts of its system -> the policies that it breaks."""
# Below ten objects a share means nothing: the last of two objects is half of everything.
MANY = 10
LARGE_SHARE = 0.30


def judge_changes(
    changes: Sequence[Change], books: Mapping[str, RuleBook], facts: Mapping[str, Facts]
) -> list[Change]:
    """The changes with what the judges find about each."""
    judges: dict[tuple[str, str], list[Judge]] = defaultdict(list)
    for instance, book in books.items():
        for judge in book.judges:
            for kind in judge.types:
                judges[instance, kind].append(judge)
    return [
        _judge_change(change, judges[type_key], facts[type_key[0]])
        if (type_key := (change.identity.instance, change.identity.kind)) in judges
        else change
        for change in changes
    ]


def judge_refreshes(
    changes: Sequence[Change],
    state: State,
    books: Mapping[str, RuleBook],
    facts: Mapping[str, Facts],
) -> list[Change]:
    """The changes of a refresh-only plan, with what the rules find about what somebody has changed.

    state: what was recorded before. What would block a change is left out, because the
    values are live; a rule that failed blocks nothing, because nothing is sent.
    """
    refreshes = [
        replace(
            change,
            action=Action.UPDATE,
            before=state.objects[change.identity].attributes,
            paths=change.drift,
        )
        for change in changes
        if change.action is Action.REFRESH
    ]
    judged = {change.identity: change.findings for change in judge_changes(refreshes, books, facts)}
    return [
        replace(change, findings=tuple(_drop_blocks(judged[change.identity])))
        if change.identity in judged
        else change
        for change in changes
    ]


def _drop_blocks(findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        if finding.level is not Level.BLOCK:
            yield finding
        elif finding.rule == RULE_FAILED.id:
            # It stays visible: the values were recorded without the judgement of this rule.
            yield replace(finding, level=Level.CAUTION, block=None)


def _judge_change(change: Change, judges: Iterable[Judge], facts: Facts) -> Change:
    findings = [finding for judge in judges for finding in run_judge(judge, change, facts)]
    return record_findings(change, findings)


def record_findings(
    change: Change, findings: Sequence[Finding], accepted: Sequence[str] = ()
) -> Change:
    """The change with these findings. accepted: the rules, each with an address glob or none, whose
    blocks the user lifts (`--accept RULE[=ADDRESS]`)."""
    if not findings:
        return change
    # What lets the rest of the plan pass decides alone: a further fault of an object that stays as
    # it is must not stop the others.
    left_out = change.block is not None and not change.block.stops
    settled = (_settle_block(finding, change, accepted, left_out=left_out) for finding in findings)
    return add_findings(change, *settled)


def _settle_block(
    finding: Finding, change: Change, accepted: Sequence[str], *, left_out: bool
) -> Finding:
    if finding.level is not Level.BLOCK:
        return finding
    finding = lift_block(finding, change, accepted)
    if finding.accepted or not left_out:
        return finding
    text = finding.text
    if change.block is Block.UNMANAGED:
        # The advice for such an object is to adopt it.
        text = f"it could not be adopted as declared: {text}"
    return replace(finding, level=Level.CAUTION, block=None, accept=False, text=text)


def lift_block(finding: Finding, change: Change, accepted: Sequence[str]) -> Finding:
    """The block as a danger, if the user accepts it for this change. accepted: as for
    `record_findings`."""
    if finding.accept and any(is_accepted(name, finding.rule, change) for name in accepted):
        # What was accepted stays visible in the plan that somebody approves.
        return replace(finding, level=Level.DANGER, block=None, accepted=True)
    return finding


def explain_lifts(plan: Plan, lifted: Mapping[str, Waiver]) -> Plan:
    """The plan, in which each finding that only a waiver lifts has this waiver. lifted: what each
    accepts, `RULE=ADDRESS`."""
    if not lifted:
        return plan
    return replace(
        plan, changes=tuple(_explain_lifts(item, plan.options, lifted) for item in plan.changes)
    )


def _explain_lifts(change: Change, options: Options, lifted: Mapping[str, Waiver]) -> Change:
    if not any(finding.accepted for finding in change.findings):
        return change
    findings = []
    for finding in change.findings:
        names = [name for name in lifted if is_accepted(name, finding.rule, change)]
        # What the user accepts needs no waiver, so its end changes nothing.
        typed = any(is_accepted(name, finding.rule, change) for name in options.accept)
        if finding.accepted and names and not typed:
            finding = replace(finding, waiver=lifted[names[0]])
        findings.append(finding)
    return replace(change, findings=tuple(findings))


def list_ended_lifts(plan: Plan, lifted: Mapping[str, Waiver]) -> list[Change]:
    """The changes that a plan makes because of a waiver which does not count any more."""
    return [
        change
        for change in plan.effective
        if any(
            finding.accepted
            and finding.waiver is not None
            and not any(is_accepted(name, finding.rule, change) for name in lifted)
            for finding in change.findings
        )
    ]


def is_accepted(name: str, rule: str, change: Change) -> bool:
    """True if `--accept NAME` lifts the blocks of this rule for this change. name: a rule's id, or
    `RULE=ADDRESS` with a glob."""
    id, equals, glob = name.partition("=")
    return id == rule and (not equals or matches(glob, change.address))


def survey_changes(
    changes: Sequence[Change],
    providers: Mapping[str, Provider],
    books: Mapping[str, RuleBook],
    look: Look,
    facts: Mapping[str, Facts],
    accepted: Sequence[str] = (),
) -> tuple[Sequence[Change], Mapping[str, tuple[Finding, ...]]]:
    """The changes with what the surveys find about all changes of an instance together, and what
    they find about the systems, by instance.

    accepted: as for `record_findings`.
    """
    of_objects: dict[Identity, list[Finding]] = defaultdict(list)
    of_systems: dict[str, tuple[Finding, ...]] = {}
    for instance, provider in providers.items():
        own = [change for change in changes if change.identity.instance == instance]
        # Only what the rules ask for is listed: a listing can take as long as all other reads of a
        # plan.
        sweeps = look.collect_sweeps(instance, provider.review_needs(own))
        scene = Scene(own, sweeps, facts[instance], look.elsewhere.identities)
        of_system: list[Finding] = []
        for survey in books[instance].surveys:
            for identity, finding in run_survey(survey, scene):
                (of_system if identity is None else of_objects[identity]).append(finding)
        of_systems[instance] = tuple(sorted(of_system, key=lambda finding: finding.order))
    if not of_objects:
        return changes, of_systems
    return [
        record_findings(change, of_objects.get(change.identity, ()), accepted) for change in changes
    ], of_systems


def find_limits(
    changes: Sequence[Change],
    providers: Mapping[str, Provider],
    look: Look,
    facts: Mapping[str, Facts],
) -> dict[str, RateLimit | None]:
    """Provider instance -> how many of the changes its system takes at a time."""
    limits: dict[str, RateLimit | None] = {}
    for instance, provider in providers.items():
        own = [change for change in changes if change.identity.instance == instance]
        sweeps = look.collect_sweeps(instance, provider.limit_needs(own))
        limits[instance] = provider.find_limit(own, sweeps, facts[instance])
    return limits


# ── policies ────────────────────────────────────────────────────────────────────────────

# Policies come last, because they judge everything that is known about a change: its values, what
# rules found, and how much data it destroys.


def judge_plan(plan: Plan, judge: PolicyJudge, folders: PolicyFolders) -> Plan:
    """The plan with its findings, sealed again. folders: the policies from outside the
    configuration, which the approval covers."""
    changes = tuple(_judge_by_policies(change, plan, judge) for change in plan.changes)
    return seal_plan(replace(plan, changes=changes, policies=folders))


def _judge_by_policies(change: Change, plan: Plan, judge: PolicyJudge) -> Change:
    # A protected or unmanaged object stays as it is, whatever the rest of the plan does.
    left_out = change.block is not None and not change.block.stops
    if change.action is Action.NOOP or left_out:
        return change
    findings = judge(change, plan.instances[change.identity.instance].facts)
    # A reviewed plan is judged again by an apply.
    rule_findings = tuple(item for item in change.findings if not item.rule.startswith(POLICY))
    change = add_findings(replace(change, findings=rule_findings), *findings)
    return replace(change, steps=()) if change.blocked is not None else change


def list_new_breaches(plan: Plan, second_plan: Plan) -> list[Change]:
    """The changes that a plan makes and that the policies block now. second_plan: the same
    plan, judged once more."""
    pairs = zip(plan.changes, second_plan.changes, strict=True)
    return [
        after for before, after in pairs if before.blocked is None and after.blocked is not None
    ]


def apply_guards(
    changes: Sequence[Change], desired: Desired, state: State, options: Options
) -> tuple[Change, ...]:
    """The changes, with deletions blocked if there are too many of them, and all of them if the
    configuration is empty."""
    # A wrong folder or a missing variable looks like a configuration without any object.
    empty = not (desired.declared or desired.unread)
    if options.mode is Mode.NORMAL and empty and state.objects:
        return _block_changes(
            changes,
            lambda change: change.action is not Action.NOOP,
            EMPTY_CONFIGURATION.find(
                "the configuration declares nothing, but the state still has objects "
                f"({len(state.objects)})"
            ),
            (),
            even_protected=True,
        )
    return guard_deletions(changes, state, options)


def guard_deletions(
    changes: Sequence[Change], state: State, options: Options
) -> tuple[Change, ...]:
    """The changes, with the deletions blocked if there are too many of them."""
    return _apply_guard(_DELETIONS, changes, state, options)


def guard_losses(changes: Sequence[Change], state: State, options: Options) -> tuple[Change, ...]:
    """The changes, with those that lose data blocked if they do so to too many objects.

    After the surveys: only these find out how many objects a change of one concerns.
    """
    return _apply_guard(_LOSSES, changes, state, options)


def _apply_guard(
    guard: _Guard, changes: Sequence[Change], state: State, options: Options
) -> tuple[Change, ...]:
    reason = _explain_excess(guard, changes, state, options)
    if reason is None:
        return tuple(changes)
    return _block_changes(
        changes,
        lambda change: bool(guard.count(change)),
        guard.rule.find(reason),
        options.accept,
    )


class _Concerned(Struct, frozen=True):
    """Objects to which a change does something."""

    kind: str
    """Their type."""
    number: int
    """How many they are."""
    total: int = 0
    """How many there are of this type, 0 for as many as the state has."""


class _Guard(Struct, frozen=True):
    """One thing that a plan can do to a few objects only, unless the user says how many."""

    count: Callable[[Change], _Concerned | None]
    """The objects to which a change does it, None if it does not do it."""
    limit: Callable[[Options], int | None]
    """How many the user allows, None if the user does not say."""
    flag: str
    """The flag with which the user says it."""
    choose_verb: Callable[[Sequence[Change]], str]
    """What the plan does with these changes, in words."""
    rule: Rule
    """Its row in the table of rules."""


def _count_deletion(change: Change) -> _Concerned | None:
    return _Concerned(change.identity.kind, 1) if change.takes_away else None


def _count_losses(change: Change) -> _Concerned | None:
    """The objects whose data the change could destroy. A change of a default concerns all objects
    that follow it: its finding has the figures `objects`, `of_objects` and `kind`."""
    if not change.effective:
        return None
    losses = [
        _count_objects(finding, change)
        for finding in change.findings
        if finding.harm is Harm.DATA_LOSS
        and finding.level is not Level.NOTE
        # A deletion has a guard of its own, and needs no second permission for the same object.
        and ("objects" in finding.figures or not change.takes_away)
    ]
    return max(losses, key=lambda concerned: concerned.number, default=None)


def _count_objects(finding: Finding, change: Change) -> _Concerned:
    figures = finding.figures
    return _Concerned(
        figures.get("kind", change.identity.kind),
        figures.get("objects", 1),
        figures.get("of_objects", 0),
    )


def _choose_delete_verb(deletes: Sequence[Change]) -> str:
    return "deletes or releases" if any(change.released for change in deletes) else "deletes"


_DELETIONS = _Guard(
    _count_deletion,
    lambda options: options.max_deletes,
    "--max-deletes",
    _choose_delete_verb,
    LIMIT_DELETIONS,
)
_LOSSES = _Guard(
    _count_losses,
    lambda options: options.max_data_loss,
    "--max-data-loss",
    lambda _: "could destroy data of",
    LIMIT_DATA_LOSS,
)


def _explain_excess(
    guard: _Guard, changes: Sequence[Change], state: State, options: Options
) -> str | None:
    pairs = [(change, concerned) for change in changes if (concerned := guard.count(change))]
    if not pairs:
        return None
    verb, allowed = guard.choose_verb([change for change, _ in pairs]), guard.limit(options)
    if allowed is not None:
        number = sum(concerned.number for _, concerned in pairs)
        if number <= allowed:
            return None
        return (
            f"the plan {verb} {render_count(number, 'object')}, but {guard.flag} allows {allowed}"
        )
    # Whoever runs `destroy` expects to read that everything goes.
    if options.mode is Mode.DESTROY:
        return None
    totals = Counter((i.instance, i.kind) for i in state.objects)
    counts: Counter[tuple[str, str]] = Counter()
    for change, concerned in pairs:
        type_key = (change.identity.instance, concerned.kind)
        counts[type_key] += concerned.number
        totals[type_key] = max(totals[type_key], concerned.total)
    for type_key, count in counts.items():
        instance, kind = type_key
        # The state has no object that a plan adopts, or that `alter` changes.
        total = max(totals[type_key], count)
        if count >= MANY and count > total * LARGE_SHARE:
            return (
                f"the plan {verb} {count} of {total} {kind} objects in {instance} "
                f"(at least {MANY} and more than {LARGE_SHARE:.0%})"
            )
    return None


def _block_changes(
    changes: Sequence[Change],
    meant: Callable[[Change], bool],
    block: Finding,
    accepted: Sequence[str],
    *,
    even_protected: bool = False,
) -> tuple[Change, ...]:
    """The changes, with the meant ones blocked. accepted: the rules that the user lifts;
    even_protected: also those that are blocked already by something that lets the rest of the plan
    pass."""

    def caught(change: Change) -> bool:
        if change.block is not None:
            return even_protected and not change.block.stops
        return meant(change)

    return tuple(
        add_findings(change, lift_block(block, change, accepted)) if caught(change) else change
        for change in changes
    )
