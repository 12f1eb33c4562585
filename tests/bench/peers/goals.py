"""The goals, as data, and how far the figures are from them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .figures import Figure, Figures, Scene

TODAY = "baseline"
"""The tool that is kafkaform at another commit (`--against`)."""


class Point(Struct, frozen=True):
    """One figure."""

    tool: str
    work: str
    scene: Scene


class Goal(Struct, frozen=True):
    """top / bottom <= limit; without a bottom, top <= limit. unit: of a limit without a bottom."""

    row: str
    metric: str
    top: Point
    limit: float
    bottom: Point | None = None
    against: str = ""
    """The bottom in words."""
    unit: str = ""


class Verdict(StrEnum):
    MET = "met"
    NOT_MET = "not met"
    NOT_MEASURED = "not measured"


class Result(Struct, frozen=True):
    """value: None if it was not measured; why: what is missing then."""

    goal: Goal
    verdict: Verdict
    value: float | None = None
    why: str = ""


def evaluate_goal(goal: Goal, figures: Figures) -> Result:
    """Never a ratio of figures from two sessions."""
    top, why = _find(goal.top, figures)
    if top is None:
        return Result(goal, Verdict.NOT_MEASURED, None, why)
    value = top.median(goal.metric)
    if goal.bottom is not None and value is not None:
        bottom, why = _find(goal.bottom, figures)
        if bottom is None:
            return Result(goal, Verdict.NOT_MEASURED, None, why)
        if bottom.session != top.session:
            return Result(goal, Verdict.NOT_MEASURED, None, "measured in different sessions")
        base = bottom.median(goal.metric)
        value = value / base if base else None
    if value is None:
        return Result(goal, Verdict.NOT_MEASURED, None, f"no {goal.metric} was read")
    return Result(goal, Verdict.MET if value <= goal.limit else Verdict.NOT_MET, value)


def _find(point: Point, figures: Figures) -> tuple[Figure | None, str]:
    """The figure with runs, or why there is none."""
    found = figures.find(point.scene, point.work, point.tool)
    name = f"{point.tool}, {point.work} of {point.scene.size}"
    if found is None:
        return None, ""
    if not found.runs:
        return None, f"{name}: {found.why}"
    return found, ""


# ── the table ───────────────────────────────────────────────────────────────────────────

OURS, TOFU, JIKKOU, LIMIT = "kafkaform", "OpenTofu", "jikkou", "limit"
T1000, T10000 = Scene("1000x3"), Scene("10000x1")
A10000, LARGE = Scene("10000acls"), Scene("10000x1+50000acls")
SLOW = Scene("1000x3", latency=20)
START, FLEET = Scene("start"), Scene("fleet")
_TOFU, _TODAY = "OpenTofu + Mongey", "the baseline"


def _compare(
    row: str,
    metric: str,
    scene: Scene,
    works: tuple[str, str],
    tool: str,
    limit: float,
    against: str,
) -> Goal:
    """Two tools in one scene. works: kafkaform's, and the other tool's."""
    top, bottom = Point(OURS, works[0], scene), Point(tool, works[1], scene)
    return Goal(row, metric, top, limit, bottom, against)


def _same(work: str) -> tuple[str, str]:
    return work, work


def _bound(row: str, metric: str, scene: Scene, work: str, limit: float, unit: str) -> Goal:
    return Goal(row, metric, Point(OURS, work, scene), limit, unit=unit)


_SWEEP = ("no-op", "sweep")
_DUE = "nothing is called not yet visible that every broker shows a second later"
GOALS = (
    _compare("no-op plan, 1,000 topics", "wall", T1000, _same("no-op"), TOFU, 0.2, _TOFU),
    _compare("no-op plan, 1,000 topics", "wall", T1000, _SWEEP, LIMIT, 1.3, "the bare sweep"),
    _compare("no-op plan, 10,000 topics", "wall", T10000, _SWEEP, LIMIT, 0.7, "the bare sweep"),
    _bound("no-op plan, 10,000 topics", "peak", T10000, "no-op", 130, "MiB"),
    _compare("no-op plan, 10,000 ACLs", "cpu", A10000, _same("no-op"), TODAY, 0.4, _TODAY),
    _compare("plan from empty, 10,000 topics", "cpu", T10000, _same("empty"), TODAY, 0.4, _TODAY),
    _compare("plan from empty, 10,000 ACLs", "cpu", A10000, _same("empty"), TODAY, 0.4, _TODAY),
    _compare(
        "apply, 1,000 topics of 3 partitions",
        "wall",
        T1000,
        ("apply", "create-shown"),
        LIMIT,
        1.1,
        "bare creates until every broker shows them",
    ),
    _compare("apply --no-wait, same", "wall", T1000, _same("apply-no-wait"), TODAY, 0.5, _TODAY),
    _compare(
        "apply --no-wait, same", "wall", T1000, ("apply-no-wait", "apply"), JIKKOU, 0.6, "jikkou"
    ),
    _compare("apply, 10,000 topics", "cpu", T10000, _same("apply"), TODAY, 0.3, _TODAY),
    _compare("apply, 10,000 ACLs", "cpu", A10000, _same("apply"), TODAY, 0.3, _TODAY),
    _bound(f"apply, 10,000 topics: {_DUE}", "late", T10000, "apply", 0, "objects"),
    _bound(f"apply, 10,000 ACLs: {_DUE}", "late", A10000, "apply", 0, "objects"),
    _compare("destroy, 1,000 topics", "wall", T1000, _same("destroy"), TODAY, 0.5, _TODAY),
    _compare(
        "1 % change at 10,000 topics, plan + apply",
        "wall",
        T10000,
        ("change", "no-op"),
        OURS,
        1.5,
        "its own no-op plan",
    ),
    _bound("no-op plan, 10,000 topics + 50,000 ACLs", "peak", LARGE, "no-op", 250, "MiB"),
    _compare(
        "no-op plan, 10,000 topics + 50,000 ACLs",
        "wall",
        LARGE,
        _SWEEP,
        LIMIT,
        1.2,
        "the bare sweeps",
    ),
    _compare("20 ms: no-op plan, 1,000 topics", "wall", SLOW, _same("no-op"), TOFU, 0.05, _TOFU),
    _compare("20 ms: apply, 1,000 topics", "wall", SLOW, _same("apply"), TOFU, 0.05, _TOFU),
    _compare("version", "wall", START, ("version", "pass"), LIMIT, 1.5, "`python -c pass`"),
    _compare(
        "validate, a small file", "wall", START, ("validate", "pass"), LIMIT, 3, "`python -c pass`"
    ),
    *(
        Goal(
            f"work x 10: {work}, {small} to {large}",
            "wall",
            Point(OURS, work, Scene(large)),
            10.5,
            Point(OURS, work, Scene(small)),
            f"{small}",
        )
        for small, large, works in (
            ("1000x1", "10000x1", ("empty", "apply", "destroy", "no-op", "change")),
            ("1000acls", "10000acls", ("empty", "apply", "no-op")),
        )
        for work in works
    ),
    _compare("a fleet of 5 small clusters", "wall", FLEET, _same("fleet"), TODAY, 0.5, _TODAY),
)
