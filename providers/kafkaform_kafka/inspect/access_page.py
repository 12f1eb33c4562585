"""The page of `explain access`: who can do what with one resource."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Cells, Grid, Page

from .cells import count

ANYBODY = "anybody else"
_DECIDES = "*"


def access_page(document: FrozenMap) -> Page:
    """The page of a document of `explain access`."""
    host = "any address" if document["host"] is None else document["host"]
    resource = f"{document['resource_type']} {document['resource_name']}"
    yield f"{resource}, from {host}"
    yield ""
    if document["answers"]:
        yield Grid(
            (("Principal", "Operation", "Answer", "Why"), *map(_render_row, document["answers"]))
        )
    else:
        yield "Nobody can."
    yield ""
    foreign = any(acl["resource_type"] != document["resource_type"] for acl in document["acls"])
    scopes = " and of topics" if document["resource_type"] == "Cluster" else " and of the cluster"
    yield f"{count(len(document['acls']), 'ACL')} of this resource" + (
        f"{scopes * foreign} ({_DECIDES} decides):" if document["acls"] else "."
    )
    deciding = [answer["acl"] for answer in document["answers"] if answer["acl"]]
    for acl in document["acls"]:
        mark = _DECIDES if acl.without(["text"]) in deciding else " "
        yield f"{mark} {acl['text']}"
    for unknown in document["unknown"]:
        yield f"Not known: {unknown}."


def _render_row(answer: FrozenMap) -> Cells:
    return answer["principal"] or ANYBODY, answer["operation"], answer["verdict"], answer["why"]
