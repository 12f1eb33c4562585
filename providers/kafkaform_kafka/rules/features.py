"""Rules of the levels of features, which `alter features` changes."""

from __future__ import annotations

from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.resource import Facts
from kafkaform.core.rule import Judge, Needs, Rule

from ..kinds.commanded.resource_types import FEATURE, UNSAFE, read_levels
from ..protocol.cluster_facts import FEATURES, METADATA_VERSION, UNKNOWN, render_level

_TYPES = (FEATURE,)
_CLAIMS = "tests/cluster/claims/test_brokers.py"

CHANGED = Rule(
    "feature-changed",
    "A feature gets another level",
    Level.NOTE,
    Harm.NONE,
    _TYPES,
    Needs.OBJECT,
    "All brokers use the level at once (KIP-584).",
    "kafkaform alter features group.version=1",
    proof="tests/cluster/cli/test_features.py::test_a_feature_is_switched_off_and_on",
)
DOWNGRADED = Rule(
    "feature-downgraded",
    "A feature is downgraded",
    Level.DANGER,
    Harm.AVAILABILITY,
    _TYPES,
    Needs.OBJECT,
    "Requests that need the higher level are refused with UNSUPPORTED_VERSION (35), and what was "
    "stored with it may be lost (KIP-584, KIP-1022).",
    "kafkaform alter features group.version=0 --downgrade",
    "Stop what uses the feature first.",
    proof=f"{_CLAIMS}::test_a_downgrade_cuts_off_consumers_of_the_new_protocol",
)
ONE_WAY = Rule(
    "feature-one-way",
    "A feature cannot be lowered again",
    Level.DANGER,
    Harm.ONE_WAY,
    _TYPES,
    Needs.OBJECT,
    "Kafka refuses every lower level of kraft.version (KIP-853), and one of metadata.version that "
    "would lose metadata (KIP-778).",
    "kafkaform alter features kraft.version=1",
    "Make sure that every broker and controller can stay at the new level.",
    proof=f"{_CLAIMS}::test_downgrades_that_kafka_refuses",
)
LOSSY = Rule(
    "feature-unsafe-downgrade",
    "An unsafe downgrade can lose metadata",
    Level.DANGER,
    Harm.DATA_LOSS,
    _TYPES,
    Needs.OBJECT,
    "The protocol allows an unsafe downgrade to drop what the lower level cannot hold (KIP-584). "
    "Kafka up to 4.3 has none for metadata.version (KAFKA-13896).",
    "kafkaform alter features group.version=0 --unsafe-downgrade",
    "Use --downgrade, with which Kafka refuses to lose metadata.",
    proof=f"{_CLAIMS}::test_downgrades_that_kafka_refuses",
)


def _judge(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action is not Action.UPDATE or not change.paths:
        return
    (before, after), name = read_levels(change), change.identity.key
    feature = FEATURES.get(name, UNKNOWN)
    path = change.paths[0].path
    levels = f"{name} {render_level(name, before)} → {render_level(name, after)}"
    yield CHANGED.find(f"{levels}: all brokers use the level at once", path)
    if after < before:
        yield DOWNGRADED.find(f"{levels}: {feature.loss}", path)
        if path == (UNSAFE,):
            refused = (
                "; Kafka up to 4.3 has no such downgrade of it" if name == METADATA_VERSION else ""
            )
            yield LOSSY.find(
                f"{levels} is an unsafe downgrade, which goes on even if metadata is lost{refused}",
                path,
            )
    elif feature.one_way:
        yield ONE_WAY.find(f"{levels}: {feature.one_way}", path)


JUDGES = (Judge((CHANGED, DOWNGRADED, LOSSY, ONE_WAY), _TYPES, Needs.OBJECT, _judge),)
