"""Judge declared objects by the rules that need only a block, run single judges for all others, and
judge what a folder declares by its boundary: the names that its blocks may have or touch.

Kept apart from `judge.py`, because `validate` and the editor load nothing of a plan. Only
attributes are needed, so they and a plan find the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

from ..core.address import is_closure, parse_address
from ..core.change import Action, Change, add_findings
from ..core.finding import Block, Finding
from ..core.resource import Declared, Facts, Fence, Identity
from ..core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import Provider, ResourceType
from .diff import compare
from .model import Plan
from .rules import DENIED, ENGINE_RULES, OUTSIDE, RULE_FAILED, UNLIMITED

NO_FACTS = Facts("")
"""What is known of a system where nobody asks one."""


def load_books(providers: Mapping[str, Provider]) -> Mapping[str, RuleBook]:
    """Provider instance -> the rules of its provider."""
    books = {provider.name: provider.load_rules() for provider in providers.values()}
    return {instance: books[provider.name] for instance, provider in providers.items()}


def collect_rules(providers: Iterable[Provider]) -> Mapping[str, Rule]:
    """Every row of the table, by its id, sorted: those of the engine and of these providers."""
    groups = (ENGINE_RULES, *(provider.load_rules().rules for provider in providers))
    rows = {rule.id: rule for group in groups for rule in group}
    return {id: rows[id] for id in sorted(rows)}


def judge_blocks(
    declared: Iterable[Declared], providers: Mapping[str, Provider]
) -> Iterator[tuple[Declared, Finding]]:
    """What can be found in declared objects alone, as far as no system has to be asked.

    providers: provider instance -> its provider, of each object.
    """
    books = load_books(providers)
    created: dict[str, list[tuple[Declared, Change]]] = defaultdict(list)
    for item in declared:
        instance = item.identity.instance
        kind = providers[instance].types[item.identity.kind]
        after = kind.canonical(item.attributes, NO_FACTS)
        change = make_creation(item.identity, str(item.address), after, kind)
        created[instance].append((item, change))
    for instance, pairs in created.items():
        judges = [row for row in books[instance].judges if row.needs is Needs.BLOCK]
        for item, change in pairs:
            for judge in judges:
                if change.identity.kind in judge.types:
                    yield from ((item, finding) for finding in run_judge(judge, change, NO_FACTS))
        # Several blocks can declare one object; it is one change of a plan.
        items = {change.identity: (item, change) for item, change in pairs}
        scene = Scene([change for _, change in items.values()], EMPTY, NO_FACTS)
        for survey in books[instance].surveys:
            if survey.needs is not Needs.BLOCK:
                continue
            for identity, finding in run_survey(survey, scene):
                if identity is not None:
                    yield items[identity][0], finding


def make_creation(identity: Identity, address: str, after: FrozenMap, kind: ResourceType) -> Change:
    """The change that makes an object from nothing. after: its attributes, canonical."""
    paths = compare(None, after, schema=kind.schema)
    return Change(identity, address, Action.CREATE, paths=paths, after=after)


def run_judge(judge: Judge, change: Change, facts: Facts) -> Sequence[Finding]:
    """What a judge finds; if it raises, a block that names its rules."""
    try:
        return list(judge.find(change, facts))
    except Exception as error:  # noqa: BLE001  # whatever it is, nothing may pass unjudged
        return [make_failure(judge.rules, error)]


def run_survey(survey: Survey, scene: Scene) -> Sequence[tuple[Identity | None, Finding]]:
    """What a survey finds; if it raises, a block of each change that names its rules, or of the
    system if there is no change."""
    try:
        return list(survey.find(scene))
    except Exception as error:  # noqa: BLE001  # whatever it is, nothing may pass unjudged
        failure = make_failure(survey.rules, error)
        unjudged = [change.identity for change in scene.changes if change.effective]
        return [(identity, failure) for identity in unjudged or (None,)]


def make_failure(rules: Sequence[Rule], error: Exception) -> Finding:
    """The block for a change that some rules could not judge."""
    ids = ", ".join(rule.id for rule in rules)
    return RULE_FAILED.find(
        f"the rules {ids} could not judge it: {type(error).__name__}: {error}. This is a bug in "
        "kafkaform"
    )


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def covers(pattern: str, names: str) -> bool:
    """Whether a pattern of a boundary covers all of these names.

    names: a name, or a pattern. Its `*` is matched by a `*` of the boundary only, as any text
    would have to be.
    """
    return _compile(pattern).fullmatch(names) is not None


def find_breaches(
    fence: Fence, provider: Provider | None, kind: str, attributes: FrozenMap, block_type: str = ""
) -> Iterator[Finding]:
    """What of an object is outside of the boundary.

    provider: None if it is not installed; attributes: those of a block, or of a live object;
    block_type: of the block that stands for it, if that is a composite.
    """
    boundary = f"the boundary of {fence.folder} ({fence.place})"
    if denied := fence.denied.intersection((kind, block_type)):
        yield DENIED.find(
            f"{boundary} denies {' and '.join(sorted(denied))}",
            fix=f"Declare it in another folder, or let {fence.owner} change `deny`.",
        )
        return
    reaches = None if provider is None else provider.list_reaches(kind, attributes)
    if reaches is None:
        yield UNLIMITED.find(
            f"{boundary} cannot cover {kind}, because its provider does not say what it names"
        )
    for reach in reaches or ():
        if not reach.noun:
            yield UNLIMITED.find(f"{reach.text}, which {boundary} cannot cover", reach.path)
            continue
        patterns = fence.lists.get(reach.noun, ())
        if not any(covers(pattern, reach.pattern) for pattern in patterns):
            allowed = ", ".join(patterns) or "none"
            yield OUTSIDE.find(
                f"{reach.text} is outside of {boundary}, whose {reach.noun} are: {allowed}",
                reach.path,
                fix=f"Rename it, or let {fence.owner} change `{reach.noun}` of the boundary.",
            )


def judge_declared(
    fence: Fence, declared: Iterable[Declared], providers: Mapping[str, Provider]
) -> Iterator[tuple[Declared, Finding]]:
    """What of declared objects is outside of the boundary. providers: by instance."""
    for item in declared:
        provider, name = providers[item.identity.instance], item.identity.kind
        attributes = provider.types[name].canonical(item.attributes, NO_FACTS)
        for finding in find_breaches(fence, provider, name, attributes, item.address.type):
            yield item, finding


def judge_boundary(
    changes: Sequence[Change], fence: Fence | None, providers: Mapping[str, Provider]
) -> Sequence[Change]:
    """The changes, and the objects that need none, with what is outside of the boundary of each.

    providers: by instance.
    """
    if fence is None:
        return changes
    return [add_findings(change, *_find_in_change(fence, providers, change)) for change in changes]


def list_breaches(
    plan: Plan, fence: Fence | None, providers: Mapping[str, Provider]
) -> list[tuple[Change, Finding]]:
    """What an apply of this plan would change outside of the boundary, which can be younger than
    the plan."""
    if fence is None:
        return []
    return [
        (change, finding)
        for change in plan.effective
        for finding in _find_in_change(fence, providers, change)
    ]


def _find_in_change(
    fence: Fence, providers: Mapping[str, Provider], change: Change
) -> Iterator[Finding]:
    # Nothing happens to an object that stays because it is protected. To forget one is judged, too:
    # the state could be that of another folder, which would lose its objects.
    if change.block is Block.PROTECTED:
        return
    attributes = change.after or change.before
    # What takes access to a parked object away reaches nothing but that object.
    if not attributes or is_closure(change.address):
        return
    block_type = ""
    with suppress(ValueError):  # an object without a block has no address
        block_type = parse_address(change.address).type
    provider = providers.get(change.identity.instance)
    yield from find_breaches(fence, provider, change.identity.kind, attributes, block_type)
