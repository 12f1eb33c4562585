"""What people are shown of an apply that takes many requests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from kafkaform.audit.records import Record
from kafkaform.cli.terminal.progress import open_bars
from kafkaform.plan.model import Options
from kafkaform_kafka.memory import not_sent

from ...kit.simulated.engine import House, Screen, apply_plainly, desired, space, topic
from ...kit.simulated.managed_topics import built, on_append
from .test_acls import acl, said

REQUEST_SECONDS = {"CreateTopics": 1.0, "DeleteAcls": 30.0}
"""What the controller takes for one request: DeleteAcls looks at every ACL for each filter."""


def shown(where: House, *topics: str) -> list[str]:
    """The lines in a log of an apply that makes these topics and deletes all ACLs but one."""

    def busy(records: Sequence[Record]) -> None:
        if records[0].kind == "intent":
            where.clock.advance(REQUEST_SECONDS[records[0].body["phase"].rpartition(" ")[2]])

    on_append(where, busy)
    stream, kept = io.StringIO(), said(acl("kept"))
    wanted = desired(*kept.declared, *map(topic, topics), authorizer=_authorizer(kept))
    with open_bars(stream, where.clock) as bars:
        screen = Screen(progress=bars)
        done = apply_plainly(space(where, wanted), Options(max_deletes=500), screen)
    assert done.report is not None and done.report.complete
    return [line for line in stream.getvalue().splitlines() if "Applying" in line]


def _authorizer(said: Any) -> Any:
    return said.providers["kafka"].config["authorizer"]


def test_many_deletes_of_acls_tell_how_many_are_done_and_how_long_the_rest_takes() -> None:
    """Five hundred go in requests of two hundred; the time left follows from what those took,
    whatever went before."""
    where = built(said(acl("kept"), *(acl(f"t{number}") for number in range(500))))
    assert shown(where, "a", "b") == [
        "kafkaform: Applying: 202 of 502 steps",
        "kafkaform: Applying DeleteAcls: 200 of 500 steps, about 45 s left",
        "kafkaform: Applying: 402 of 502 steps",
        "kafkaform: Applying DeleteAcls: 400 of 500 steps, about 15 s left",
        "kafkaform: Applying: 502 applied",
        "kafkaform: Applying DeleteAcls: 500 applied",
    ]


def test_one_request_has_no_progress_of_its_own() -> None:
    """What is done at once needs no second line."""
    where = built(said(acl("kept"), acl("t")))
    assert shown(where) == ["kafkaform: Applying: 1 applied"]


def test_what_was_not_sent_is_not_called_done() -> None:
    """The last line of the progress says what became of the steps."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(not_sent(), "CreateTopics")
    stream = io.StringIO()
    with open_bars(stream, where.clock) as bars:
        wanted = desired(*map(topic, "abcz"))
        done = apply_plainly(space(where, wanted), Options(), Screen(progress=bars))
    assert done.report is not None and not done.report.complete
    assert "kafkaform: Applying: 3 not applied" in stream.getvalue().splitlines()
    assert "steps, done" not in stream.getvalue()
