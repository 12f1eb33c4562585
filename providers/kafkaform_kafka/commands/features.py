"""`describe features` and `alter features`: the features of a cluster and their levels (KIP-584).

An `alter` plans one change for each feature. Its dry run is the controller's own check
(`validateOnly`, KIP-778), which every run asks for first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Reading
from kafkaform.core.text.display import inline
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Alteration, Answer, Ask, Draft, Operand, Option, Question

from ..inspect.document_page import document_page
from ..inspect.documents import read_document
from ..inspect.source import DescribeQuery
from ..kinds.commanded.resource_types import FEATURE, LEVEL, UNSAFE
from ..protocol.cluster_facts import (
    FEATURES,
    LEVELS,
    METADATA_VERSION,
    UNKNOWN,
    find_level,
    render_level,
)

_LEVEL = re.compile(r"\d{1,5}", re.ASCII)
_RELEASE = re.compile(r"\d+\.\d+", re.ASCII)
_MOST = (1 << 15) - 1
"""The highest level that the protocol can say."""
_WAYS = ("--downgrade", "--unsafe-downgrade")


def complete_levels(_: Sequence[str], __: Ask) -> Iterable[str]:
    """Complete with the known features; a level follows."""
    return [f"{name}=" for name in FEATURES]


def ask_features() -> Question:
    """Show the cluster's features.

    The answer has their levels, and the levels that the brokers support.
    """
    return Question(
        lambda session: Answer(read_document(session, "features", DescribeQuery())), document_page
    )


def alter_features(
    levels: Annotated[list[str], Operand("FEATURE=LEVEL…", complete_levels)],
    downgrade: Annotated[
        bool, Option("--downgrade", "Set lower levels, if no metadata is lost.")
    ] = False,
    unsafe: Annotated[
        bool, Option("--unsafe-downgrade", "Set lower levels, even if metadata is lost.")
    ] = False,
) -> Alteration:
    """Change the levels of features.

    A level is a number; 0 switches a feature off. For metadata.version it can be a release: 4.1.
    """
    if downgrade and unsafe:
        raise UsageError(f"{' and '.join(_WAYS)} exclude each other", "Give one of them.")
    targets: dict[str, int] = {}
    for text in levels:
        name, level = parse_level(text)
        if targets.setdefault(name, level) != level:
            raise UsageError(f"{inline(name)} is given twice", "Name each feature only once.")
    mode = _WAYS[unsafe] if downgrade or unsafe else ""
    drafts = tuple(
        Draft(FEATURE, name, partial(_edit_level, name, level, mode), managed=True)
        for name, level in targets.items()
    )
    return Alteration(drafts, (ask_features(),))


def parse_level(text: str) -> tuple[str, int]:
    """The feature and the level of `FEATURE=LEVEL`. Raises UsageError."""
    name, sign, number = text.partition("=")
    if not sign or not name:
        raise UsageError(
            f"{inline(text)!r} is not FEATURE=LEVEL",
            f"For instance {METADATA_VERSION}={LEVELS[max(LEVELS)]}, or group.version=1.",
        )
    if _LEVEL.fullmatch(number) and int(number) <= _MOST:
        return name, int(number)
    if name == METADATA_VERSION and _RELEASE.fullmatch(number):
        level = find_level(number)
        if level is None:
            raise UsageError(
                f"the level of {METADATA_VERSION} for Kafka {number} is not known",
                f"Give its number, or one of {', '.join(LEVELS.values())}.",
            )
        return name, level
    raise UsageError(
        f"{inline(number)!r} is not a level of {inline(name)}",
        "A level is a whole number; 0 switches a feature off.",
    )


def _edit_level(
    name: str, level: int, mode: str, attributes: FrozenMap | None, _: Reading
) -> FrozenMap | None:
    """The attributes with the wanted level. way: the flag that allows a lower one, or empty.
    Raises UsageError."""
    if attributes is None:
        raise UsageError(
            f"the cluster has no feature {inline(name)}",
            suggest(name, FEATURES) or "`kafkaform describe features` lists its features.",
        )
    now, target = attributes[LEVEL], render_level(name, level)
    if level < now and not mode:
        raise UsageError(
            f"{name} is at level {render_level(name, now)}, so {target} is a downgrade: "
            f"{FEATURES.get(name, UNKNOWN).loss}",
            f"Give {_WAYS[0]}, with which Kafka refuses to lose metadata, or {_WAYS[1]}.",
        )
    if level > now and mode:
        raise UsageError(
            f"{name} is at level {render_level(name, now)}, so {target} is no downgrade",
            f"Leave out {mode}.",
        )
    unsafe = level < now and mode == _WAYS[1]
    return FrozenMap({"name": name, UNSAFE if unsafe else LEVEL: level})
