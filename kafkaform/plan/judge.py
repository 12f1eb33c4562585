"""The judge: applies the rules of the providers to changes. Nothing else judges what it knows.

A rule that raises blocks the change: what was not judged must not pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..core.address import matches
from ..core.change import Action, Change, RateLimit, add_findings
from ..core.finding import POLICY, Block, Finding, Level, Waiver
from ..core.resource import Facts, Identity
from ..core.rule import Judge, RuleBook, Scene, Survey
from ..provider.contract import Provider
from ..state.model import State
from .approval import seal_plan
from .block_judge import load_books as load_books
from .block_judge import make_failure, run_judge
from .model import Options, Plan, PolicyFolders
from .observe import Look
from .rules import RULE_FAILED


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
    made = [
        replace(
            change,
            action=Action.UPDATE,
            before=state.objects[change.identity].attributes,
            paths=change.drift,
        )
        for change in changes
        if change.action is Action.REFRESH
    ]
    judged = {change.identity: change.findings for change in judge_changes(made, books, facts)}
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
        scene = Scene(
            own, look.collect_sweeps(instance, provider.review_needs(own)), facts[instance]
        )
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
        find = getattr(provider, "find_limit", None)
        sweeps = look.collect_sweeps(instance, provider.review_needs(own)) if find else {}
        limits[instance] = find(own, sweeps, facts[instance]) if find else None
    return limits


def run_survey(survey: Survey, scene: Scene) -> Sequence[tuple[Identity | None, Finding]]:
    """What a survey finds; if it raises, a block of each change that names its rules, or of the
    system if there is no change."""
    try:
        return list(survey.find(scene))
    except Exception as error:  # noqa: BLE001  # whatever it is, nothing may pass unjudged
        failure = make_failure(survey.rules, error)
        unjudged = [change.identity for change in scene.changes if change.effective]
        return [(identity, failure) for identity in unjudged or (None,)]


# ── policies ────────────────────────────────────────────────────────────────────────────

# Policies come last, because they judge everything that is known about a change: its values, what
# rules found, and how much data it destroys.

PolicyJudge = Callable[[Change, Facts], Sequence[Finding]]
"""A change and the facts of its system -> the policies that it breaks."""


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
