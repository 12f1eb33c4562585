"""Writes the tables of docs/compatibility.md: `python docs/versions.py`.

They are those of the Kafka provider: `protocol/apis`, `features`, `config_keys` and `broker_keys`.
A test compares the page with what this makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from kafkaform.core.resource import Facts
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.protocol.cluster_facts import (
    CAPABILITIES,
    RELEASES,
    Capability,
    explain_absence,
)
from kafkaform_kafka.protocol.config_keys import (
    ALL_TOPIC_KEYS,
    DYNAMIC_WITH_ZOOKEEPER,
    GROUP_KEYS,
    REPLACEMENTS,
    ConfigKey,
    UpdateMode,
    all_broker_keys,
    broker_keys,
)
from kafkaform_kafka.protocol.faults import fault_of

PAGE = Path(__file__).parent / "compatibility.md"
BEGIN, END = "<!-- Made by docs/versions.py. -->", "<!-- End of what docs/versions.py makes. -->"


def render_tables() -> str:
    """What is between BEGIN and END."""
    return "\n".join(
        (
            "",
            "| what | exists since | without it | message |",
            "|---|---|---|---|",
            *map(_render_feature, CAPABILITIES),
            *_render_requests(),
            "",
            "| config | of | exists |",
            "|---|---|---|",
            *_render_spans("topics", ALL_TOPIC_KEYS.values()),
            *_render_spans("groups", GROUP_KEYS.values()),
            *_render_dynamic(),
            "",
        )
    )


def _render_feature(capability: Capability) -> str:
    before = RELEASES[RELEASES.index(capability.since) - 1]
    told = explain_absence(capability, Facts("", values=FrozenMap(kafka_version=before)))
    only = "" if capability.zookeeper else ", only with KRaft"
    return f"| {capability.name} | {capability.since}{only} | {capability.without} | `{told}` |"


def _render_requests() -> Iterator[str]:
    for api in sorted(APIS.values(), key=lambda api: api.name):
        if api.without:
            told = fault_of(api.name, 35, "").message.partition(" (likely cause")[0]
            since = api.needs.removeprefix("Kafka ")
            yield f"| the request {api.name} | {since} | {api.without} | `{told}` |"


def _render_spans(of: str, keys: Iterable[ConfigKey]) -> Iterator[str]:
    rows = sorted((_describe_span(key), key.name) for key in keys if key.since or key.until)
    for span, names in groupby(rows, key=lambda row: row[0]):
        yield f"| {', '.join(f'`{name}`' for _, name in names)} | {of} | {span} |"


def _describe_span(key: ConfigKey) -> str:
    if key.since:
        return f"since {key.since}"
    instead = " and ".join(f"`{name}`" for name in REPLACEMENTS.get(key.name, ()))
    return f"before {key.until}" + (f"; then {instead}" if instead else "")


def _render_dynamic() -> Iterator[str]:
    rows = sorted(
        (
            *(
                (f"can be changed since {row.key.since}", name)
                for name, row in broker_keys().items()
                if row.key.since
            ),
            *(
                (f"before {row.key.until}", name)
                for name, row in all_broker_keys().items()
                if row.key.until and row.mode is not UpdateMode.READ_ONLY
            ),
            *(("can be changed only with ZooKeeper", name) for name in DYNAMIC_WITH_ZOOKEEPER),
        )
    )
    for span, names in groupby(rows, key=lambda row: row[0]):
        yield f"| {', '.join(f'`{name}`' for _, name in names)} | brokers, the cluster | {span} |"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{render_tables()}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
