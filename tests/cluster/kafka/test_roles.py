"""The roles connect and custom, by what a client of a real broker may do (the other roles are in
`test_acls_broker`)."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import FaultClass, Observed
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.session import KafkaSession, open_session

from ...kit.kafka import sessions as cluster
from ...kit.kafka.sessions import apply, eventually, new
from .test_acls import consume, produce, role, user, works

__all__ = ["user"]


def test_a_connect_worker_keeps_its_topics_and_its_group(
    admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """It makes, writes and reads its internal topics as a member of its group, and no others."""
    own, other = f"{prefix}-offsets", f"{prefix}2-offsets"
    body = f'role = "connect"\n  topics = ["{own}"]\n  group = "{prefix}"'
    with role(admin, prefix, body):
        session = open_session(user)
        made, refused = apply(session, new(own), new(other))
        assert made.status is OutcomeStatus.APPLIED
        assert refused.fault and refused.fault.kind is FaultClass.PERMISSION
        eventually(lambda: works(lambda: produce(user, own)), bool)
        eventually(lambda: works(lambda: consume(user, own, prefix)), bool)
        assert not works(lambda: consume(user, own, f"{prefix}2"))
        gone = cluster.gone(own, made.incarnation)
        (kept,) = apply(session, gone)
        assert kept.fault and kept.fault.kind is FaultClass.PERMISSION
        session.close()


def test_a_custom_role_is_its_operations(
    broker: Any, admin: KafkaSession, user: KafkaSettings, prefix: str
) -> None:
    """Who may look at a topic and its configs sees them, and neither writes nor reads records."""
    apply(admin, new(prefix))
    cluster.produce(broker, prefix, 1)
    looks = f'role = "custom"\n  topics = ["{prefix}"]\n  operations = '
    with role(admin, prefix, f'{looks}["Describe", "DescribeConfigs"]'):
        session = open_session(user)
        eventually(lambda: cluster.read(session, prefix), lambda found: isinstance(found, Observed))
        session.close()
        assert not works(lambda: produce(user, prefix))
    with role(admin, prefix, f'{looks}["Write"]'):
        eventually(lambda: works(lambda: produce(user, prefix)), bool)
