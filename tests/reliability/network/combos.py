"""Which faults meet which requests where: the long form's list, and a draw for every run that has
each kind once."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ...kit.proxy.faults import ANY, DRY, REAL, Fault
from ...kit.proxy.frames import WRITES

MOVES = ("AlterPartitionReassignments", "ElectLeaders")
"""They need more than one broker."""
ON_ONE_BROKER = tuple(api for api in WRITES if api not in MOVES)
WITH_DRY_RUN = (
    "CreateTopics",
    "CreatePartitions",
    "IncrementalAlterConfigs",
    "AlterClientQuotas",
)
SENT_TWICE = ("IncrementalAlterConfigs", "AlterClientQuotas", "AlterUserScramCredentials")
"""An apply has two real requests of these."""
READS = (
    "ApiVersions",
    "Metadata",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeUserScramCredentials",
    "ListPartitionReassignments",
    "ListConfigResources",
    "DescribeLogDirs",
)
OFTEN = ("Metadata", "DescribeConfigs", "DescribeAcls", "DescribeClientQuotas")
"""A later request of these is another moment of an apply."""

UNDONE = (8, 31, 37, 42, 44, 91)
"""Errors that say that nothing was done."""
OPEN = (7, 41, 999)
"""Errors that leave open whether it was done; the last one is none that anybody knows."""
CHECKED = (7, 29, 44, 999)
OF_READS = (7, 31, 89, 999)
ON_WRITES = {
    "swallow": 0.0,
    "reset before": 0.0,
    "delay": 1.0,
    "late": 2.0,
    "throttle": 0.5,
    "lose": 0.0,
    "hold": 3.0,
    "reset after": 0.0,
    "twice": 0.0,
    "cut": 0.0,
    "garbage": 0.0,
    "oversized": 0.0,
    "stranger": 0.0,
    "slow": 0.001,
    "pause": 0.5,
}
"""Kind -> seconds."""
QUICK = ("reset before", "reset after", "cut", "twice", "stranger")
ON_READS = {
    "lose": 0.0,
    "reset after": 0.0,
    "twice": 0.0,
    "cut": 0.0,
    "garbage": 0.0,
    "oversized": 0.0,
    "stranger": 0.0,
    "slow": 0.001,
    "stale": 0.0,
}


def every() -> Iterator[Fault]:
    """The long form."""
    for api in ON_ONE_BROKER:
        yield from (Fault(api, "refuse", REAL, code=code) for code in (*UNDONE, *OPEN[:2]))
        yield from (Fault(api, "say", REAL, code=code) for code in OPEN)
        yield from (Fault(api, kind, REAL, seconds=s) for kind, s in ON_WRITES.items())
        yield Fault(api, "refuse one", REAL, code=44)
    for api in WITH_DRY_RUN:
        yield from (Fault(api, "say", DRY, code=code) for code in CHECKED)
        yield from (Fault(api, kind, DRY) for kind in QUICK)
        yield Fault(api, "say", DRY, code=44, times=9)
    for api in SENT_TWICE:
        yield from (Fault(api, kind, REAL, nth=2) for kind in QUICK)
        yield Fault(api, "refuse", REAL, nth=2, code=44)
        yield Fault(api, "say", REAL, nth=2, code=41)
    for api in READS:
        yield from (Fault(api, kind, ANY, seconds=s) for kind, s in ON_READS.items())
        yield from (Fault(api, "say whole", ANY, code=code) for code in OF_READS[:3])
    for api in OFTEN:
        yield from (Fault(api, kind, ANY, nth=nth) for nth in (4, 7) for kind in QUICK[:3])
        yield from (Fault(api, "say whole", ANY, nth=5, code=code) for code in OF_READS)
    for api in ("Metadata", "CreateTopics", "IncrementalAlterConfigs", "DeleteTopics"):
        yield Fault(api, "half open")


def drawn(random: Random, count: int) -> list[Fault]:
    """So many of the long form, in an order of this seed, but for those that take longest."""
    chosen = list(every())
    random.shuffle(chosen)
    return sorted(chosen[:count], key=lambda fault: fault.kind != "half open")
