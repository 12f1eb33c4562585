"""The disks of brokers in the document and on the page of `describe brokers --disks`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkaform.core.resource import Fault
from kafkaform.core.text import Page, render_amount, render_days
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import Column, cell, make_grid

from ..capacity.projection import NO_GROWTH, Disk, LogGrowth, Place, Replica, project_disk
from ..capacity.readings import measure_partitions, read_disks, read_growth, read_settings
from ..wire.topics import list_topics
from .cells import count, size
from .source import DescribeSource, Gap, document_gap, render_problem


def document_disks(source: DescribeSource, rows: Sequence[FrozenMap]) -> dict[str, Value]:
    """Members of the document `brokers`: the brokers with the disks of those that live, and `gaps`,
    what could not be read. rows: the brokers."""
    reading = read_disks(source, [row["id"] for row in rows if not row["fenced"]])
    gaps = [
        Gap(f"the disks of broker {broker} are unknown", fault, str(broker))
        for broker, fault in reading.faults.items()
    ]
    growth, gap = _read_growth(source, reading.disks)
    by_broker: dict[int, list[FrozenMap]] = defaultdict(list)
    for disk in reading.disks:
        by_broker[disk.broker].append(_document_disk(disk, growth))
    brokers = tuple(
        row.with_items(
            {
                "disks": tuple(by_broker[row["id"]]) if row["id"] in by_broker else None,
                "failed_log_dirs": reading.failed.get(row["id"], ()),
            }
        )
        for row in rows
    )
    gaps += [gap] if gap is not None else []
    return {
        "brokers": brokers,
        "gaps": tuple(map(document_gap, gaps)),
        "complete": not gaps,
    }


def _read_growth(
    source: DescribeSource, disks: Iterable[Disk]
) -> tuple[Mapping[Place, LogGrowth], Gap | None]:
    """How the partitions on these disks grow, and why that is unknown."""
    sizes = measure_partitions(disks)
    listed = source.ask("Metadata", list_topics, None) if sizes else ()
    if isinstance(listed, Fault):
        return {}, Gap("how fast the disks fill is unknown", listed)
    stored = {topic for topic, _ in sizes}
    rows = [row for row in listed if not row.code and row.name in stored]
    settings = read_settings(source, [row.name for row in rows])
    return read_growth(source, rows, settings, sizes), None


def _document_disk(disk: Disk, growth: Mapping[Place, LogGrowth]) -> FrozenMap:
    replicas = []
    for partition, stored in (*disk.replicas.items(), *disk.future.items()):
        today = growth.get(partition, NO_GROWTH)
        replicas.append(Replica(stored, stored, today, today))
    projection = project_disk(disk, replicas)
    return FrozenMap(
        log_dirs=disk.directories,
        total_bytes=disk.total,
        usable_bytes=disk.usable,
        log_bytes=disk.stored,
        replicas=len(replicas),
        cordoned=disk.cordoned,
        growth_bytes_per_day=round(projection.growth),
        growth_unknown=sum(replica.after.rate is None for replica in replicas),
        days_until_full=None if projection.days is None else round(projection.days, 1),
    )


# ── the page ────────────────────────────────────────────────────────────────────────────


def render_disks(document: FrozenMap) -> Page:
    """A row for each disk, and what is unknown."""
    rows = [
        disk.with_items({"broker": broker["id"]})
        for broker in document["brokers"]
        for disk in broker["disks"] or ()
    ]
    if rows:
        yield make_grid(rows, DISK_COLUMNS, RIGHT_COLUMNS, "Disks of the brokers")
    yield f"{count(len(rows), 'disk')}."
    yield from _list_notes(document, rows)


def _list_notes(document: FrozenMap, rows: Iterable[FrozenMap]) -> Iterator[str]:
    """What the reader should know, in sentences."""
    unknown = sum(row["growth_unknown"] for row in rows)
    if unknown:
        yield (
            f"How fast {count(unknown, 'replica')} {'grows' if unknown == 1 else 'grow'} is "
            "unknown: their records cover less than an hour, or their leaders did not answer."
        )
    if any(row["total_bytes"] is None for row in rows):
        yield "Brokers say how large their disks are from Kafka 3.3 on."
    for broker in document["brokers"]:
        if broker["failed_log_dirs"]:
            yield f"Broker {broker['id']} cannot use {', '.join(broker['failed_log_dirs'])}."
    for gap in document["gaps"]:
        yield f"Incomplete: {gap['what']}: {render_problem(gap)}"


def _render_use(row: FrozenMap) -> str:
    total, usable = row["total_bytes"], row["usable_bytes"]
    if total is None or usable is None:
        return cell(None)
    used = max(0, total - usable)
    return f"{size(used)} ({used / max(1, total):.0%})"


def _render_growth(row: FrozenMap) -> str:
    rate = row["growth_bytes_per_day"]
    if not rate and row["growth_unknown"]:
        return cell(None)
    return f"{render_amount(rate, 'bytes')}/day"


def _render_end(row: FrozenMap) -> str:
    days = row["days_until_full"]
    return cell(None) if days is None else f"about {render_days(days)}"


DISK_COLUMNS: tuple[Column, ...] = (
    ("Broker", lambda row: cell(row["broker"])),
    ("Log dirs", lambda row: " and ".join(row["log_dirs"])),
    ("Replicas", lambda row: cell(row["replicas"])),
    ("Logs", lambda row: size(row["log_bytes"])),
    ("Used", _render_use),
    ("Of", lambda row: size(row["total_bytes"])),
    ("Growth", _render_growth),
    ("Full in", _render_end),
)
"""What a row says of one disk; the last column needs all that is on it."""
RIGHT_COLUMNS = frozenset({2, 3, 4, 5, 6})
