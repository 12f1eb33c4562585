"""What a folder declares in one round of the kill proof, drawn at random, and the next round's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

SLOTS = 40
MAX_PARTITIONS = 6
MAX_REMOVED = 8
"""A plan that deletes ten objects and a third of all is refused unless a flag allows it."""

VALUES = {
    "retention.ms": ("3600000", "7200000", "86400000"),
    "max.message.bytes": ("100000", "200000", "300000"),
    "segment.bytes": ("1048576", "2097152", "4194304"),
    "cleanup.policy": ("delete", "compact", "compact,delete"),
}
GROUPS = ("made", "taken")
"""Blocks: topics that kafkaform creates, and topics that it adopts."""


@dataclass(frozen=True)
class Topic:
    """group: the block that declares it, for as long as it lives."""

    group: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class Desire:
    """topics: by slot; removed: slot -> group of those that this round deletes; adopted: slot ->
    what somebody else has made of a topic before kafkaform takes it over."""

    prefix: str
    topics: Mapping[str, Topic] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    adopted: Mapping[str, Topic] = field(default_factory=dict)

    def name(self, slot: str) -> str:
        return f"{self.prefix}{slot}"

    def hcl(self) -> str:
        """The configuration's text."""
        return "\n".join((*(_block(self, group) for group in GROUPS), *_removed(self)))

    def next(self, random: Random) -> Desire:
        """Some topics come, some grow, some change their configs, some go, most of them stay."""
        fresh = Desire(self.prefix, dict(self.topics))
        topics, removed, adopted = dict(self.topics), dict[str, str](), dict[str, Topic]()
        for slot in (f"s{number:02}" for number in range(SLOTS)):
            dice, old = random.random(), self.topics.get(slot)
            if old is None:
                if dice < 0.3:
                    topics[slot] = Topic("made", random.randint(1, 3), _config(random))
                elif dice < 0.6:
                    adopted[slot], topics[slot] = _foreign(random)
            elif dice < 0.12 and len(removed) < MAX_REMOVED:
                removed[slot] = topics.pop(slot).group
            elif dice < 0.5:
                topics[slot] = _changed(old, random)
        return replace(fresh, topics=topics, removed=removed, adopted=adopted)


def _config(random: Random) -> dict[str, str]:
    keys = random.sample(sorted(VALUES), random.randint(0, 3))
    return {key: random.choice(VALUES[key]) for key in sorted(keys)}


def _changed(old: Topic, random: Random) -> Topic:
    """Another config, more partitions, or both."""
    more = min(MAX_PARTITIONS, old.partitions + random.randint(0, 2))
    return replace(old, partitions=more, config=_config(random) if random.random() < 0.7 else {})


def _foreign(random: Random) -> tuple[Topic, Topic]:
    """A topic as somebody made it and as we want it, with no override that we do not declare:
    such a one would be kept until the next plan."""
    wanted = Topic("taken", random.randint(1, 4), _config(random))
    found = {key: random.choice(VALUES[key]) for key in wanted.config if random.random() < 0.7}
    return Topic("taken", random.randint(1, wanted.partitions), found), wanted


def _block(desire: Desire, group: str) -> str:
    rows = "\n".join(
        f"    {slot} = {{ partitions = {topic.partitions}, config = {_map(topic.config)} }}"
        for slot, topic in desire.topics.items()
        if topic.group == group
    )
    adopt = "\n  lifecycle {\n    adopt = true\n  }" if group == "taken" else ""
    return f"""
resource "kafka_topic" "{group}" {{
  for_each = {{
{rows}
  }}

  name       = "{desire.prefix}${{each.key}}"
  partitions = each.value.partitions
  config     = each.value.config{adopt}
}}
"""


def _map(config: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f'"{key}" = "{value}"' for key, value in config.items()) + " }"


def _removed(desire: Desire) -> Iterator[str]:
    for slot, group in desire.removed.items():
        yield f"""
removed {{
  from = kafka_topic.{group}["{slot}"]
  lifecycle {{
    destroy = true
  }}
}}
"""
