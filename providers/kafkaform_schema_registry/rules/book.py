"""All rules of the provider, and what they ask a registry: one line for each part. Shorter than a
module should be, because the parts have the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Change
from kafkaform.core.resource import Depth
from kafkaform.core.rule import RuleBook

from . import compatibility, contracts, levels, schemas, versions

_PARTS = (compatibility, contracts, levels, schemas, versions)

BOOK = RuleBook(
    judges=(*contracts.JUDGES, *levels.JUDGES, *schemas.JUDGES, *versions.JUDGES),
    surveys=(
        *compatibility.SURVEYS,
        *contracts.SURVEYS,
        *levels.SURVEYS,
        *schemas.SURVEYS,
        *versions.SURVEYS,
    ),
)


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """What has to be listed for the surveys of these changes, and how deep."""
    return {kind: depth for module in _PARTS for kind, depth in module.list_needs(changes).items()}
