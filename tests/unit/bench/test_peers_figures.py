"""From raw figures to ratios, goals and the page of `make bench-peers`."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ...bench.peers import figures as kept
from ...bench.peers import page
from ...bench.peers.__main__ import DEFAULT, PAGE, make_parser
from ...bench.peers.figures import Figure, Figures, Reading, Scene, Session, merge_figures
from ...bench.peers.goals import GOALS, Goal, Point, Verdict, evaluate_goal
from ...bench.peers.measurement import count_late
from ...bench.peers.runs import add_readings
from ...bench.peers.works import ROWS, WORKS

SCENE = Scene("1000x3")
FIRST = Session("first", "abc", "Linux", 2, (0.1, 0.2, 0.3), "4.3.1", "3.11", {"OpenTofu": "v1"})
SECOND = replace(FIRST, id="second", versions={})
HALF = Goal(
    "a row", "wall", Point("kafkaform", "no-op", SCENE), 0.5, Point("OpenTofu", "no-op", SCENE), "x"
)


def reading(wall: float, peak: float = 50.0) -> Reading:
    return Reading(wall, wall / 2, 0.1, 0.0, peak)


def figure(tool: str, *walls: float, work: str = "no-op", session: str = "first") -> Figure:
    return Figure(SCENE, work, tool, session, tuple(map(reading, walls)), {"Metadata": 3})


def judge(*found: Figure, goal: Goal = HALF) -> tuple[Verdict, float | None]:
    result = evaluate_goal(goal, Figures((FIRST, SECOND), found))
    return result.verdict, result.value


def test_a_ratio_is_of_medians() -> None:
    """One slow run changes nothing, and the limit itself is good enough."""
    theirs = figure("OpenTofu", 2.0, 2.0, 90.0)
    assert judge(figure("kafkaform", 1.0, 0.9, 50.0), theirs) == (Verdict.MET, 0.5)
    assert judge(figure("kafkaform", 1.1, 1.1, 0.1), theirs)[0] is Verdict.NOT_MET


def test_figures_of_two_sessions_make_no_ratio() -> None:
    """The machine may have been another one."""
    found = figure("kafkaform", 1.0), figure("OpenTofu", 9.0, session="second")
    assert judge(*found) == (Verdict.NOT_MEASURED, None)


def test_a_failed_or_absent_tool_makes_no_ratio() -> None:
    """The reason stands beside the goal instead."""
    absent = replace(figure("OpenTofu"), why="tofu not installed")
    result = evaluate_goal(HALF, Figures((FIRST,), (figure("kafkaform", 1.0), absent)))
    assert result.verdict is Verdict.NOT_MEASURED
    assert "tofu not installed" in result.why
    assert judge(figure("kafkaform", 1.0)) == (Verdict.NOT_MEASURED, None)


def test_a_goal_can_be_a_bound() -> None:
    """Memory and late objects have no other tool to be compared with."""
    bound = Goal("a row", "peak", Point("kafkaform", "no-op", SCENE), 49, unit="MiB")
    assert judge(figure("kafkaform", 1.0), goal=bound) == (Verdict.NOT_MET, 50)
    late = replace(bound, metric="late", limit=0, unit="objects")
    none = replace(figure("kafkaform", 1.0), late=0)
    assert judge(none, goal=late) == (Verdict.MET, 0)
    assert judge(replace(none, late=7), goal=late) == (Verdict.NOT_MET, 7)
    assert judge(replace(none, late=None), goal=late) == (Verdict.NOT_MEASURED, None)


def test_new_figures_replace_those_of_the_same_work() -> None:
    """Also those of a tool that was left out, since they would be of another session."""
    old = Figures(
        (FIRST,),
        (figure("kafkaform", 1.0), figure("OpenTofu", 5.0), figure("limit", 2.0, work="sweep")),
    )
    new = merge_figures(old, SECOND, [figure("kafkaform", 0.5, session="second")])
    assert [session.id for session in new.sessions] == ["first", "second"]
    assert new.find(SCENE, "no-op", "OpenTofu") is None
    assert new.find(SCENE, "sweep", "limit") is not None
    again = merge_figures(new, replace(SECOND, id="third"), [figure("limit", 1.0, work="sweep")])
    assert [session.id for session in again.sessions] == ["second", "third"]


def test_figures_come_back_as_they_were(tmp_path: Path) -> None:
    """A file of figures has everything, and two writes of the same are the same bytes."""
    path = tmp_path / "figures.json"
    assert kept.read_figures(path) == Figures()
    wanted = Figures((FIRST,), (figure("kafkaform", 1.0, 2.0), replace(figure("x"), why="absent")))
    kept.write_figures(path, wanted)
    before = path.read_bytes()
    assert kept.read_figures(path) == wanted
    kept.write_figures(path, kept.read_figures(path))
    assert path.read_bytes() == before


def test_the_table_tells_what_a_reader_must_know() -> None:
    """Median, spread, few runs, a busy machine; an absent tool has a reason and no figure."""
    busy = tuple(replace(reading(wall), others_cpu=1.0) for wall in (1.0, 3.0, 2.0))
    rows = Figures(
        (FIRST,),
        (
            replace(figure("kafkaform"), runs=busy, late=1200, failures=2),
            replace(figure("jikkou"), why="jikkou not installed"),
        ),
    )
    lines = page.render_tables(rows).splitlines()
    (ours,) = [line for line in lines if line.startswith("| no-op plan | kafkaform")]
    assert "| 2.00 s | 1.00 s | 0.10 s | 50 MiB | 3 |" in ours
    assert "3 runs; 1.00 to 3.00 s; 0.5 cores busy with other things" in ours
    assert "2 failed and repeated; 1,200 called not yet visible" in ours
    (theirs,) = [line for line in lines if line.startswith("| no-op plan | jikkou")]
    assert theirs.endswith("| – | – | – | – | – | jikkou not installed |")
    assert "### 1,000 topics of 3 partitions" in lines
    assert any("load 0.1 0.2 0.3" in line for line in lines)


def test_a_page_without_markers_is_not_touched() -> None:
    """The prose around the tables is never lost."""
    text = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"
    filled = page.fill_page(text, Figures())
    assert filled.startswith("before\n") and filled.endswith("\nafter\n")
    assert "old" not in filled
    assert page.fill_page(filled, Figures()) == filled
    with pytest.raises(ValueError, match="needs"):
        page.fill_page("before\n", Figures())


def test_the_page_shows_the_figures_of_the_file() -> None:
    """docs/performance.md is what `python -m tests.bench.peers page` writes."""
    text = PAGE.read_text("utf-8")
    assert page.fill_page(text, kept.read_figures(kept.FILE)) == text


def test_everything_that_a_goal_needs_is_measured_without_options() -> None:
    """`make bench-peers` leaves no goal open but those of a tool that is not here."""
    measured = {
        (tool, work, m.scene)
        for m in DEFAULT
        for tool in m.peers
        for row in m.rows
        for work in ROWS[row]
    }
    for goal in GOALS:
        for point in filter(None, (goal.top, goal.bottom)):
            assert (point.tool, point.work, point.scene) in measured, goal.row


def test_rows_are_made_of_works() -> None:
    """A row that nobody can measure would be empty for ever."""
    assert {work for works in ROWS.values() for work in works} == set(WORKS)


def test_options_are_checked() -> None:
    """A wrong size or row ends before anything is started."""
    parser = make_parser()
    assert parser.parse_args(["--sizes", "100x1", "--rows", "no-op"]).sizes == ["100x1"]
    for words in (["--sizes", "many"], ["--rows", "nothing"], ["--peers", "somebody"]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)


def test_the_commands_of_one_work_add_up() -> None:
    """A change is a plan and an apply: one after the other, so their memory does not add up."""
    both = add_readings([reading(1.0, peak=80.0), reading(2.0, peak=60.0)])
    assert (both.wall, both.cpu, both.peak) == (3.0, 1.5, 80.0)


def test_late_objects_are_counted() -> None:
    """As an apply names them: one by one, or many in a line."""
    said = (
        "Apply complete!\n"
        "kafka_topic.a: applied, not yet visible on broker 1.\n"
        "1,204 objects: applied, not yet visible on broker 2: it does not answer (timed out).\n"
    )
    assert count_late(said) == 1205
    assert count_late("Apply complete!\n") == 0
