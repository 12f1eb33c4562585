"""`describe acls` on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.commands.bare import Bare, bare
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import grant

__all__ = ["bare"]


@pytest.fixture
def name(bare: Bare, stranger: Login) -> Iterator[str]:
    """A topic name that two ACLs of a user of this test speak of."""
    topic = f"{bare.folder.prefix}a"
    revoke = grant(bare.folder.broker, stranger, "Topic", topic, "READ", "DESCRIBE")
    try:
        yield topic
    finally:
        revoke()


def test_acls(bare: Bare, stranger: Login, name: str) -> None:
    """All seven fields of each, filtered by globs, with or without a configuration."""
    asked = ("acls", "--resource-name", name)
    bare.folder.until(lambda: len(bare.document(*asked)["acls"]) == 2)
    found = bare.document(*asked)
    described, read = found["acls"]
    assert (described["acl_operation"], read) == (
        "Describe",
        {
            "acl_host": "*",
            "acl_operation": "Read",
            "acl_permission_type": "Allow",
            "acl_principal": stranger.principal,
            "resource_name": name,
            "resource_pattern_type_filter": "Literal",
            "resource_type": "Topic",
        },
    )
    assert (found["complete"], found["cluster_id"]) == (True, bare.folder.broker.cluster_id)
    filters = {
        "--principal": ("User:u*", "User:d*"),
        "--resource-type": ("Topic", "Group"),
        "--operation": ("Read", "Write"),
        "--permission": ("Allow", "Deny"),
    }
    for flag, (fits, fits_not) in filters.items():
        assert bare.document(*asked, flag, fits)["acls"], flag
        assert bare.document(*asked, flag, fits_not)["acls"] == [], flag
    bare.folder.connect()
    head, *rows, total = bare.folder.done("describe", *asked).out.splitlines()
    columns = "Principal Host Permission Operation Resource Pattern Name"
    assert head.split() == columns.split()
    assert rows[1].split() == [stranger.principal, "*", "Allow", "Read", "Topic", "Literal", name]
    assert total == "2 ACLs."
