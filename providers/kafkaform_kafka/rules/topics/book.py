"""Short because it is only the list of the rules of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Change
from kafkaform.core.resource import Depth

from . import config_changes, config_values, life, moves, names

JUDGES = (*config_changes.JUDGES, *config_values.JUDGES, *life.JUDGES, *moves.JUDGES)
SURVEYS = (*config_changes.SURVEYS, *names.SURVEYS)


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Resource type -> how deep it has to be listed for the surveys of these changes."""
    return {**config_changes.list_needs(changes), **names.list_needs(changes)}
