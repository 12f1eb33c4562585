"""The rows of the tables: what each tool is asked to do, and in which state the cluster is then."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Stage(StrEnum):
    """What is there when a work begins."""

    NOTHING = "nothing"
    """An empty cluster, and no state. The work leaves it so."""
    WRITES = "writes"
    """The same, but the work changes the cluster, which is emptied afterwards."""
    LIVE = "live"
    """The world, which the tool knows. The work leaves it so."""
    DRIFTED = "drifted"
    """The world after somebody else's change of one percent."""
    CHANGED = "changed"
    """The world, and a configuration with the change of one percent. Both are put back."""
    NO_CLUSTER = "no cluster"


class Work(NamedTuple):
    title: str
    stage: Stage


WORKS = {
    "empty": Work("plan from empty", Stage.NOTHING),
    "create": Work("bare creates, until they are answered", Stage.WRITES),
    "create-shown": Work("bare creates, until every broker shows them", Stage.WRITES),
    "apply": Work("first apply", Stage.WRITES),
    "apply-no-wait": Work("first apply, `--no-wait`", Stage.WRITES),
    "destroy": Work("destroy", Stage.WRITES),
    "delete": Work("bare deletes, until they are answered", Stage.WRITES),
    "delete-shown": Work("bare deletes, until no broker shows them", Stage.WRITES),
    "sweep": Work("bare sweep: reads everything that a plan must know", Stage.LIVE),
    "import": Work("import of all objects", Stage.LIVE),
    "no-op": Work("no-op plan", Stage.LIVE),
    "drift": Work("drift check", Stage.DRIFTED),
    "change": Work("change of 1 %: plan, then apply", Stage.CHANGED),
    "version": Work("`version`", Stage.NO_CLUSTER),
    "validate": Work("`validate` of a small file", Stage.NO_CLUSTER),
    "pass": Work("`python -c pass`", Stage.NO_CLUSTER),
    "fleet": Work(
        "`fleet run` of 5 small clusters, from landing files to tables", Stage.NO_CLUSTER
    ),
}
LIMITS = ("create", "create-shown", "delete", "delete-shown", "sweep")
"""Those of the bare clients (`limits`)."""
STARTS = ("version", "validate", "pass")
ROWS = {
    "empty": ("empty",),
    "apply": ("apply", "create", "create-shown"),
    "no-wait": ("apply-no-wait",),
    "destroy": ("destroy", "delete", "delete-shown"),
    "import": ("import",),
    "no-op": ("no-op", "sweep"),
    "drift": ("drift",),
    "change": ("change", "no-op"),
    "start": STARTS,
    "fleet": ("fleet",),
}
"""The words of `--rows`: a work, and the limits that it is compared with."""
