"""Features of the cluster: what is sent for a level, what a lower one takes away, and what is
typed."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, Evidence, PathChange, Repeat
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Absent, Fault, FaultClass, Identity, Observed
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.commands.commanded import alter_features, parse_level
from kafkaform_kafka.inspect.documents import render_features
from kafkaform_kafka.kinds.commanded.requests import find_feature_fault
from kafkaform_kafka.kinds.commanded.resource_types import (
    FEATURE,
    FEATURE_TYPE,
    LEVEL,
    UNSAFE,
    make_feature,
)
from kafkaform_kafka.protocol.cluster_facts import (
    FEATURES,
    LEVELS,
    UNKNOWN,
    find_level,
    find_level_release,
)
from kafkaform_kafka.wire.cluster import FeatureRow

from ....kit.kafka.changes import FACTS
from ....kit.kafka.judgement import judge

IDENTITY = Identity("kafka", FEATURE, "group.version")
READING = Observed(IDENTITY, make_feature("group.version", 1))


def update(name: str, before: int, after: int, path: str = LEVEL) -> Change:
    return Change(
        Identity("kafka", FEATURE, name),
        "kafka_feature.alter",
        Action.UPDATE,
        FrozenMap({"name": name, path: before}),
        FrozenMap({"name": name, path: after}),
        (PathChange((path,), before, after),),
    )


@pytest.mark.parametrize(
    ("change", "upgrade_type"),
    [
        (update("group.version", 0, 1), 1),
        (update("group.version", 1, 0), 2),
        (update("group.version", 1, 0, UNSAFE), 3),
    ],
)
def test_the_direction_decides_what_is_allowed(change: Change, upgrade_type: int) -> None:
    """Only what was asked for as unsafe may lose metadata. The broker tries each of them first."""
    (step,) = FEATURE_TYPE.steps(change, FACTS)
    assert step.payload["upgrade_type"] == upgrade_type
    assert (step.request.name, step.request.part, step.request.phase) == ("UpdateFeatures", 1, 100)
    assert (step.repeat, step.evidence, step.weight) == (Repeat.SAFE, Evidence.REMOTE, 1)


@pytest.mark.parametrize("name", [*FEATURES, "of.a.newer.kafka"])
@pytest.mark.parametrize("path", [LEVEL, UNSAFE])
def test_a_downgrade_says_what_it_takes_away(name: str, path: str) -> None:
    """In the plan, before anybody approves it; an unsafe one also says what that means."""
    unsafe = ["feature-unsafe-downgrade"] if path == UNSAFE else []
    rules = [finding.rule for finding in judge(update(name, 2, 1, path))]
    assert rules == [*unsafe, "feature-downgraded", "feature-changed"]
    one_way = ["feature-one-way"] if FEATURES.get(name, UNKNOWN).one_way else []
    rules = [finding.rule for finding in judge(update(name, 1, 2))]
    assert rules == [*one_way, "feature-changed"]


@pytest.mark.parametrize(
    ("level", "release"),
    [(3, None), (4, "3.3"), (7, "3.3"), (8, "3.4"), (26, "4.1"), (27, "4.1"), (30, "4.3")],
)
def test_levels_of_metadata_version_have_releases(level: int, release: str | None) -> None:
    """Also those between two releases; of a newer Kafka nothing is claimed."""
    assert find_level_release(level) == release
    assert find_level_release(max(LEVELS) + 1) is None


def test_a_release_has_its_highest_level() -> None:
    """As `kafka-features.sh --release-version` takes it."""
    assert find_level("4.1") == 27 and find_level("9.9") is None
    assert all(find_level_release(level) == name for level, name in LEVELS.items())


# ── what is typed ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("group.version=1", ("group.version", 1)),
        ("group.version=0", ("group.version", 0)),
        ("metadata.version=4.1", ("metadata.version", 27)),
        ("metadata.version=27", ("metadata.version", 27)),
    ],
)
def test_a_level_is_a_number_or_a_release(text: str, level: tuple[str, int]) -> None:
    """A release only for metadata.version."""
    assert parse_level(text) == level


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("group.version", "is not FEATURE=LEVEL"),
        ("=1", "is not FEATURE=LEVEL"),
        ("group.version=", "is not a level of group.version"),
        ("group.version=-1", "is not a level of group.version"),
        ("group.version=4.1", "is not a level of group.version"),
        ("group.version=99999", "is not a level of group.version"),
        ("metadata.version=9.9", "the level of metadata.version for Kafka 9.9 is not known"),
    ],
)
def test_what_is_no_level(text: str, said: str) -> None:
    """Each is refused before anything connects."""
    with pytest.raises(UsageError) as refused:
        alter_features([text])
    assert said in refused.value.message


def edit(level: int, **flags: bool) -> FrozenMap | None:
    (draft,) = alter_features([f"group.version={level}"], **flags).drafts
    return draft.edit(READING.attributes, READING)


def test_a_downgrade_needs_a_flag() -> None:
    """The error says what is lost, and the two flags."""
    with pytest.raises(UsageError) as refused:
        edit(0)
    assert "can no longer join their groups" in refused.value.message
    assert "--downgrade" in refused.value.advice and "--unsafe-downgrade" in refused.value.advice
    assert edit(0, downgrade=True) == FrozenMap(name="group.version", level=0)
    assert edit(0, unsafe=True) == FrozenMap(name="group.version", unsafe_downgrade_to=0)


@pytest.mark.parametrize("flags", [{"downgrade": True}, {"unsafe": True}])
def test_a_flag_for_a_downgrade_allows_no_upgrade(flags: dict[str, bool]) -> None:
    """Kafka refuses that too; the level that is there already is neither."""
    with pytest.raises(UsageError, match="is no downgrade"):
        edit(2, **flags)
    assert edit(1, **flags) == FrozenMap(name="group.version", level=1)


def test_flags_and_names_that_exclude_each_other() -> None:
    """Nobody has to guess which one counts."""
    with pytest.raises(UsageError, match="exclude each other"):
        alter_features(["group.version=0"], downgrade=True, unsafe=True)
    with pytest.raises(UsageError, match="given twice"):
        alter_features(["group.version=0", "group.version=1"])
    assert len(alter_features(["group.version=1", "group.version=1"]).drafts) == 1


def test_a_feature_that_is_not_there() -> None:
    """With the name that was probably meant."""
    (draft,) = alter_features(["group.versoin=1"]).drafts
    with pytest.raises(UsageError) as refused:
        draft.edit(None, Absent(IDENTITY))
    assert "group.version" in refused.value.advice


# ── what is read ────────────────────────────────────────────────────────────────────────


def test_levels_that_a_broker_does_not_know_are_no_levels() -> None:
    """An empty list with the epoch -1 says nothing."""
    fault = find_feature_fault(FeatureRow(-1, {}, {"group.version": (0, 1)}))
    assert fault is not None and fault.kind is FaultClass.DEFINITE
    lost = Fault("NO_ANSWER", "no answer", FaultClass.AMBIGUOUS)
    assert find_feature_fault(lost) is lost
    assert find_feature_fault(FeatureRow(0, {}, {})) is None


def document(*brokers: dict[str, tuple[int, int]] | None) -> FrozenMap:
    """What is known of these brokers; None for one that does not answer."""
    rows = [
        FrozenMap(
            id=number,
            supported=None
            if ranges is None
            else FrozenMap({n: FrozenMap(min=low, max=high) for n, (low, high) in ranges.items()}),
        )
        for number, ranges in enumerate(brokers, 1)
    ]
    return FrozenMap(
        finalized_epoch=7,
        features=(
            FrozenMap(
                name="metadata.version",
                level=27,
                release="4.1",
                supported=FrozenMap(min=7, max=29),
                raise_to=29,
                enables="the format",
            ),
            FrozenMap(
                name="share.version",
                level=0,
                release=None,
                supported=None,
                raise_to=None,
                enables="share groups",
            ),
        ),
        brokers=tuple(rows),
    )


def test_the_page_says_what_raises_levels() -> None:
    """The command, with every feature that all brokers support at a higher level."""
    same = {"metadata.version": (7, 29)}
    grid, *lines = render_features(document(same, same))
    assert grid.rows[1] == (  # type: ignore[union-attr]  # it is the grid
        "metadata.version",
        "27 (Kafka 4.1)",
        "7 to 29",
        "29 (Kafka 4.2)",
        "the format",
    )
    assert grid.rows[2][1:4] == ("0", "no common level", "-")  # type: ignore[union-attr]
    assert lines[:2] == [
        "Finalized epoch 7.",
        "metadata.version can be raised, but a way back may not exist: Kafka refuses a downgrade "
        "that would lose metadata.",
    ]


def test_no_command_is_proposed_that_cannot_be_taken_back() -> None:
    """`kraft.version=1` was part of a line to copy, and Kafka never lowers it again."""
    rows = [
        FrozenMap(
            name=name,
            level=0,
            release=None,
            supported=FrozenMap(min=0, max=1),
            raise_to=1,
            enables="",
        )
        for name in ("group.version", "kraft.version", "unheard.of", "share.version")
    ]
    whole = document({}, {}).with_items({"features": tuple(rows)})
    lines = [part for part in render_features(whole) if isinstance(part, str)]
    assert lines[1] == "To raise them: `kafkaform alter features group.version=1 share.version=1`."
    assert lines[3].startswith("kraft.version can be raised, but there is no way back")
    assert lines[4].startswith("unheard.of can be raised, but whether it can be lowered again")


def test_brokers_that_differ_are_listed() -> None:
    """In the middle of an upgrade; who does not answer is named."""
    page = list(render_features(document({"a": (0, 1)}, {"a": (0, 2), "b": (0, 1)}, None)))
    said = [line for line in page if isinstance(line, str)]
    assert said[0] == "What broker 3 supports is unknown: it does not answer."
    assert said[1].startswith("The brokers differ")
    (grid,) = (part for part in page[1:] if not isinstance(part, str))
    assert grid.rows == (("Broker", "a", "b"), ("1", "0 to 1", "-"), ("2", "0 to 2", "0 to 1"))  # type: ignore[union-attr]
