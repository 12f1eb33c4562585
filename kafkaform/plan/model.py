"""The plan as data: everything that is shown, approved and applied is in it, and its approval:
digests over everything that an apply would do.

The digests cover whatever decides what is sent, recorded or owned. Counts, serial, audit head,
impact, drift, versions and times are shown but not approved, so that other people's merges do not
make a review stale. docs/formats/plan.md says for each field whether it is covered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from ..core.canonical import digest
from ..core.change import Action, Batch, Change, Path
from ..core.diagnostics import Diagnostics
from ..core.finding import UNREAD, Finding, Harm
from ..core.resource import Facts, Identity, Output, Pending
from ..core.value import EMPTY, FrozenMap
from .diff import lay_over

FORMAT = 2
"""Of saved plan files; any other is refused."""


class Mode(StrEnum):
    """What a plan is made for."""

    NORMAL = "normal"
    DESTROY = "destroy"
    REFRESH = "refresh"


class Extent(StrEnum):
    """How far a plan looks for those whom dangerous changes hit."""

    OFF = "off"
    """Nobody is looked for."""
    FAST = "fast"
    """For a few seconds, and for a limited number of objects."""
    FULL = "full"
    """As long as it takes."""


class Options(Struct, frozen=True):
    """What the user asked of a plan."""

    mode: Mode = Mode.NORMAL
    """Bring the world to the configuration, destroy all that the state records, or only record the
    live values in the state."""
    target: tuple[str, ...] = ()
    """Address globs of --target."""
    exclude: tuple[str, ...] = ()
    """Address globs of --exclude."""
    adopt: tuple[str, ...] = ()
    """Address globs of --adopt."""
    max_deletes: int | None = None
    """The limit of --max-deletes; None for the built-in guard."""
    accept: tuple[str, ...] = ()
    """The rules whose blocks the user lifts: `RULE` or `RULE=ADDRESS` with a glob."""
    max_data_loss: int | None = None
    """The limit of --max-data-loss for changes other than deletions; None for the built-in
    guard."""
    impact: Extent = Extent.FAST
    """How far --impact looks for those whom dangerous changes hit."""
    sample: bool = False
    """--sample: the looks may read single records."""


class Unmanaged(Struct, frozen=True):
    """Live objects of one kind that neither the configuration nor the state knows."""

    kind: str
    """Their resource type."""
    count: int
    """How many there are."""
    names: tuple[str, ...]
    """The keys of the first few, sorted."""


class PlanInstance(Struct, frozen=True):
    """One provider instance as it was read."""

    facts: Facts
    """The system, as far as a plan records it."""
    # For people only. An apply takes its connection from its own folder, so that a saved plan
    # cannot lead it elsewhere.
    display: FrozenMap = EMPTY
    """Connection settings without secrets."""
    unmanaged: tuple[Unmanaged, ...] = ()
    """What else exists there, by kind."""
    findings: tuple[Finding, ...] = ()
    """What rules found about the system, shown once."""
    unread: str = ""
    """Why the system could not be asked, so that all its objects are left out; empty if it
    answered."""


class OutputChange(Struct, frozen=True):
    """One output that differs from what the state recorded."""

    before: Output | None
    """As recorded, None if it is new."""
    after: Output | None
    """As evaluated, None if it is gone; a deferred one gets its value after the apply."""


class Removal(Struct, frozen=True):
    """A setting of an earlier run (`Step.owes`) that this apply removes once its task has ended."""

    identity: Identity
    """The object of the step that set it."""
    address: str
    """What the user calls that object."""
    run: str
    """The run that set it."""
    ticket: str
    """The provider's name for the setting."""


class PolicyFolders(Struct, frozen=True):
    """The policies from outside the configuration that judged a plan."""

    folders: tuple[str, ...] = ()
    """The folders of --policy, as they were named."""
    # Not the paths: the same policies can be elsewhere on the computer that applies.
    digest: str = ""
    """Digest of the names and contents of their files; empty without any."""


class Plan(Struct, frozen=True):
    """What an apply would do, and everything that a reviewer needs to know about it."""

    lineage: str
    """The state that the plan was made for."""
    serial: int
    """Its serial at that time; shown, not approved."""
    configuration: str
    """Digest of the files and variables."""
    instances: Mapping[str, PlanInstance]
    """Provider instance -> the system behind it."""
    changes: tuple[Change, ...]
    """Every change, sorted by address; objects that need nothing are counted only."""
    unchanged: int = 0
    """How many objects need nothing."""
    options: Options = Options()
    """What the user asked for."""
    outputs: tuple[OutputChange, ...] = ()
    """Outputs that differ from the recorded ones."""
    unevaluated: tuple[str, ...] = ()
    """Addresses of resource blocks that are left out, because a data source could not be read."""
    diagnostics: Diagnostics = ()
    """Warnings of the configuration."""
    pending: tuple[Pending, ...] = ()
    """What earlier runs left open."""
    audit_head: str = ""
    """The end of the log that the plan follows from."""
    created: str = ""
    """When the plan was made, RFC 3339, UTC."""
    kafkaform_version: str = ""
    """The version that made it."""
    removals: tuple[Removal, ...] = ()
    """Settings of earlier runs that this apply removes."""
    policies: PolicyFolders = PolicyFolders()
    """The policies from outside the configuration that judged it."""
    approval: str = ""
    """Digest of what will be done (architecture §4.4)."""
    rule: int = 1
    """The rules by which that digest was made (`approval.RULE`)."""
    sources: Mapping[str, str] = EMPTY
    """File or `var.NAME` -> the first digits of its digest (`Desired.sources`); shown, not
    approved, because `configuration` covers them."""

    @property
    def token(self) -> str:
        """What a reviewer gives to `apply --expect`: approval and configuration together."""
        return f"{self.approval}.{self.configuration}"

    @property
    def effective(self) -> tuple[Change, ...]:
        """The changes that an apply makes."""
        return tuple(change for change in self.changes if change.effective)

    @property
    def idle(self) -> bool:
        """True if an apply has nothing to send and nothing to record."""
        return not self.effective and not self.removals

    @property
    def scopes(self) -> FrozenMap:
        """Provider instance -> scope id, as read."""
        return FrozenMap({name: system.facts.scope_id for name, system in self.instances.items()})

    @property
    def taking(self) -> tuple[Change, ...]:
        """The changes that take something away: what counts as deletions."""
        return tuple(change for change in self.changes if change.takes_away)

    @property
    def left_out(self) -> tuple[Change, ...]:
        """The objects that could not be read, and the changes that wait for them."""
        return tuple(change for change in self.changes if change.block in UNREAD)

    @property
    def drifted(self) -> tuple[Change, ...]:
        """The objects that were changed outside kafkaform since they were recorded."""
        return tuple(change for change in self.changes if change.drift)

    def list_blocked(self, *, stopping: bool) -> Iterator[Change]:
        """The blocked changes that stop an apply, or those that do not."""
        for change in self.changes:
            if change.block is not None and change.block.stops is stopping:
                yield change

    def list_unmet(self) -> tuple[Change, ...]:
        """The blocked changes that an apply leaves out although somebody asks for them."""
        return tuple(change for change in self.changes if change.blocked and change.blocked.unmet)

    def count(self, *actions: Action) -> int:
        """How many changes with one of these actions an apply makes."""
        return sum(1 for change in self.effective if change.action in actions)


class Wave(Struct, frozen=True):
    """Batches that may be sent one after another without looking at the world again.

    Waves run in the order of (part, round, provider, phase).
    """

    part: int
    """1 for creates, updates and long work, 2 for deletes."""
    round: int
    """How many waits for other steps come before, counted within the part."""
    provider: str
    """The provider whose phases these are."""
    phase: int
    """The order within the round among the requests of that provider."""
    batches: tuple[Batch, ...]
    """The batches, in order."""


__all__ = [
    "FORMAT",
    "Extent",
    "Mode",
    "Options",
    "OutputChange",
    "Plan",
    "PlanInstance",
    "PolicyFolders",
    "Removal",
    "Unmanaged",
    "Wave",
]


# A digest of older rules covered less than a reviewer relies on today, and cannot be computed again
# from a new plan. So a plan under it is refused, and only its open run is recovered.
RULE = 3
"""The rules by which approvals are made today. Rule 1 left out what is kept for others, losses,
owner, labels, dependencies, waivers, and recorded attributes other than the changed paths; rule 2
had what somebody loses as texts only."""


def digest_change(change: Change, scope_id: str, lineage: str) -> str:
    """SHA-256 over one change: the object and its system, every path before and after, what is
    recorded, who loses what, and the steps. Hexadecimal."""
    try:
        stored_digest = change._digest
        if stored_digest[:2] == (scope_id, lineage):
            return stored_digest[2]
    except AttributeError:
        # Nobody has asked for the digest of this change before.
        pass
    value = _compute_digest(change, scope_id, lineage)
    force_setattr(change, "_digest", (scope_id, lineage, value))
    return value


def _compute_digest(change: Change, scope_id: str, lineage: str) -> str:
    before, after = change.before, change.after
    if change.theirs:
        # What is kept for others may come and go between the review and the apply.
        before, after = _drop_paths(before, change.theirs), _drop_paths(after, change.theirs)
    return digest(
        {
            "scope_id": scope_id,
            "lineage": lineage,
            "identity": change.identity,
            "address": change.address,
            "incarnation": change.incarnation,
            "action": change.action.value,
            "adopts": change.adopts,
            "before": before,
            "after": after,
            "paths": [[c.path, c.before, c.after, c.sensitive] for c in change.paths],
            "row": [change.row_before, change.row_after],
            "owner": change.owner,
            "labels": change.labels,
            "depends_on": change.depends_on,
            "losses": [
                [finding.text, finding.access]
                for finding in change.findings
                if finding.harm is Harm.ACCESS_LOST
            ],
            "steps": change.steps,
            # Left out without it, so that the approval of such a change is as it always was.
            **({"park": change.park} if change.park else {}),
        }
    )


def is_same_change(change: Change, counterpart: Change) -> bool:
    """True if an approval of one covers the other, apart from what is judged by a review or follows
    from the rest: losses, dependencies and steps."""
    bare = (replace(item, findings=(), depends_on=(), steps=()) for item in (change, counterpart))
    first, second = (digest_change(item, "", "") for item in bare)
    return first == second and change.effective and counterpart.effective


def _drop_paths(attributes: FrozenMap | None, paths: Sequence[Path]) -> FrozenMap | None:
    if attributes is None:
        return None
    return lay_over(attributes, [path for path in paths if path[0] in attributes], EMPTY)


def compute_approval(plan: Plan) -> str:
    """SHA-256 over the changes that an apply makes, the settings of earlier runs that it removes,
    the systems, the waivers that the user accepted, the policies of --policy, and the objects that
    are left out because something could not be read. Hexadecimal."""
    scopes = plan.scopes
    # Left out without any, so that the approval of such a plan is as it always was.
    policies = {"policies": plan.policies.digest} if plan.policies.digest else {}
    left_out = [[change.identity, change.address] for change in plan.left_out]
    unread = {"left_out": sorted(map(digest, left_out))} if left_out else {}
    if plan.unevaluated:
        unread["unevaluated"] = list(plan.unevaluated)
    changes = (
        digest_change(change, scopes[change.identity.instance], plan.lineage)
        for change in plan.effective
    )
    return digest(
        {
            "rule": RULE,
            "lineage": plan.lineage,
            "scopes": scopes,
            "mode": plan.options.mode.value,
            "accept": sorted(plan.options.accept),
            # Digests are sorted, not changes: the order of a plan decides nothing.
            "removals": sorted(digest(removal) for removal in plan.removals),
            "changes": sorted(changes),
            **policies,
            **unread,
        }
    )


def seal_plan(plan: Plan) -> Plan:
    """The plan with the approval that follows from its contents."""
    return replace(plan, approval=compute_approval(plan), rule=RULE)
