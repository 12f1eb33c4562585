"""The engine's own rows in the table of rules (protection, ownership, reading, guards, users), and
the judgement of a block alone: by rules that need only a block, and by the boundary of its folder,
the names that its blocks may have or touch.

Providers add their rows (`Provider.load_rules`), and each policy is a row as well (`policy/NAME`).
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
from ..core.finding import Block, Finding, Harm, Level
from ..core.resource import Declared, Facts, Fence, Identity
from ..core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import Provider, ResourceType
from .diff import compare
from .model import Plan


def _block(
    id: str, title: str, block: Block, needs: Needs, reason: str, example: str, fix: str
) -> Rule:
    return Rule(id, title, Level.BLOCK, Harm.NONE, (), needs, reason, example, fix, block)


def _note(
    id: str, title: str, reason: str, example: str, level: Level = Level.NOTE, fix: str = ""
) -> Rule:
    return Rule(id, title, level, Harm.NONE, (), Needs.OBJECT, reason, example, fix)


PROTECTED = _block(
    "object-protected",
    "The object is protected from deletion",
    Block.PROTECTED,
    Needs.OBJECT,
    "A deletion destroys what nobody can restore, so a block that is merely gone deletes nothing: "
    "the state records the protection of each object.",
    'kafka_topic "orders" { … }   # the block is removed from the files',
    "Add a `removed` block with lifecycle { destroy = true }, or set prevent_destroy = false "
    "first.",
)
PARKED = Rule(
    "object-parked",
    "The object is parked before it is deleted",
    Level.BLOCK,
    Harm.NONE,
    (),
    Needs.OBJECT,
    "Access to the object is taken away first. Whoever still needs it shows up in that time, and "
    "nothing is lost yet: if a block declares the object again, it is as before.",
    'kafka_topic "orders" { … lifecycle { park = "7d" } }   # the block is removed from the files',
    "Declare it again to keep it, or delete it at once with --accept object-parked.",
    Block.PROTECTED,
    accept=True,
)
UNPARKABLE = Rule(
    "object-not-parkable",
    "The object cannot be parked, so it is not deleted",
    Level.BLOCK,
    Harm.NONE,
    (),
    Needs.OBJECT,
    "A block that says `park` asks that nothing is deleted whose access was not taken away first.",
    "the system has no access rules",
    "Delete it at once with --accept object-parked, or declare it again to keep it.",
    Block.PROTECTED,
)
RESERVED = _block(
    "object-reserved",
    "The system keeps the object for itself",
    Block.PROTECTED,
    Needs.OBJECT,
    "Systems have objects of their own, which they create and change themselves.",
    'kafka_topic "offsets" { name = "__consumer_offsets" … }',
    "Remove the block, or take the object out of the state with `kafkaform state rm`.",
)
RENAMED = _block(
    "object-renamed",
    "A block names another object now",
    Block.CONFLICT,
    Needs.OBJECT,
    "kafkaform never renames or replaces an object, because that would delete what is in it.",
    'kafka_topic "orders" { name = "orders-v2" … }   # was "orders"',
    "Give the new object its own block.",
)
UNMANAGED = _block(
    "object-unmanaged",
    "The object exists and is not managed",
    Block.UNMANAGED,
    Needs.OBJECT,
    "Somebody else made the object, and only a reviewed adoption makes it ours.",
    'kafka_topic "orders" { name = "orders" … }   # exists already',
    "Adopt it with --adopt=ADDRESS, lifecycle { adopt = true } or an import block.",
)
RECREATED = _block(
    "object-recreated",
    "The object was recreated outside kafkaform",
    Block.UNMANAGED,
    Needs.OBJECT,
    "An object with another id under the same name is another object: whoever made it may have "
    "data in it.",
    "the object is deleted and created again with another tool",
    "Check the new object, then adopt it with --adopt=ADDRESS.",
)
UNREADABLE = _block(
    "object-unreadable",
    "The object could not be read",
    Block.UNREADABLE,
    Needs.OBJECT,
    "A failed read is never taken for an absence, so nothing is decided about the object.",
    "the login has no right to see the object",
    "Grant the missing right, or leave the object out with --exclude.",
)
WAITING = _block(
    "object-waiting",
    "The change waits for something that could not be read",
    Block.WAITING,
    Needs.PLAN,
    "What depends on an unread object, or what an unread object uses, is not changed before that "
    "object can be read.",
    "a registry does not answer, and a connector depends on one of its schemas",
    "Make sure that it can be read: the first apply that reads it makes this change.",
)
MISSING = _block(
    "object-missing",
    "The object, or what it belongs to, does not exist",
    Block.IMPOSSIBLE,
    Needs.OBJECT,
    "Only an object that exists can be imported, or have settings of its own.",
    'import { to = kafka_topic.orders  id = "ordres" }',
    "Correct the name, or create it first.",
)
UNFINISHED = _note(
    "object-task-running",
    "A task on the object is not finished",
    "Long work goes on between runs; a plan compares with what it leads to.",
    "a move of data that an earlier run started",
)
DISPUTED = _note(
    "object-disputed",
    "Servers report the object differently",
    "Servers learn of a change one after the other; one that stays behind shows old values.",
    "one server was restarted and has not caught up",
    Level.CAUTION,
    "Plan again when all servers report the same.",
)
REMARKED = _note(
    "object-setting-left",
    "Objects have a setting that nobody declares",
    "Another tool or an earlier run set it for the time of a task and did not remove it.",
    "a limit on the speed of a move that has ended",
    Level.CAUTION,
    "Remove the setting, or declare it if it is meant to stay.",
)
TAKEN = _note(
    "values-taken-over",
    "Values that are set already belong to the block from now on",
    "A later release of the block removes them.",
    "a block sets a value that somebody else has set already",
)
KEPT = _note(
    "values-kept",
    "Values that nobody declares stay",
    "What others set on an object is kept where the object is shared, or until the next plan.",
    "an adopted object has a setting that its block does not declare",
)
LEFT_ALONE = _note(
    "object-left-alone",
    "The object of this name is left alone",
    "It was recreated outside kafkaform, so it is another object than the recorded one.",
    "the recorded object was deleted and created again with another tool",
)
SHARED = _note(
    "object-shared-stays",
    "A shared object is forgotten and not deleted",
    "Other folders can still need it, and a plan of one folder does not see whether they do.",
    "a block with lifecycle { shared = true } is removed",
    Level.CAUTION,
    "If no folder needs it any more, let the last one declare it without `shared`, apply that, and "
    "then remove the block.",
)
SHARED_BY_TWO = _block(
    "object-in-two-folders",
    "Two folders of a repository have the same object",
    Block.CONFLICT,
    Needs.BLOCK,
    "Each of them would change the object back to its own block, or delete what the other one "
    "needs.",
    'kafka_topic "orders" { name = "shop.orders" … }   # in teams/shop and in platform',
    "Let one of the folders have it. The other one lets it go with a `removed` block without "
    "`destroy`.",
)
SHARED_UNEQUALLY = _block(
    "object-shared-differs",
    "Two folders want different values of a shared object",
    Block.CONFLICT,
    Needs.BLOCK,
    "The apply of each folder would undo that of the other one.",
    "a shared limit is 1 MB/s in teams/shop and 2 MB/s in teams/pay",
    "Write the same values in both folders.",
)
LIMIT_DELETIONS = Rule(
    "guard-deletions",
    "The plan deletes much more than usual",
    Level.BLOCK,
    Harm.DATA_LOSS,
    (),
    Needs.PLAN,
    "A wrong folder, workspace or variable shows itself by many deletions.",
    "the plan deletes 12 of 20 recorded objects of a kind",
    "Check the deletions. If you want all of them, allow them with --max-deletes N, or with "
    "--accept guard-deletions.",
    Block.GUARD,
    accept=True,
)
LIMIT_DATA_LOSS = Rule(
    "guard-data-loss",
    "The plan could destroy data of many objects",
    Level.BLOCK,
    Harm.DATA_LOSS,
    (),
    Needs.PLAN,
    "One default in a module can cut the data of every object.",
    "a variable lowers the retention of 12 of 20 objects",
    "Check the risks of data loss. If you accept all of them, allow them with --max-data-loss N, "
    "or with --accept guard-data-loss.",
    Block.GUARD,
    accept=True,
)
EMPTY_CONFIGURATION = _block(
    "guard-empty-configuration",
    "The configuration declares nothing",
    Block.GUARD,
    Needs.PLAN,
    "A wrong folder looks like a configuration without any object, and would delete everything.",
    "kafkaform apply in a folder without files",
    "To delete everything, use `kafkaform destroy`. Otherwise check the folder (--chdir) and the "
    "variables.",
)
USED = Rule(
    "object-in-use",
    "Something stops working without the object",
    Level.DANGER,
    Harm.AVAILABILITY,
    (),
    Needs.PLAN,
    "What works with an object stops, or fails at its next start, when the object is gone.",
    "the plan deletes what a connector that stays reads from",
    "Change or delete its users first.",
)
MENTIONED = Rule(
    "object-mentioned",
    "Something names the object",
    Level.NOTE,
    Harm.NONE,
    (),
    Needs.PLAN,
    "It goes on without the object.",
    "an access rule names an object that the plan deletes",
)
RELIED_ON = Rule(
    "object-relied-on",
    "Something needs the object that the change endangers",
    Level.NOTE,
    Harm.NONE,
    (),
    Needs.PLAN,
    "What works with an object meets whatever becomes of it.",
    "the plan endangers the data that a connector reads",
    "Tell those who run its users before you apply.",
)
UNDONE = _note(
    "value-undone",
    "The change was undone, and the configuration still has it",
    "An undo changes the system, never the files. Until their change is reverted, each plan makes "
    "what was undone again.",
    "`kafkaform undo RUN`, and no revert of the commit that the run applied",
    Level.CAUTION,
    "Revert the change of the configuration in Git, or apply it to have it again.",
)
RIGHT_MISSING = Rule(
    "right-missing",
    "The object needs a right that is missing",
    Level.DANGER,
    Harm.AVAILABILITY,
    (),
    Needs.PLAN,
    "A system that works on others' objects acts as a principal, which needs rights on them.",
    "a connector reads an object that its principal may not read",
    "Grant the right in the same plan.",
)
USED_MISSING = Rule(
    "used-object-missing",
    "The object works with another one that does not exist",
    Level.CAUTION,
    Harm.NONE,
    (),
    Needs.PLAN,
    "What an object names has to be there, or something has to create it before the object works. "
    "It is neither live nor declared here.",
    "a connector reads an object whose name is misspelt",
    "Correct the name, or declare the object.",
)
RULE_FAILED = _block(
    "rule-failed",
    "A rule could not judge the change",
    Block.IMPOSSIBLE,
    Needs.BLOCK,
    "A rule that raises is a fault of kafkaform. A change that was not judged must not pass.",
    "a fault in a rule",
    "Please report it. Leave the object out with --exclude to go on.",
)
OUTSIDE = _block(
    "boundary-name",
    "The block names something outside of its folder's boundary",
    Block.POLICY,
    Needs.BLOCK,
    "A boundary keeps each folder of a repository to its own names. A pattern is inside only if "
    "everything that it covers is inside: the prefix `shop` also covers shopping.",
    'kafka_topic "payments" { name = "billing.payments" … }   # in teams/shop',
    "Rename it, or let whoever can change kafkaform.hcl add it to the boundary.",
)
UNLIMITED = _block(
    "boundary-unlimited",
    "The block has an effect that no boundary covers",
    Block.POLICY,
    Needs.BLOCK,
    "Some objects have no name that a boundary could list, such as the settings of a whole system. "
    "A folder with a boundary cannot declare them.",
    "a folder with a boundary declares the settings of a whole system",
    "Declare it in a folder without a boundary.",
)
DENIED = _block(
    "boundary-denied",
    "The folder's boundary denies this type of object",
    Block.POLICY,
    Needs.BLOCK,
    "`deny` of a boundary lists the types that its folders must not declare at all.",
    'boundary { deny = ["kafka_topic"] }',
    "Declare it in another folder, or let whoever can change kafkaform.hcl change the boundary.",
)
CONSEQUENCES_UNKNOWN = Rule(
    "consequences-unknown",
    "Whom dangerous changes hit could not be found out",
    Level.NOTE,
    Harm.NONE,
    (),
    Needs.SYSTEM,
    "A plan asks a system who uses what dangerous changes are about, and the plans of one run "
    "share the time for that. A look that fails or that there is no time for neither passes nor "
    "blocks a change.",
    "kafkaform plan --impact fast   # and a node does not answer",
    "Look at the users of these objects before you apply, or plan again.",
)

ENGINE_RULES: tuple[Rule, ...] = (
    PROTECTED,
    PARKED,
    UNPARKABLE,
    RESERVED,
    RENAMED,
    UNMANAGED,
    RECREATED,
    UNREADABLE,
    WAITING,
    MISSING,
    UNFINISHED,
    DISPUTED,
    REMARKED,
    TAKEN,
    KEPT,
    LEFT_ALONE,
    SHARED,
    SHARED_BY_TWO,
    SHARED_UNEQUALLY,
    LIMIT_DELETIONS,
    LIMIT_DATA_LOSS,
    EMPTY_CONFIGURATION,
    USED,
    MENTIONED,
    RELIED_ON,
    UNDONE,
    RIGHT_MISSING,
    USED_MISSING,
    CONSEQUENCES_UNKNOWN,
    RULE_FAILED,
    OUTSIDE,
    UNLIMITED,
    DENIED,
)
"""The rules that the engine judges by itself."""


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
