"""An ACL in one sentence, which has all of its seven fields."""

from __future__ import annotations

import pytest

from kafkaform_kafka.protocol.acl import describe_acl_key
from kafkaform_kafka.resource_kinds import WORDS


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "User:app|*|Write|Allow|Topic|shop.orders|Literal",
            'Allow User:app Write on topic "shop.orders" from any host',
        ),
        (
            "User:app|10.0.0.7|All|Deny|Group|shop-|Prefixed",
            'Deny User:app All on groups with prefix "shop-" from 10.0.0.7',
        ),
        (
            "User:*|*|Describe|Allow|Cluster|kafka-cluster|Literal",
            "Allow User:* Describe on the cluster from any host",
        ),
        (
            "User:x|*|Write|Allow|TransactionalID|*|Literal",
            "Allow User:x Write on every transactional id from any host",
        ),
        (
            "User:x|*|Read|Allow|Topic|*|Prefixed",
            'Allow User:x Read on topics with prefix "*" from any host',
        ),
    ],
)
def test_each_field_is_in_the_sentence(key: str, sentence: str) -> None:
    """Renderers get it by the key, which is all that some of them know."""
    assert describe_acl_key(key) == sentence
    assert WORDS.name_object("kafka_acl", key) == sentence


def test_a_principal_cannot_pass_for_the_rest_of_the_sentence() -> None:
    """A name with blanks is quoted, so that it does not read like another resource."""
    key = 'User:a Read on topic "public"|*|All|Allow|Topic|secrets|Literal'
    assert describe_acl_key(key) == (
        'Allow "User:a Read on topic \\"public\\"" All on topic "secrets" from any host'
    )


@pytest.mark.parametrize("key", ["", "User:a|*|Read", "User:a|*|Read|Allow|Moon|x|Literal"])
def test_what_is_no_acl_keeps_its_key(key: str) -> None:
    """A key of a later version has no sentence, and is shown as it is."""
    assert describe_acl_key(key) == ""
    assert WORDS.name_object("kafka_acl", key) == key
    assert WORDS.name_object("kafka_topic", key) == key
