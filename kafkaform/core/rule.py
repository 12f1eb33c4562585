"""Rules: the rows of the one table that judges changes.

A `Rule` is the row: what it finds, why that is true, and what to do. A `Judge` is the function that
looks at one change for some rules, a `Survey` the one that looks at all changes of a provider
instance together. A provider offers a `RuleBook` of both, and nothing else judges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from .diagnostics import Range
from .finding import AccessRow, Block, Finding, Harm, Level, Path
from .resource import Facts, Identity, Sweep
from .text import make_sentence
from .value import EMPTY, FrozenMap

if TYPE_CHECKING:
    from .change import Change


class Needs(StrEnum):
    """What must be known to judge by a rule, the least first."""

    BLOCK = "block"
    """Only blocks: `validate`, the editor and tests without a system judge by it, too. The judge
    gets a create from nothing and facts without values then."""
    FACTS = "facts"
    """Also what the system is like."""
    OBJECT = "object"
    """Also the live object."""
    PLAN = "plan"
    """All changes of the provider instance."""
    SYSTEM = "system"
    """An answer of the system to a question about this change."""
    LIVE = "live"
    """All live objects: only `check` judges by it, because a plan is about changes."""


class Rule(Struct, frozen=True):
    """One row of the table."""

    id: str
    """Stable: `object-protected`. It begins with what it is about."""
    title: str
    """What it finds, in a few words: `Retention is cut`."""
    level: Level
    """How much it matters, unless a finding says otherwise."""
    harm: Harm
    """What kind of harm it finds."""
    types: tuple[str, ...]
    """The resource types that it judges; none for all types."""
    needs: Needs
    """What must be known."""
    why: str
    """Why it is true, in one or two sentences, with the source (KIP, source file of the system) and
    the versions if they differ."""
    example: str
    """A block or a change of one in HCL that breaks it."""
    fix: str = ""
    """What the user can do, unless a finding says otherwise: one or more sentences."""
    block: Block | None = None
    """Of level BLOCK: why the change is not made."""
    accept: bool = False
    """`--accept ID` lifts the block."""
    proof: str = ""
    """The test that makes the change on a real system: `tests/…/test_x.py::test_y`. Empty for a
    rule that claims nothing about the system; docs/rules.py has the reason of each."""

    def __post_init__(self) -> None:
        """Makes `fix` a sentence."""
        force_setattr(self, "fix", make_sentence(self.fix))

    def find(
        self,
        text: str,
        path: Path = (),
        *,
        figures: FrozenMap = EMPTY,
        fix: str | None = None,
        level: Level | None = None,
        access: tuple[AccessRow, ...] = (),
        asked: bool = False,
        range: Range | None = None,
    ) -> Finding:
        """A finding of this rule. text: one sentence without its final stop; fix: None for that of
        the rule, otherwise a clause or a sentence."""
        level = level or self.level
        blocks = level is Level.BLOCK
        return Finding(
            self.id,
            level,
            self.harm,
            text,
            path,
            figures,
            self.fix if fix is None else make_sentence(fix),
            self.block if blocks else None,
            accept=self.accept and blocks,
            asked=asked,
            access=access,
            range=range,
        )


class Judge(Struct, frozen=True):
    """A function that looks at one change for some rules."""

    rules: tuple[Rule, ...]
    """What it can find."""
    types: tuple[str, ...]
    """The resource types whose changes it gets."""
    needs: Needs
    """BLOCK, FACTS or OBJECT: what it must know at least. It gets every change from there on."""
    find: Callable[[Change, Facts], Iterable[Finding]]
    """Pure. The change is whole: `before` and `after` have all managed attributes, `paths` what
    differs. It gets changes of every action, and changes that are blocked."""


class Scene(Struct, frozen=True):
    """All changes of one provider instance, and what was read there."""

    changes: Sequence[Change]
    """The changes, and the objects that need none."""
    sweeps: Mapping[str, Sweep]
    """Resource type -> the listing that `Provider.review_needs` asked for."""
    facts: Facts
    """What the system is like."""
    elsewhere: Collection[Identity] = ()
    """Objects that other folders declare or record, of all instances."""


class Survey(Struct, frozen=True):
    """A function that looks at all changes of a provider instance together for some rules."""

    rules: tuple[Rule, ...]
    """What it can find."""
    find: Callable[[Scene], Iterable[tuple[Identity | None, Finding]]]
    """Pure. Each finding with the object that it is about; None if it is about the system."""
    needs: Needs = Needs.PLAN
    """PLAN or BLOCK: with BLOCK it also gets a scene of creates from nothing, without listings and
    without facts, for all that a configuration declares."""


class RuleBook(Struct, frozen=True):
    """All that a provider judges by."""

    judges: tuple[Judge, ...] = ()
    surveys: tuple[Survey, ...] = ()
    checks: tuple[Survey, ...] = ()
    """Look at all live objects, for `check` alone. The scene has each object as one that needs no
    change."""
    others: tuple[Rule, ...] = ()
    """Rows that commands of the provider find themselves."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rows, sorted by their ids."""
        groups = (
            *(judge.rules for judge in self.judges),
            *(survey.rules for survey in (*self.surveys, *self.checks)),
            self.others,
        )
        rows = {rule.id: rule for group in groups for rule in group}
        return tuple(rows[name] for name in sorted(rows))
