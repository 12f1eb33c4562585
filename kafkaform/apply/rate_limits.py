"""Send to systems that limit changes, and report what a run waits for.

A system may refuse a part of a request for now, because a quota of its own is used up. Nothing
happened to that part, so it is sent again later. To repeat all that is left in each round would be
refused nearly whole each time, and every attempt is recorded. So the rate at which steps get
through is measured, and only as many are sent as it will most likely let through. A system that is
not ready is asked with a single step, and gets twice as many whenever it takes all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, takewhile

from msgspec import Struct, field

from ..core.change import RateLimit, Step
from ..core.clock import Clock
from ..core.progress import Message, Reporter
from ..core.resource import Fault, Identity

LEAST_PAUSE = 0.1
"""Seconds to wait at least before a step is sent again."""
LONGEST_PAUSE = 10.0
"""Seconds to wait at most where the system names no time."""
LONGEST_GUESS = 60.0
"""Seconds to wait at most for what the system has not refused."""
ROUND_SECONDS = 1.0
"""What a limited system lets through in that time is sent together."""
CAUTION = 1.01
"""Factor of the time that a part is given once something was refused: what comes a millisecond too
early is refused again."""
STREAK = 10
"""After so many parts that passed whole the rate is tried that is GROWTH higher, after as many more
twice GROWTH, and so on: the limit can have been raised, or others can have stopped spending."""
GROWTH = 0.1
NAMED_PATIENCE = 10
"""How long nothing may get through, in times of the wait for a lost answer, if the system names the
time to wait."""
UNNAMED_PATIENCE = 2
"""The same if it names none."""
WORTH_TELLING = 10.0
"""Seconds of a pause that the user is told about."""

Wait = Callable[[float], None]
"""Sleeps for so many seconds, unless somebody asks the run to stop."""


class _Mark(Struct, frozen=True):
    """A refusal, from which the rate is measured at the next one."""

    time: float
    """Seconds on `Clock.monotonic`."""
    wait_asked: float
    """Seconds that the system asked to wait."""


class Pace(Struct):
    """How fast one system lets steps through. Until it is known that it limits them, nothing is
    held back."""

    rate: float | None = None
    """What the steps that pass in a second cost; None if it is not known."""
    free_time: float = 0.0
    """When the next step is taken, as far as that is known: seconds on `Clock.monotonic`. The time
    that has passed since then is a credit."""
    credit: float = ROUND_SECONDS
    """The largest credit, in seconds."""
    costs: Mapping[Identity, int] = field(default_factory=dict)
    """What the steps of these objects cost; others cost their weight."""
    closed_reason: str = ""
    """Why nothing more is sent in this run."""
    announced: bool = False
    """The user knows that the system limits changes."""
    _mark: _Mark | None = None
    _passed: int = 0
    """What has passed since the mark."""
    _size: int = 1
    """How many steps are tried while the rate is not known."""
    _rounds: int = 0
    """How many rounds have ended without anything that passed."""
    _streak: int = 0
    """How many parts have passed whole since the mark."""

    @property
    def limited(self) -> bool:
        """True if the system limits changes, as far as that is known."""
        return self._mark is not None or self.rate is not None

    def choose_part(self, steps: Sequence[Step], now: float) -> tuple[Step, ...]:
        """The first of these steps, as many as will most likely get through together."""
        if self.rate is None:
            return tuple(steps[: self._size] if self.limited else steps)
        room = self.rate * max(ROUND_SECONDS, now - self._find_free(now))
        totals = accumulate(map(self._weigh_step, steps))
        number = sum(1 for _ in takewhile(lambda total: total <= room, totals))
        return tuple(steps[: max(1, number)])

    def compute_pause(self, steps: Sequence[Step], now: float) -> float:
        """Seconds until this part gets through."""
        if not self.limited:
            return 0.0
        # Token buckets take a step as long as they are not below empty, so the last one needs no
        # tokens of its own.
        ahead = self._compute_seconds(self._weigh(steps[:-1]))
        return max(0.0, self._find_free(now) + ahead - now)

    def note_answers(self, steps: Sequence[Step], faults: Mapping[str, Fault], now: float) -> None:
        """Learn from one answer. faults: step id -> why it was refused for now."""
        passed = self._weigh([step for step in steps if step.id not in faults])
        self._passed += passed
        if not faults:
            self._note_success(passed, now)
            return
        seconds = max(fault.retry_after or 0.0 for fault in faults.values())
        if all(fault.quota for fault in faults.values()):
            self._measure_rate(now, seconds)
        self._rounds = 0 if passed else self._rounds + 1
        backoff = min(LONGEST_PAUSE, LEAST_PAUSE * 2 ** max(0, self._rounds - 1))
        self._mark, self._passed, self._size, self._streak = _Mark(now, seconds), 0, 1, 0
        self.free_time = now + max(seconds * CAUTION, backoff)

    def _note_success(self, passed: int, now: float) -> None:
        self._rounds, self._size, self._streak = 0, self._size * 2, self._streak + 1
        if self.rate is not None:
            free = self._find_free(now) + self._compute_seconds(passed)
            # A guess that is wrong must not hold up anything for long. If it is right, the system
            # refuses the next part and names the time itself.
            self.free_time = min(free, now + LONGEST_GUESS)
            times, remainder = divmod(self._streak, STREAK)
            self.rate *= 1.0 if remainder else 1.0 + times * GROWTH

    def _compute_seconds(self, cost: int) -> float:
        """How long it takes until this much passes."""
        if self.rate is None:
            return 0.0
        return cost / self.rate * (1.0 if self._mark is None else CAUTION)

    def _find_free(self, now: float) -> float:
        return max(self.free_time, now - self.credit)

    def _measure_rate(self, now: float, wait_asked: float) -> None:
        """Both refusals say how far below empty the system is, and what passed in between lies
        between them."""
        if self._mark is None or not self._passed:
            return
        seconds = (now - self._mark.time) - self._mark.wait_asked + wait_asked
        if seconds > 0:
            self.rate = self._passed / seconds

    def _weigh(self, steps: Collection[Step]) -> int:
        return sum(map(self._weigh_step, steps))

    def _weigh_step(self, step: Step) -> int:
        return self.costs.get(step.identity, step.weight)


class Paces(Struct, frozen=True):
    """The paces of all systems of one run."""

    by_request: dict[tuple[str, str], Pace] = field(default_factory=dict)
    """Provider instance and name of the request -> its pace."""

    def find(self, instance: str, request: str) -> Pace:
        """The pace of these requests."""
        return self.by_request.setdefault((instance, request), Pace())


def expect_limits(limits: Mapping[str, RateLimit | None], now: float) -> Paces:
    """The paces of systems that say what they take. limits: by provider instance."""
    paces = Paces()
    for instance, limit in limits.items():
        if limit is None:
            continue
        # Nobody tells how full the bucket is. If it is not, the first refusal says so.
        credit = limit.burst / limit.rate
        pace = Pace(limit.rate, now - credit, credit, limit.costs)
        paces.by_request.update({(instance, name): pace for name in limit.requests})
    return paces


class Limited(Struct, frozen=True):
    """How steps are sent to a system that may take only some of them for now."""

    pace: Pace
    """How fast it takes them."""
    clock: Clock
    """Measures the time."""
    wait: Wait
    """Waits between two requests."""
    patience: float
    """Seconds of the wait for a lost answer."""
    report: Reporter
    """Gets messages."""
    system: str
    """What the users of the system call it."""
    show: Callable[[int], None]
    """Shows how many steps are left, after each of several parts."""


def send_in_parts(
    steps: Sequence[Step],
    send: Callable[[tuple[Step, ...]], Mapping[str, Fault]],
    limited: Limited,
) -> tuple[Step, ...]:
    """Send all steps, and those again that the system refuses only for now, as long as it lets
    something through. Returns the steps without a final answer.

    send: sends a part once, and returns step id -> fault of those that were refused for now.
    """
    pace, clock = limited.pace, limited.clock
    if pace.closed_reason:
        return tuple(steps)
    todo, moved, several = tuple(steps), clock.monotonic(), False
    while todo:
        chunk = pace.choose_part(todo, clock.monotonic())
        if (pause := pace.compute_pause(chunk, clock.monotonic())) > 0:
            _say_waiting(limited, pause, len(todo))
            limited.wait(pause)
        faults = send(chunk)
        pace.note_answers(chunk, faults, clock.monotonic())
        sent = {step.id for step in chunk}
        todo = tuple(s for s in todo if s.id not in sent or s.id in faults)
        several = several or bool(todo)
        if several:
            limited.show(len(todo))
        if len(faults) < len(chunk):
            moved = clock.monotonic()
        if not faults:
            continue
        if not pace.announced:
            _say_refused(limited, len(todo))
        named = any(fault.retry_after for fault in faults.values())
        give_up = moved + limited.patience * (NAMED_PATIENCE if named else UNNAMED_PATIENCE)
        # A system may ask for weeks. Nobody would wait that long.
        if pace.free_time > give_up:
            pace.closed_reason = f"the {limited.system} takes no more changes for now"
            return todo
    return ()


def _say_refused(limited: Limited, remaining: int) -> None:
    refused = f"The {limited.system} refuses {_count(remaining)} for now"
    limited.report(Message(f"{refused}: sending again as fast as it allows"))
    limited.pace.announced = True


def _say_waiting(limited: Limited, pause: float, remaining: int) -> None:
    if pause >= WORTH_TELLING:
        text = f"Waiting {pause:.0f} s for the {limited.system} ({_count(remaining)} left)"
    elif not limited.pace.announced:
        text = f"The {limited.system} limits changes: going on as fast as it allows"
    else:
        return
    limited.report(Message(text))
    limited.pace.announced = True


def _count(steps: int) -> str:
    return "1 step" if steps == 1 else f"{steps:,} steps"


def say_silent(report: Reporter, nodes: Collection[str], seconds: float, noun: str) -> None:
    """Report that these nodes do not answer, and how long the run waits for them at most. noun:
    what the users of the system call a node."""
    several = len(nodes) > 1
    which = f"{noun}{'s' if several else ''} {', '.join(sorted(nodes))}"
    silent = f"{which}, which {'do' if several else 'does'} not answer"
    report(Message(f"Waiting up to {max(1.0, seconds):.0f} s for {silent}"))


def say_unclear(report: Reporter, steps: int, seconds: float) -> None:
    """Report that answers are missing, and how long the objects are read to find out what
    happened."""
    if seconds < 1:
        return
    amount = _count(steps)
    report(Message(f"No answer came: reading for up to {seconds:.0f} s to find out about {amount}"))
