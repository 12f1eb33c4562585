"""Judge declared objects by the rules that need only a block, and run single judges for all others.

Kept apart from `judge.py`, because `validate` and the editor load nothing of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.change import Action, Change
from ..core.finding import Finding
from ..core.resource import Declared, Facts, Identity
from ..core.rule import Judge, Needs, Rule, RuleBook
from ..core.value import FrozenMap
from ..provider.contract import Provider, ResourceType
from .diff import compare
from .rules import ENGINE_RULES, RULE_FAILED

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
    books, judges = load_books(providers), dict[tuple[str, str], list[Judge]]()
    for item in declared:
        instance, name = item.identity.instance, item.identity.kind
        kind = providers[instance].types[name]
        if (instance, name) not in judges:
            judges[instance, name] = [
                judge
                for judge in books[instance].judges
                if judge.needs is Needs.BLOCK and name in judge.types
            ]
        if not judges[instance, name]:
            continue
        after = kind.canonical(item.attributes, NO_FACTS)
        change = make_creation(item.identity, str(item.address), after, kind)
        for judge in judges[instance, name]:
            yield from ((item, finding) for finding in run_judge(judge, change, NO_FACTS))


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


def make_failure(rules: Sequence[Rule], error: Exception) -> Finding:
    """The block for a change that some rules could not judge."""
    ids = ", ".join(rule.id for rule in rules)
    return RULE_FAILED.find(
        f"the rules {ids} could not judge it: {type(error).__name__}: {error}. This is a bug in "
        "kafkaform"
    )
