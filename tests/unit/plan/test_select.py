"""--target and --exclude: a smaller plan that is still in order."""

from __future__ import annotations

import pytest

from kafkaform.core.address import parse_address
from kafkaform.core.change import Action, Change, Ownership
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Unread
from kafkaform.plan.model import Options
from kafkaform.plan.select import narrow_changes, select_unread

from ...kit.simulated.engine import desired, identity, topic
from .worlds import absent, live, planned, row, state


def change(name: str, *needs: str, owners: tuple[str, ...] = ()) -> Change:
    address = name if "." in name else f"kafka_topic.{name}"
    return Change(
        identity(name),
        address,
        Action.CREATE,
        row_after=Ownership(owners or (address,)),
        depends_on=tuple(f"kafka_topic.{need}" for need in needs),
    )


CHAIN = [change("a"), change("b", "a"), change("c", "b"), change("d")]


def kept(options: Options, changes: list[Change] = CHAIN) -> list[str]:
    return [c.identity.key for c in narrow_changes(changes, options)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(), "abcd"),
        (Options(target=("kafka_topic.c",)), "abc"),
        (Options(target=("kafka_topic.a",)), "a"),
        (Options(target=("kafka_topic.a", "kafka_topic.d")), "ad"),
        (Options(target=("kafka_topic.*",)), "abcd"),
        (Options(exclude=("kafka_topic.a",)), "d"),
        (Options(exclude=("kafka_topic.c",)), "abd"),
        (Options(target=("kafka_topic.c",), exclude=("kafka_topic.d",)), "abc"),
        (Options(target=("kafka_topic.c",), exclude=("kafka_topic.b",)), "a"),
    ],
)
def test_targets_pull_needs_and_exclusions_drop_dependents(options: Options, expected: str) -> None:
    """What is left can be applied in order."""
    assert "".join(kept(options)) == expected


@pytest.mark.parametrize("flag", ["target", "exclude"])
def test_a_glob_that_names_nothing_is_an_error(flag: str) -> None:
    """A typing mistake must neither widen nor empty a plan."""
    with pytest.raises(UsageError, match="kafka_topic.z"):
        narrow_changes(CHAIN, Options(**{flag: ("kafka_topic.a", "kafka_topic.z")}))


def test_every_owner_of_a_shared_object_names_it() -> None:
    """An object of two blocks is found under either address."""
    shared = change("a", owners=("kafka_topic.a", "kafka_topic.twin"))
    assert kept(Options(target=("kafka_topic.twin",)), [shared, change("b")]) == ["a"]


def test_a_dependency_on_the_other_owner_still_counts() -> None:
    """Whoever needs kafka_topic.twin needs the object that it shares."""
    shared = change("a", owners=("kafka_topic.a", "kafka_topic.twin"))
    assert kept(Options(target=("kafka_topic.b",)), [shared, change("b", "twin")]) == ["a", "b"]


def test_a_dependency_on_a_composite_means_all_its_parts() -> None:
    """`depends_on = [kafka_access.x["k"]]` waits for every ACL of that instance."""
    parts = [
        change('kafka_access.x["k"]/acl["1"]'),
        change('kafka_access.x["k"]/acl["2"]'),
        change('kafka_access.x["j"]/acl["1"]'),
    ]
    user = Change(
        identity("u"), "kafka_topic.u", Action.CREATE, depends_on=('kafka_access.x["k"]',)
    )
    found = narrow_changes([*parts, user], Options(target=("kafka_topic.u",)))
    assert [c.address for c in found] == [parts[0].address, parts[1].address, "kafka_topic.u"]


def test_a_target_never_counts_what_it_leaves_out() -> None:
    """Guards, blocks and the approval see the narrowed plan only."""
    said = desired(topic("a"), topic("b", 3))
    whole = [absent("a"), live("b", 5)]
    recorded = state(row("b", 5))
    plan = planned(said, whole, recorded)
    assert list(plan.list_blocked(stopping=True))
    part = planned(said, whole, recorded, options=Options(target=("kafka_topic.a",)))
    assert [c.address for c in part.changes] == ["kafka_topic.a"]
    assert part.approval != plan.approval or part.effective == plan.effective


@pytest.mark.parametrize(
    "glob",
    [
        "module.m.module.n.kafka_access.late",
        'module.m["a.b]"].module.n[0].kafka_access.late["x"]',
        'module.m["a"]',
        "module.m[*",
        "module.m.module.n.kafka_access.late/acl*",
        "module.*.kafka_access.late",
    ],
)
def test_a_block_in_a_module_that_could_not_be_evaluated_can_be_named(glob: str) -> None:
    """Neither the instances of the module nor the parts of a composite are known."""
    source = parse_address("module.m.module.n.kafka_access.late")
    blocks = [Unread(source, "data.kafka_topics.x cannot be read")]
    options = Options(target=(glob,))
    assert narrow_changes(CHAIN, options, unread=blocks) == ()
    assert select_unread(blocks, options) == (str(source),)


@pytest.mark.parametrize("glob", ['module.o["a"]', "kafka_access.late", "module.m.kafka_topic.x"])
def test_another_block_is_still_a_typing_error(glob: str) -> None:
    """What is not read has a name."""
    block = Unread(parse_address("module.m.module.n.kafka_access.late"), "x")
    with pytest.raises(UsageError, match="matches no declared or recorded object"):
        narrow_changes(CHAIN, Options(target=(glob,)), unread=[block])


@pytest.mark.parametrize("glob", ["kafka_topic.late", 'kafka_topic.late["a"]', "kafka_topic.l*"])
@pytest.mark.parametrize("flag", ["target", "exclude"])
def test_a_block_that_could_not_be_evaluated_can_be_named(flag: str, glob: str) -> None:
    """Its objects are not known, so the plan says that it is left out, and not that nobody
    declares it."""
    blocks = [Unread(parse_address("kafka_topic.late"), "data.kafka_topics.x cannot be read")]
    options = Options(**{flag: (glob,)})
    assert narrow_changes(CHAIN, options, unread=blocks) == narrow_changes(
        CHAIN if flag == "exclude" else [], Options()
    )
    assert select_unread(blocks, options) == (("kafka_topic.late",) if flag == "target" else ())
