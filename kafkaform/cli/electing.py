"""Preferred elections: the first replica of each partition leads again.

They change no object, so that there is no plan of them: what is asked, sent and told is here.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform_providers.kafka.sends.placement import Elected, elect_preferred
from kafkaform_providers.kafka.session import KafkaSession

from ..core.canonical import dumps
from ..core.errors import AppliedInPart, KafkaformError, UsageError
from ..core.resource import Fault
from ..core.value import FrozenMap
from ..render.text import count, inline
from .connection import Way


def elect(way: Way, names: Sequence[str], *, approved: bool, json: bool) -> None:
    """Let the preferred replicas of these topics lead, and say which do.

    Raises UsageError, KafkaformError without approval, AppliedInPart if a partition's leader is
    still another.
    """
    if not names:
        raise UsageError("no topic is named", "Name those whose leaders shall be elected.")
    if not approved:
        _ask(way, names)
    with way.session() as session:
        if not isinstance(session, KafkaSession):
            raise UsageError("only Kafka has topics", "Choose a kafka provider block.")
        rows = [row for name in names for row in _elected(session, name)]
    if json:
        document = FrozenMap(format_version="1.0", kind="elections", elections=tuple(rows))
        way.console.out(dumps(document))
    else:
        way.console.lines(map(_line, rows))
    left = sum(row["error"] is not None for row in rows)
    if left:
        raise AppliedInPart(
            f"{count(left, 'partition')} kept another leader than the preferred one",
            "The answer names the reason for each.",
        )


def _ask(way: Way, names: Sequence[str]) -> None:
    what = ", ".join(map(inline, names))
    if not way.console.interactive:
        raise UsageError("nobody can be asked here; nothing was sent", "Use --auto-approve.")
    question = f'Let the preferred replicas of {what} lead? Only "yes" is accepted: '
    if way.console.ask(question) != "yes":
        raise KafkaformError("not approved; nothing was sent")


def _elected(session: KafkaSession, name: str) -> list[FrozenMap]:
    found: Sequence[Elected] | Fault = elect_preferred(session.context, name)
    if isinstance(found, Fault):
        raise KafkaformError(f"{inline(name)}: {found.message} ({found.code})", found.advice)
    return [
        FrozenMap(
            topic=name,
            partition=row.partition,
            changed=row.changed,
            error=None
            if row.fault is None
            else FrozenMap(code=row.fault.code, message=row.fault.message),
        )
        for row in found
    ]


def _line(row: FrozenMap) -> str:
    place = f"{inline(row['topic'])}, partition {row['partition']}"
    if row["error"] is not None:
        return f"{place}: {inline(row['error']['message'])} ({row['error']['code']})"
    return f"{place}: {'has its preferred leader now' if row['changed'] else 'had it already'}"
