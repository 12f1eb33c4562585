"""Equal changes of several objects are one entry; nothing that differs is hidden in one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Impact
from kafkaform.core.finding import Block, Harm
from kafkaform.render.change_entries import make_entries
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.plan_view import make_view
from kafkaform.render.review.comment import render_markdown
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.resource_kinds import WORDS as KAFKA

from ...kit.findings import block, note, risk
from . import plans
from .plans import WORDS, change, frozen, path, plan

LOSS = risk(Harm.DATA_LOSS, "retention.ms: records older than 3 d are deleted")


def lowered(name: str, **fields: object) -> Change:
    shown = {
        "before": frozen(name=name, config={"retention.ms": "604800000"}),
        "after": frozen(name=name, config={"retention.ms": "259200000"}),
        "paths": (path("config.retention.ms", "604800000", "259200000", unit="ms"),),
        "risks": (LOSS,),
    }
    return change(f'kafka_topic.events["{name}"]', name, Action.UPDATE, **(shown | fields))


def created(name: str, **config: str) -> Change:
    return change(
        f'kafka_topic.events["{name}"]',
        name,
        Action.CREATE,
        after=frozen(name=name, partitions=3, config=config),
    )


def test_equal_changes_are_one_entry() -> None:
    """Changes that differ only in the names of their objects become one entry, by address."""
    (entry,) = make_entries(lowered(name) for name in "cab")
    assert [one.identity.key for one in entry.changes] == ["a", "b", "c"]
    assert entry.lead.identity.key == "a"


def test_few_changes_stay_single() -> None:
    """Two equal changes are two entries: nothing is gained by a list of two."""
    assert [len(entry.changes) for entry in make_entries(map(lowered, "ab"))] == [1, 1]


def test_what_is_blocked_for_one_reason_is_one_entry() -> None:
    """Nothing happens to the objects, so only the reason is read, also for two of them."""
    reason = block(Block.GUARD, "nothing matches this pattern")

    def stop(name: str, **fields: object) -> Change:
        return replace(created(name, policy=name), findings=(reason,), **fields)

    (entry,) = make_entries([stop("a"), stop("b")])
    assert [change.identity.key for change in entry.changes] == ["a", "b"]
    # The comment has one row, the text one sentence.
    text = render_plan_text(plan(stop("a"), stop("b")), words=WORDS)
    comment = render_markdown(plan(stop("a"), stop("b")), words=WORDS)
    assert text.count(reason.text) == comment.count(reason.text) == 1
    other = block(Block.GUARD, "something else")
    assert len(make_entries([stop("a"), replace(stop("b"), findings=(other,))])) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"paths": (path("config.retention.ms", "604800000", "1", unit="ms"),)},
        {"notes": ("a note",)},
        {"blocked": block(Block.GUARD, "too many")},
        {"risks": ()},
        {"reason": "another reason"},
        {"instance": "kafka.eu"},
    ],
)
def test_differences_are_never_joined(fields: dict[str, object]) -> None:
    """A change with another value, note, block, risk, reason or cluster is an entry of its own."""
    entries = make_entries([*map(lowered, "abc"), lowered("d", **fields)])
    assert sorted(len(entry.changes) for entry in entries) == [1, 3]


def test_configs_are_no_names() -> None:
    """A config that equals the name of its topic is a value, so it separates two creations."""
    odd = created("compact", policy="compact")
    entries = make_entries([created("delete", policy="delete"), odd, created("c", policy="c")])
    assert [len(entry.changes) for entry in entries] == [1, 1, 1]
    (same,) = make_entries([created(name, policy="x") for name in "abc"])
    assert len(same.changes) == 3


def test_names_can_be_several_attributes() -> None:
    """What the provider says names an object does not count, and texts about it are equal."""

    def grant(who: str, operation: str = "Read") -> Change:
        return change(
            f'kafka_acl.read["{who}"]',
            f"User:{who}|{operation}|orders",
            Action.CREATE,
            after=frozen(
                acl_principal=f"User:{who}", acl_operation=operation, resource_name="orders"
            ),
            notes=(f"User:{who} gains {operation} on Topic orders",),
        )

    entry, other = make_entries([*map(grant, "abc"), grant("d", "Write")], WORDS)
    assert len(entry.changes) == 3 and other.lead.identity.key == "User:d|Write|orders"
    assert [item.text for item in entry.findings] == [
        "for example, User:a gains Read on Topic orders"
    ]
    assert [item.text for item in other.findings] == ["User:d gains Write on Topic orders"]


def test_blocks_that_name_their_objects_are_joined() -> None:
    """Each object has a reason of its own, and a reader needs one of them."""
    blocks = [
        lowered(n, blocked=block(Block.GUARD, f"{n} is the last one", "keep it")) for n in "abc"
    ]
    (entry,) = make_entries(blocks, WORDS)
    (finding,) = entry.blocks
    assert finding.text == "for example, a is the last one"
    assert finding.fix == "keep it"


def test_what_to_do_for_one_stands_for_all() -> None:
    """Of advice that names its object, one is an example, which stays whole sentences."""
    blocks = [
        lowered(n, blocked=block(Block.UNMANAGED, "it exists", f"Adopt it with --adopt={n}."))
        for n in "abc"
    ]
    (entry,) = make_entries(blocks, WORDS)
    (finding,) = entry.blocks
    assert finding.text == "it exists"
    assert finding.fix == "for example: Adopt it with --adopt=a."


def test_figures_are_added() -> None:
    """What the objects of an entry lose is added up, and names are listed once."""
    losses = [
        lowered(name, impact=Impact(f"{size} bytes", frozen(bytes=size, groups="app")))
        for name, size in (("a", 1024), ("b", 2048), ("c", 3072))
    ]
    (entry,) = make_entries(losses)
    assert entry.impact == Impact("together 6 KiB; groups: app", frozen(bytes=6144, groups="app"))


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        (({"bytes": 1024},) * 3, "together 3 KiB"),
        (({"bytes": 0},) * 3, "loses"),
        (({"bytes": 1024}, {"bytes": 1024}, {}), "together at least 2 KiB"),
        (({"bytes": 1024}, {}, {}), "together at least 1 KiB"),
        (
            ({"bytes": 0, "of_bytes": 1024, "offsets": 1, "of_offsets": 5},) * 3,
            "together 0 B of 3 KiB, 3 of 15 offsets",
        ),
        (({"copied_bytes": 2**30, "seconds": 1800},) * 3, "together 3 GiB copied, 1.5 h"),
    ],
)
def test_sums_are_those_of_all_objects(figures: tuple[dict[str, int], ...], text: str) -> None:
    """Equal figures are added up, too, and a sum with an unknown part is a lower bound."""
    losses = [
        lowered(name, impact=Impact("loses", frozen(**one)))
        for name, one in zip("abc", figures, strict=True)
    ]
    (entry,) = make_entries(losses)
    assert entry.impact is not None and entry.impact.text == text


def test_risks_with_other_figures_are_joined() -> None:
    """Risks that differ only in their figures are one risk with the sum."""
    moves = [
        lowered(n, risks=(risk(Harm.MOVE, f"{x} replicas move", (), frozen(replicas=x)),))
        for n, x in (("a", 2), ("b", 3), ("c", 4))
    ]
    (entry,) = make_entries(moves)
    assert entry.findings[0].text == "together 9 replicas; for example, 2 replicas move"


def test_grave_changes_lead() -> None:
    """The view lists the dangers of all groups, the worst first, and leaves out what is kept."""
    cut = risk(Harm.ACCESS_LOST, "User:app loses Read")
    acl = change("kafka_acl.app", "app", Action.DELETE, risks=(cut,))
    kept = block(Block.PROTECTED, "protected")
    seen = make_view(plan(acl, lowered("a"), lowered("b", blocked=kept), plans.CREATED), WORDS)
    assert [entry.lead.address for entry in seen.dangers] == [
        'kafka_topic.events["a"]',
        "kafka_acl.app",
    ]


def test_drift_is_one_entry_whatever_the_change_does() -> None:
    """Objects that drifted alike are one entry with all findings of their changes."""
    drift = (path("partitions", 3, 6),)
    calm = [lowered(name, drift=drift, risks=()) for name in "ab"]
    odd = lowered("c", drift=drift, notes=("a note",))
    ((entry,),) = (kind.entries for kind in make_view(plan(*calm, odd), WORDS).drift)
    assert len(entry.changes) == 3
    assert entry.findings == (LOSS, note("a note"))


def test_risks_are_grouped_more_coarsely() -> None:
    """Changes that differ elsewhere share a line of the risks if their grave risks are equal."""
    mild = risk(Harm.ORDERING, "partitions grow")
    odd = lowered("c", notes=("another note",), risks=(LOSS, mild))
    (entry,) = make_view(plan(*map(lowered, "ab"), odd)).dangers
    assert entry.dangers == (LOSS,) and len(entry.changes) == 3


def test_topics_come_before_acls() -> None:
    """Inside a group the grave stand first, then what contains data, then the rest."""
    acl = change("kafka_acl.a", "a", Action.UPDATE, notes=("a note",))
    calm = lowered("z", risks=())
    grave = replace(acl, address="kafka_acl.b", findings=(risk(Harm.ACCESS_LOST, "User:a"),))
    (group,) = make_view(plan(acl, calm, grave), WORDS).groups
    assert [one.address for one in group.changes] == [
        "kafka_acl.b",
        'kafka_topic.events["z"]',
        "kafka_acl.a",
    ]


def test_the_words_fit_the_types() -> None:
    """Each type has a plural, and each attribute that names its objects exists."""
    types = {**PROVIDER.types, **PROVIDER.commanded}
    for kind, words in KAFKA.kinds.items():
        # A plan has the entity of a quota as one attribute, a block as several.
        assert set(words.names) <= {*types[kind].schema.attributes, "entity"}
    assert {name for name, kind in types.items() if kind.expand is None} == set(KAFKA.kinds)
