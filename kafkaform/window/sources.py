"""What the window reads: a folder, its store, the fleet's files, and the rules of access, which are
the ACLs in the state and the `authorizer` blocks of the configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from pathlib import Path

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import Access
from kafkaform_kafka.inspect.explanations import build_access
from kafkaform_kafka.protocol.acl import KIND, Acl, parse_acl
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts

from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import KafkaformError
from ..core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from ..core.value import EMPTY, FrozenMap
from ..state.model import Row, State
from ..workflow.configuration.evaluation import Inputs
from ..workflow.connection import KAFKA, read_block_parts
from ..workflow.live_looks import LiveLooks
from ..workflow.stores import Store
from .page import Trail


class Sources(Struct, frozen=True):
    """Where the pages come from."""

    folder: Path
    """The folder with saved plans and the configuration."""
    store: Store
    """The state and the log. Nothing is read through this value itself, see `open_store`."""
    fleet_root: str | None = None
    """Where the fleet's files are, None if nobody said."""
    inputs: Inputs = Inputs()
    """The values of the configuration's variables."""
    repository: Path | None = None
    """The repository file whose folders are shown instead of `folder`."""
    live: LiveLooks | None = None
    """What asks systems who uses them now, None if the window asks nobody."""
    trail: Trail | None = None
    """The way to `folder`, if it was opened from the page of its repository."""

    def open_store(self) -> Store:
        """The store as if it had just been opened."""
        # Sinks and backends remember what they read, and each page must read anew.
        return Store(self.store.folder, copy(self.store.backend), copy(self.store.sink))


Query = Mapping[str, str]
"""The query of an address, each name once."""


def read_number(query: Query, name: str) -> int:
    """A number of a query, 0 if there is none."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


AUTHORIZER = "authorizer"


class DeclaredRules(Struct, frozen=True):
    """The `authorizer` blocks of a configuration."""

    blocks: Mapping[str, FrozenMap] = EMPTY
    """Provider instance -> its block; an instance without one has an empty one."""
    sources: Mapping[str, str] = EMPTY
    """Provider instance -> where its provider block is."""
    fault: str = ""
    """The first error of the configuration."""
    gap: str = ""
    """Why a block may be missing although there is no error: variables without a value."""

    def explain_gap(self, instance: str) -> str:
        """Why the block of an instance may be missing or incomplete, empty if it is not."""
        return self.fault or ("" if instance in self.blocks else self.gap)


def read_rules(sources: Sources) -> DeclaredRules:
    """What the folder's configuration declares now. Nothing is raised: the state can be shown
    without it."""
    try:
        blocks, faults = read_block_parts(sources.folder, sources.inputs, (AUTHORIZER,))
    except KafkaformError as error:
        return DeclaredRules(fault=f"{error.message}. {error.advice}")
    return DeclaredRules(
        {name: block.config.get(AUTHORIZER) or EMPTY for name, block in blocks.items()},
        {name: str(block.range) for name, block in blocks.items()},
        _describe_first(fault for fault in faults if fault.severity is Severity.ERROR),
        _describe_first(faults),
    )


def _describe_first(faults: Iterable[Diagnostic]) -> str:
    fault = next(iter(faults), None)
    if fault is None:
        return ""
    return f"{fault.summary} ({fault.range})" if fault.range else fault.summary


def collect_acls(state: State | None) -> Mapping[str, Mapping[Acl, Row]]:
    """Provider instance -> its recorded ACLs with their rows. Raises KafkaformError for a row that
    somebody edited."""
    recorded: dict[str, dict[Acl, Row]] = {}
    for identity, row in state.objects.items() if state else ():
        if identity.kind == KIND:
            try:
                recorded.setdefault(identity.instance, {})[parse_acl(row.attributes)] = row
            except KeyError as error:
                raise make_edited_error(identity, error) from None
    return recorded


def make_edited_error(identity: Identity, missing: KeyError) -> KafkaformError:
    """The error for a row that lacks what each row of its kind has."""
    return KafkaformError(
        f"the recorded object {identity} lacks {missing}",
        "The state was edited; restore it from a backup.",
    )


def list_instances(state: State | None, declared: Collection[str]) -> tuple[str, ...]:
    """The provider instances that have access rules, as far as state and configuration tell."""
    recorded = (
        {*state.providers, *(identity.instance for identity in state.objects)} if state else set()
    )
    names = {*recorded, *declared}
    return tuple(sorted(name for name in names if name.partition(".")[0] == KAFKA))


def build_recorded_access(
    acls: Mapping[Acl, Row],
    declared: FrozenMap,
    super_users: Collection[str] | None = None,
    allow_if_no_acl: bool | None = None,
) -> Access:
    """The same authorizer as of `explain access`, with recorded ACLs in the place of live ones.

    declared: an `authorizer` block; the other two override it.
    """
    items = tuple(Observed(row.identity, row.attributes) for row in acls.values())
    sweep = Sweep(KIND, Depth.FULL, items, Coverage(CoverageKind.COMPLETE))
    facts = Facts("", values=KafkaFacts(authorizer=declared))
    supers = None if super_users is None else tuple(super_users)
    return build_access(sweep, facts, supers, allow_if_no_acl)
