"""Progress on terminals and in logs."""

from __future__ import annotations

import io

from msgspec.structs import replace

from kafkaform.cli.terminal.progress import LOG_INTERVAL, open_bars
from kafkaform.core.progress import Message, Pace, Progress

from .test_stream import Frozen


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def reading(done: int, finished: bool = False) -> Progress:
    return Progress("read", "Reading topics", done, 500, "topics", finished)


def test_a_log_gets_a_line_now_and_then() -> None:
    """A thousand events make a line each interval and one at the end, not a thousand lines."""
    stream, clock = io.StringIO(), Frozen()
    with open_bars(stream, clock) as bars:
        for done in range(500):
            bars(reading(done))
            clock.sleep(LOG_INTERVAL / 160)
        bars(reading(500, finished=True))
        bars(reading(500, finished=True))
    assert stream.getvalue().splitlines() == [
        "kafkaform: Reading topics: 160 of 500 topics, about 21 s left",
        "kafkaform: Reading topics: 320 of 500 topics, about 11 s left",
        "kafkaform: Reading topics: 480 of 500 topics",
        "kafkaform: Reading topics: 500 topics, done",
    ]


def test_messages_are_always_in_the_log() -> None:
    """What is said once is not rate limited, and cannot be a log command."""
    stream = io.StringIO()
    with open_bars(stream, Frozen()) as bars:
        bars(Message("::error::\x1b[31m"))
        bars(Message("second"))
    assert stream.getvalue() == "kafkaform: ::error::\\x1b[31m\nkafkaform: second\n"


def test_quiet_draws_nothing() -> None:
    """--quiet and --json keep the stream empty, terminal or not."""
    for stream in (io.StringIO(), Tty()):
        with open_bars(stream, Frozen(), quiet=True) as bars:
            bars(reading(1))
            bars(Message("hello"))
        assert stream.getvalue() == ""


def test_a_terminal_shows_label_amount_and_messages_as_they_are() -> None:
    """Square brackets in names are text, not markup, and controls are escaped."""
    stream = Tty()
    with open_bars(stream, Frozen()) as bars:
        bars(Progress("a", 'Waiting for kafka_topic.x["[red]a"]\x07', 120, 500, "topics"))
        bars(Progress("b", "Listing", 7, None, "acls"))
        bars(Message("[b]hello[/b] \x1b]0;x"))
    shown = stream.getvalue()
    assert 'kafka_topic.x["[red]a"]\\x07' in shown
    assert "120 of 500 topics" in shown and "7 acls" in shown
    assert "[b]hello[/b] \\x1b]0;x" in shown and "\x07" not in shown


def deleting(done: int) -> Progress:
    return Progress("2.0.10 DeleteAcls", "Applying DeleteAcls", done, 1_000, "steps")


def shown_after(stream: io.StringIO, *seconds_a_step: float) -> list[str]:
    """Two hundred steps at each of these paces, as a log or a terminal shows them."""
    clock = Frozen()
    with open_bars(stream, clock) as bars:
        for count, seconds in enumerate(seconds_a_step):
            bars(deleting(200 * count))
            clock.sleep(200 * seconds)
        bars(deleting(200 * len(seconds_a_step)))
    return stream.getvalue().splitlines()


def test_what_is_left_follows_from_the_pace_so_far() -> None:
    """Steps that take longer than the first ones move the end, in a log and on a terminal."""
    lines = shown_after(io.StringIO(), 0.1, 0.1, 0.4)
    assert [line.partition("steps")[2] for line in lines] == [
        ", about 80 s left",
        ", about 60 s left",
        ", about 80 s left",
    ]
    assert "400 of 1,000 steps, about 6 min left" in "".join(shown_after(Tty(), 0.2, 1.0))


def test_a_guess_is_not_told() -> None:
    """Nothing at the start, nothing while the total is not known, nothing in the last seconds."""
    clock = Frozen()
    assert Pace(clock).render_time_left(deleting(500)) == ""
    early = Pace(clock)
    assert early.render_time_left(deleting(0)) == ""
    clock.sleep(20)
    assert early.render_time_left(deleting(50)) == ""
    assert early.render_time_left(deleting(51)) == ", about 6 min left"
    assert early.render_time_left(deleting(900)) == ""
    assert early.render_time_left(Progress("b", "Listing", 7, None, "acls")) == ""


def test_unlike_parts_have_no_common_pace() -> None:
    """A whole apply makes topics in a moment and deletes ACLs slowly: no time is told for it."""
    clock, whole = Frozen(), Progress("apply", "Applying", 0, 1_000, "steps", even=False)
    pace = Pace(clock)
    assert pace.render_time_left(whole) == ""
    clock.sleep(60)
    assert pace.render_time_left(replace(whole, done=500)) == ""
    assert pace.render_time_left(replace(whole, done=500, even=True)) == ", about 60 s left"
