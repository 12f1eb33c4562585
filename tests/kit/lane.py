"""A folder on a cluster, whose applies are disturbed round after round; what a user does then, and
what must hold of each."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from .commands.process_folder import Folder
from .commands.server import Ended, Running
from .promises import LAG, Before, Reached, World, broken

APPLY = ("apply", "-auto-approve", "--concise", "--no-color")
REFUSED, PARTIAL, UNKNOWN = 4, 5, 6
KILLED = -signal.SIGKILL
CODES = frozenset({0, 1, REFUSED, PARTIAL, UNKNOWN, 8})
"""How an apply may end that met a fault of brokers or of the network."""
LEFT = frozenset({PARTIAL, UNKNOWN})
"""Codes of runs that say how to go on."""
AGAIN = 4
"""So many times a user runs the apply again before he asks for help."""
_FOLD = r"[\s│]"
"""Long lines are folded behind a rule."""
_TOKEN = re.compile(rf"--expect{_FOLD}+([\w.]+(?:{_FOLD}+[\w.]+)*)`")


def find_token(last: Ended) -> str | None:
    """The approval with which this run advises to go on."""
    token = _TOKEN.search(last.out)
    return re.sub(_FOLD, "", token[1]) if token else None


def choose_words(last: Ended) -> tuple[str, ...]:
    """The apply that comes next, as this one advised."""
    token = find_token(last)
    return (APPLY[0], f"--expect={token}" if token else APPLY[1], *APPLY[2:])


def recover(
    folder: Folder, last: Ended | None = None, codes: Collection[int] = LEFT
) -> Iterator[Ended]:
    """Apply, and again as each run advises, as long as it ends with one of these codes; how each
    ended. last: a run that has ended already."""
    for _ in range(AGAIN):
        words = APPLY if last is None else choose_words(last)
        last = folder.run(*words)
        yield last
        if last.code not in codes:
            return


def find_faults(ended: Ended, password: str) -> Iterator[str]:
    """What is wrong with how a disturbed apply ended and what it said."""
    if ended.code == KILLED:
        return  # it was struck itself
    if ended.code not in CODES:
        yield f"it ended with {ended.code}:\n{ended.out}"
    if re.search("Traceback|Unhandled|unexpectedly", ended.out):
        yield f"a fault of ours:\n{ended.out}"
    if password in ended.out:
        yield "a password was shown"
    if ended.code and "Error: " not in ended.out:
        yield f"it ended with {ended.code} and did not say why:\n{ended.out}"


@dataclass
class Lane:
    """before: what was there when the round began."""

    folder: Folder
    before: Before = field(default_factory=Before, kw_only=True)

    def world(self) -> World:
        """What the cluster has of the lane."""
        raise NotImplementedError

    def write(self, text: str) -> None:
        """Begin a round with this configuration."""
        self.before = Before.of(self.folder.path, self.world())
        self.folder.write(text)

    def start(self) -> Running:
        """Begin an apply."""
        return self.folder.start(*APPLY)

    def recover(self, last: Ended | None = None) -> Ended:
        """Apply to the end, as a user does who is told that something failed or is unknown, or
        that a secret must be sent once more."""
        *_, ended = recover(self.folder, last)
        return ended

    def find_broken_promises(
        self,
        wanted: World | None = None,
        reached: Sequence[Reached] | None = None,
        patience: float = LAG,
    ) -> tuple[str, ...]:
        """See `promises.broken`."""
        return broken(
            self.folder.path,
            self.world,
            self.before,
            wanted=wanted,
            reached=reached,
            patience=patience,
        )
