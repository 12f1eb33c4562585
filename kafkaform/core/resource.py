"""The three worlds a plan compares: declared (HCL), observed (live) and pending (open intents)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from .address import Address
from .diagnostics import Diagnostics, Range
from .value import EMPTY, FrozenMap, Value


class Identity(Struct, frozen=True, order=True):
    """One real object. instance: provider instance (`kafka` or `kafka.eu`); kind: resource type
    (`kafka_topic`); key: the provider's text for its identity, such as its name."""

    instance: str
    kind: str
    key: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} ({self.instance})"

    @property
    def provider(self) -> str:
        """The name of the provider that its instance is of."""
        return self.instance.partition(".")[0]


# ── declared ────────────────────────────────────────────────────────────────────────────


class Lifecycle(Struct, frozen=True):
    """prevent_destroy: None = not said; ignore_changes: globs over paths such as
    `config["retention.*"]` written `config.retention.*`, or ("*",) for all;
    ignore_changes_except: the same the other way round, None = not said."""

    prevent_destroy: bool | None = None
    adopt: bool = False
    ignore_changes: tuple[str, ...] = ()
    ignore_changes_except: tuple[str, ...] | None = None


class Declared(Struct, frozen=True):
    """One object that the configuration declares; attributes fit the type's schema, with
    None for what was left out. secret_version: text that decides when a secret is sent."""

    identity: Identity
    address: Address
    attributes: FrozenMap
    range: Range
    lifecycle: Lifecycle = Lifecycle()
    depends_on: tuple[Address, ...] = ()
    owner: str | None = None
    labels: FrozenMap = EMPTY
    secret_version: str | None = None


class Removed(Struct, frozen=True):
    """A `removed` block: `source` and all its instances leave the state; with destroy the
    object is deleted once no owner is left."""

    source: Address
    destroy: bool
    range: Range


class Moved(Struct, frozen=True):
    """A `moved` block: rows owned by `source` are owned by `target` from now on."""

    source: Address
    target: Address
    range: Range


class Import(Struct, frozen=True):
    """An `import` block: the live object with this provider id becomes `target`'s."""

    target: Address
    id: str
    range: Range


class ProviderConfig(Struct, frozen=True):
    """One `provider` block. name: `kafka`; instance: `kafka` or `kafka.ALIAS`."""

    name: str
    instance: str
    config: FrozenMap
    range: Range


class Output(Struct, frozen=True):
    """deferred: the value refers to a computed attribute and is evaluated after the apply."""

    name: str
    value: Value
    sensitive: bool = False
    deferred: bool = False


class Desired(Struct, frozen=True):
    """All that a configuration says. digest: over the files and variables that made it (never
    over secret values); settles: evaluated again with what the server sets, it may say more
    (outputs, postconditions, checks)."""

    declared: tuple[Declared, ...]
    providers: Mapping[str, ProviderConfig]
    removed: tuple[Removed, ...] = ()
    moved: tuple[Moved, ...] = ()
    imports: tuple[Import, ...] = ()
    outputs: tuple[Output, ...] = ()
    diagnostics: Diagnostics = ()
    digest: str = ""
    settles: bool = False


# ── observed ────────────────────────────────────────────────────────────────────────────


class FaultClass(StrEnum):
    """What an error says about the effect of the request."""

    DEFINITE = "definite"  # refused; nothing happened, and repeating will not help
    NOT_APPLIED = "not_applied"  # nothing happened; waiting and sending again may help
    AMBIGUOUS = "ambiguous"  # it may have happened: read before deciding anything
    PERMISSION = "permission"  # refused for a missing right
    CONVERGED = "converged"  # the object may already be as asked: read, then decide


class Fault(Struct, frozen=True):
    """code: the protocol's name (`INVALID_REQUEST`); where: node and API; retry_after:
    seconds that the system asks to wait."""

    code: str
    message: str
    kind: FaultClass
    where: str = ""
    advice: str = ""
    retry_after: float = 0.0


class Observed(Struct, frozen=True):
    """attributes: canonical, in the schema's shape, only what the object itself owns
    (its overrides, not inherited values); fallbacks: path ("config.retention.ms") -> the value
    that takes effect if that path is removed; moving: the target attributes while a move runs;
    details: shown, never compared; ticket: what `progress` calls that move, the same
    as the outcome that started it; foreign: paths that others own unless they are declared."""

    identity: Identity
    attributes: FrozenMap
    incarnation: str | None = None
    moving: FrozenMap | None = None
    fallbacks: FrozenMap = EMPTY
    details: FrozenMap = EMPTY
    ticket: str | None = None
    foreign: frozenset[tuple[str, ...]] = frozenset()


class Absent(Struct, frozen=True):
    """Proven: a read that could have seen the object did not. others: what others have set on it,
    if there is anything: that alone makes no object, unless it is what somebody declares."""

    identity: Identity
    others: Observed | None = None


class Hidden(Struct, frozen=True):
    """We may not see whether it is there; right: what is missing (`Describe on orders`)."""

    identity: Identity
    right: str


class Failed(Struct, frozen=True):
    """The read failed, so nothing is known."""

    identity: Identity
    fault: Fault


Reading = Observed | Absent | Hidden | Failed


class Depth(StrEnum):
    NAMES = "names"  # identity, incarnation and what the listing gives for free
    FULL = "full"


class CoverageKind(StrEnum):
    COMPLETE = "complete"  # everything of the kind is in the items
    VISIBLE_ONLY = "visible_only"  # what we may not see is left out without a word
    FAILED = "failed"


class Coverage(Struct, frozen=True):
    kind: CoverageKind
    fault: Fault | None = None


class Sweep(Struct, frozen=True):
    """All objects of a kind that one listing showed, and how far that listing can be trusted.
    whole: the items are as `read` would show them, so that nobody needs to read them again."""

    kind: str
    depth: Depth
    items: tuple[Observed, ...]
    coverage: Coverage
    whole: bool = False


class Facts(Struct, frozen=True):
    """What a session knows of its system.

    A plan records the first four fields; the others hold for the session that told them.
    """

    scope_id: str
    """Which system answers: an id that no other one has."""
    nodes: tuple[str, ...] = ()
    """The live nodes, if a system has several that can be asked one by one."""
    principal: str | None = None
    """Whom we act as, if it can be known."""
    values: FrozenMap = EMPTY
    """Further facts, JSON-able, for the provider alone: defaults, limits, versions, settings."""
    operation_timeout: float = 30.0
    """Seconds that the system may take for one request, and a write to become visible."""
    request_timeout: float = 0.0
    """Seconds for which a node keeps a request before it hands it on, beside the operation
    timeout that the request carries."""
    protect: bool = True
    """New rows of the types that say so (`ResourceType.protect`) start protected."""

    @property
    def recorded(self) -> Facts:
        """The facts as a plan keeps them."""
        return Facts(self.scope_id, self.nodes, self.principal, self.values)


class InstanceWorld(Struct, frozen=True):
    """What was read through one provider instance: `readings` holds every declared or recorded
    object, `sweeps` each kind that was listed."""

    facts: Facts
    readings: Mapping[Identity, Reading]
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)


World = Mapping[str, InstanceWorld]


# ── pending ─────────────────────────────────────────────────────────────────────────────

TASK = "move"
"""The action of long work that is pending. The word is the log's, whose format is older
than the providers for which such work is called something else."""
SETTING = "throttle"
"""The action of what stands for the time of a task, and what must be removed after it. The word is
the log's, as above."""


class Pending(Struct, frozen=True):
    """An intent without a terminal outcome. target: the attributes it would have made;
    time: seconds since the epoch when the intent became durable.

    Or a task that was not seen to end, or what was set for its time: action TASK or SETTING, the
    ticket as its step, no target; note: how far it is, in words."""

    identity: Identity
    run: str
    step: str
    action: str
    target: FrozenMap
    time: float
    incarnation: str | None = None
    note: str = ""
