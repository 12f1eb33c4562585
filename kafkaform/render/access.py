"""Who may do what with one resource, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.value import FrozenMap
from .documents import fitted
from .text import count, inline, table

ANYBODY = "anybody else"
_DECIDES = "*"


def lines(document: FrozenMap, width: int | None = None) -> Iterator[str]:
    """The explanation line by line. width: of the terminal, None for a pipe."""
    where = "any address" if document["host"] is None else document["host"]
    what = f"{document['resource_type']} {document['resource_name']}"
    yield inline(f"{what}, from {where}")
    yield ""
    if document["answers"]:
        rows = [["Principal", "Operation", "Answer", "Why"], *map(_row, document["answers"])]
        yield from table(fitted(rows, width))
    else:
        yield "Nobody can."
    yield ""
    foreign = any(acl["resource_type"] != document["resource_type"] for acl in document["acls"])
    more = " and of topics" if document["resource_type"] == "Cluster" else " and of the cluster"
    yield f"{count(len(document['acls']), 'ACL')} of this resource" + (
        f"{more * foreign} ({_DECIDES} decides):" if document["acls"] else "."
    )
    deciding = [answer["acl"] for answer in document["answers"] if answer["acl"]]
    for acl in document["acls"]:
        mark = _DECIDES if acl.without(["text"]) in deciding else " "
        yield inline(f"{mark} {acl['text']}")
    for unknown in document["unknown"]:
        yield inline(f"Not known: {unknown}.")


def _row(answer: FrozenMap) -> list[str]:
    cells = (answer["principal"] or ANYBODY, answer["operation"], answer["verdict"], answer["why"])
    return [inline(cell) for cell in cells]
