"""The tables of docs/performance.md, and the same on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from .figures import Figure, Figures, Scene, Session
from .goals import GOALS, Result, Verdict, evaluate_goal
from .relay import count_work
from .works import WORKS

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
RUNS = 5
"""Fewer are told."""
CORES_BUSY = 0.25
"""Other work on the machine, in cores, above which a row says so."""
METRICS = {"wall": "time", "cpu": "CPU", "peak": "memory", "late": "count"}


def fill_page(text: str, figures: Figures) -> str:
    """The page with new tables between its markers. Raises ValueError without them."""
    head, found, rest = text.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page needs {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{render_tables(figures)}\n{END}{tail}"


def render_tables(figures: Figures, *, concise: bool = False) -> str:
    """Goals, then a table for each scene, then the sessions. concise: only goals that something
    was measured for."""
    results = [evaluate_goal(goal, figures) for goal in GOALS]
    if concise:
        results = [result for result in results if result.value is not None]
    parts = ["### Goals", _render_goals(results)] if results else []
    for scene, many in groupby(_sort(figures.figures), key=lambda figure: figure.scene):
        parts += [f"### {describe_scene(scene)}", _render_scene(tuple(many))]
    if figures.sessions:
        parts += ["### Where this was measured", _render_sessions(figures.sessions)]
    return "\n\n".join(parts) + "\n"


def describe_scene(scene: Scene) -> str:
    named = {"start": "Start of a command", "fleet": "A fleet"}
    if scene.size in named:
        return named[scene.size]
    words = []
    for part in scene.size.split("+"):
        topics, times, partitions = part.partition("x")
        if times:
            each = "1 partition" if partitions == "1" else f"{partitions} partitions"
            words.append(f"{int(topics):,} topics of {each}")
        elif part.endswith("acls"):
            words.append(f"{int(part.removesuffix('acls')):,} ACLs")
        else:
            words.append(f"{int(part.removesuffix('quotas')):,} quotas")
    more = [f"as {scene.form}"] if scene.form != "for_each" else []
    more += [f"{scene.brokers} brokers"] if scene.brokers != 1 else []
    more += [f"{scene.latency} ms between tool and broker"] if scene.latency else []
    return ", ".join((" and ".join(words), *more))


def _sort(figures: Iterable[Figure]) -> list[Figure]:
    order = list(WORKS)
    return sorted(
        figures,
        key=lambda f: (
            f.scene.latency,
            f.scene.brokers,
            f.scene.form,
            len(f.scene.size),
            f.scene.size,
            order.index(f.work),
        ),
    )


def _render_goals(results: Sequence[Result]) -> str:
    rows = [
        (
            result.goal.row,
            METRICS[result.goal.metric],
            _render_limit(result),
            _render_value(result),
            result.verdict + (f" ({result.why})" if result.why else ""),
        )
        for result in results
    ]
    told = ", ".join(
        f"{sum(r.verdict is verdict for r in results)} {verdict}" for verdict in Verdict
    )
    return f"{_render_table(('row', 'of', 'goal', 'measured', ''), rows)}\n\n{told}."


def _render_limit(result: Result) -> str:
    goal = result.goal
    return f"≤ {goal.limit:g} {goal.unit}" if goal.unit else f"≤ {goal.limit:g} × {goal.against}"


def _render_value(result: Result) -> str:
    if result.value is None:
        return "–"
    goal = result.goal
    return f"{result.value:.0f} {goal.unit}" if goal.unit else f"{result.value:.2f} ×"


def _render_scene(figures: Sequence[Figure]) -> str:
    rows = [_render_figure(figure) for figure in figures]
    head = ("work", "tool", "time", "CPU", "of the broker", "memory", "requests", "")
    return _render_table(head, rows)


def _render_figure(figure: Figure) -> tuple[str, ...]:
    title = WORKS[figure.work].title
    if not figure.runs:
        return (title, figure.tool, "–", "–", "–", "–", "–", figure.why)

    def median(metric: str) -> float:
        return figure.median(metric) or 0.0

    requests = "–" if figure.requests is None else f"{count_work(dict(figure.requests)):,}"
    return (
        title,
        figure.tool,
        f"{median('wall'):.2f} s",
        f"{median('cpu'):.2f} s",
        f"{median('broker_cpu'):.2f} s",
        f"{median('peak'):.0f} MiB",
        requests,
        "; ".join(_list_remarks(figure)),
    )


def _list_remarks(figure: Figure) -> Iterator[str]:
    walls = [reading.wall for reading in figure.runs]
    if len(walls) < RUNS:
        yield f"{len(walls)} run{'s' if len(walls) > 1 else ''}"
    if len(walls) > 1:
        yield f"{min(walls):.2f} to {max(walls):.2f} s"
    busy = (figure.median("others_cpu") or 0.0) / max(figure.median("wall") or 1.0, 0.001)
    if busy > CORES_BUSY:
        yield f"{busy:.1f} cores busy with other things"
    if figure.failures:
        yield f"{figure.failures} failed and repeated"
    if figure.late:
        yield f"{figure.late:,} called not yet visible"


def _render_sessions(sessions: Sequence[Session]) -> str:
    lines = []
    for session in sessions:
        load = " ".join(f"{one:.1f}" for one in session.load)
        lines.append(
            f"- {session.id}: kafkaform at {session.commit}, Kafka {session.kafka}, Python "
            f"{session.python}, {session.machine}, {session.cores} cores, load {load}"
        )
        lines += [f"  - {tool}: {version}" for tool, version in session.versions.items()]
    return "\n".join(lines)


def _render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
