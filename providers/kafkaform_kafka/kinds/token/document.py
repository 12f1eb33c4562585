"""Makes the rows of `describe delegation-tokens`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap


def list_tokens(
    items: Sequence[Observed], name: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """One row for each token, the oldest first. name: a glob of ids; fields: globs by attribute."""
    return tuple(
        row
        for row in sorted(
            (item.attributes for item in items), key=lambda row: (row["issued"], row["token_id"])
        )
        if fnmatchcase(row["token_id"], name)
        and all(fnmatchcase(row[field], glob) for field, glob in fields.items())
    )
