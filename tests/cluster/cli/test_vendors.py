"""A real broker that refuses what the cluster of a vendor refuses: each refusal ends in a message
that names the vendor, and nothing is promised that the cluster does not keep.

The proxy gives the codes that such clusters give. It is no proof of what the real services do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform.core.resource import Absent, Identity

from ...conftest import Broker
from ...kit.commands.folder import Folder
from ...kit.kafka.sessions import connect
from ...kit.proxy.faults import DRY, FOR_EVER, REAL, Fault
from ...kit.proxy.proxy import Proxy, proxying

QUOTA = """
resource "kafka_quota" "ci" {{
  user   = "{}ci"
  config = {{ producer_byte_rate = 1000000 }}
}}
"""
ACL = """
resource "kafka_acl" "ci" {{
  resource_name       = "{0}orders"
  resource_type       = "Topic"
  acl_principal       = "User:{0}ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}}
"""
USER = """
resource "kafka_user_scram_credential" "ci" {{
  username         = "{}ci"
  scram_mechanism  = "SCRAM-SHA-256"
  scram_iterations = 4096
  password         = secret_env("USER_PASSWORD")
}}
"""


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """Before the run's broker."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as made:
        yield made


def become(folder: Folder, proxy: Proxy, profile: str) -> None:
    """From now on the provider block leads through the proxy and names this profile."""
    folder.connect(bootstrap=proxy.bootstrap)
    file = folder.path / "provider.kf.hcl"
    text = file.read_text(encoding="utf-8").rstrip().removesuffix("}")
    folder.write(file.name, f'{text}  profile = "{profile}"\n}}\n')


def list_writes(proxy: Proxy) -> list[str]:
    """The requests that came and would change something, dry runs too."""
    writes = ("Create", "Delete", "Alter", "Incremental")
    return [one.request.api for one in proxy.passed if one.request.api.startswith(writes)]


def test_a_plan_refuses_before_anything_is_sent(folder: Folder, proxy: Proxy) -> None:
    """A replication factor that Confluent Cloud refuses is refused by the plan, and by the apply:
    no request leaves, not even a dry run."""
    become(folder, proxy, "confluent-cloud")
    folder.declare("a", more="replication_factor = 1")
    proxy.arm()
    for command in (["plan"], ["apply", "-auto-approve"]):
        said = folder.fails(8, *command)
        assert "Confluent Cloud accepts a replication factor of 3 only" in said
        assert "https://github.com/confluentinc/mcp-confluent/issues/585" in said
        assert "(profile confluent-cloud, as the provider block says)" in said
    assert list_writes(proxy) == []
    become(folder, proxy, "apache")
    folder.done("apply", "-auto-approve")
    assert folder.topics() == {"a": 1}


@pytest.mark.parametrize(
    ("profile", "api", "code", "block", "words"),
    [
        (
            "confluent-cloud",
            "DescribeClientQuotas",
            35,
            QUOTA,
            "manages client quotas with its own",
        ),
        ("amazon-msk-serverless", "DescribeClientQuotas", 31, QUOTA, "lets nobody change quotas"),
        ("amazon-msk-serverless", "DescribeAcls", 31, ACL, "lets nobody create or delete ACLs"),
        ("azure-event-hubs", "DescribeAcls", 35, ACL, "Azure Event Hubs has no ACLs"),
        ("warpstream", "DescribeClientQuotas", 35, QUOTA, "lacks those of quotas"),
        ("redpanda", "DescribeUserScramCredentials", 35, USER, "since version 25.2"),
    ],
)
def test_a_kind_that_cannot_be_read(
    folder: Folder, proxy: Proxy, profile: str, api: str, code: int, block: str, words: str
) -> None:
    """Where the cluster refuses even to read a kind of object, the plan is blocked with the
    vendor's reason instead of a right that nobody can grant."""
    folder.monkeypatch.setenv("USER_PASSWORD", "correct horse")
    become(folder, proxy, profile)
    folder.write("main.kf.hcl", block.format(folder.prefix))
    proxy.arm(Fault(api, "say whole", times=FOR_EVER, code=code))
    said = folder.fails(8, "plan")
    assert words in said
    assert "Grant Describe" not in said
    assert list_writes(proxy) == []
    proxy.disarm()


def test_a_right_that_can_be_granted_stays_a_missing_right(folder: Folder, proxy: Proxy) -> None:
    """Confluent Cloud has rights on the cluster, so a missing one is not taken for a rule."""
    become(folder, proxy, "confluent-cloud")
    folder.write("main.kf.hcl", QUOTA.format(folder.prefix))
    proxy.arm(Fault("DescribeClientQuotas", "say whole", times=FOR_EVER, code=31))
    said = folder.fails(8, "plan")
    assert "Grant DescribeConfigs on Cluster" in said
    assert "with its own tools" not in said
    proxy.disarm()


def test_a_refusal_in_the_dry_run_is_explained(folder: Folder, proxy: Proxy) -> None:
    """WarpStream does not list the request that changes configs: the dry run ends with that."""
    folder.declare("a", more='config = { "retention.ms" = "1000000" }')
    folder.done("apply", "-auto-approve")
    become(folder, proxy, "warpstream")
    folder.declare("a", more='config = { "retention.ms" = "2000000" }')
    proxy.arm(Fault("IncrementalAlterConfigs", "refuse", DRY, times=FOR_EVER, code=35))
    said = folder.fails(1, "apply", "-auto-approve")
    assert "lacks IncrementalAlterConfigs" in said
    assert "console or its Terraform provider" in said
    proxy.disarm()


def test_a_refused_quota_of_aiven(folder: Folder, proxy: Proxy) -> None:
    """A quota that can be read and not be set: INVALID_REQUEST is explained."""
    become(folder, proxy, "aiven")
    folder.write("main.kf.hcl", QUOTA.format(folder.prefix))
    proxy.arm(Fault("AlterClientQuotas", "refuse", DRY, times=FOR_EVER, code=42))
    said = folder.fails(1, "apply", "-auto-approve")
    assert "Aiven manages quotas in its console" in said
    assert "with the tools of Aiven for Apache Kafka" in said
    proxy.disarm()


def test_a_refusal_of_the_request_itself_is_explained(folder: Folder, proxy: Proxy) -> None:
    """No dry run exists for SCRAM credentials: the apply fails, and says since when Redpanda has
    them."""
    folder.monkeypatch.setenv("USER_PASSWORD", "correct horse")
    become(folder, proxy, "redpanda")
    folder.write("main.kf.hcl", USER.format(folder.prefix))
    proxy.arm(Fault("AlterUserScramCredentials", "refuse", REAL, times=FOR_EVER, code=35))
    said = folder.run("apply", "-auto-approve")
    assert said.code == 5, said.text
    assert "since version 25.2" in said.text
    assert "one SCRAM mechanism only" in said.text  # the plan's warning
    proxy.disarm()


def test_a_policy_of_the_cluster_is_not_taken_for_a_rule(folder: Folder, proxy: Proxy) -> None:
    """A managed cluster answers POLICY_VIOLATION for many reasons: the message says what the
    cluster said, and blames no rule."""
    become(folder, proxy, "amazon-msk")
    folder.declare("a")
    proxy.arm(Fault("CreateTopics", "refuse", DRY, times=FOR_EVER, code=44))
    said = folder.fails(1, "apply", "-auto-approve")
    assert "a policy of the cluster forbids this: said by the proxy" in said
    assert "Amazon MSK" not in said
    proxy.disarm()


def test_a_cluster_that_cannot_be_managed(folder: Folder, proxy: Proxy) -> None:
    """Azure Event Hubs does not describe itself: the failed connection says that kafkaform cannot
    manage it, and where that is known from."""
    become(folder, proxy, "azure-event-hubs")
    folder.declare("a")
    proxy.arm(Fault("DescribeCluster", "say whole", times=FOR_EVER, code=35))
    said = folder.fails(1, "plan")
    assert "Azure Event Hubs" in said and "kafkaform cannot manage it" in said
    assert "azure-event-hubs-for-kafka/issues/209" in said
    proxy.disarm()


def test_acls_that_a_listing_names_otherwise_are_read_one_by_one(
    broker: Broker, proxy: Proxy
) -> None:
    """Confluent Cloud lists principals by their numbers, so many ACLs are read singly there."""
    names = [f"User:sa-{number}" for number in range(8)]
    ids = [Identity("kafka", "kafka_acl", f"{n}|*|Read|Allow|Topic|orders|Literal") for n in names]
    for profile, requests in ((None, 1), ("confluent-cloud", len(ids))):
        session = connect(broker, servers=(proxy.bootstrap,), profile=profile)
        proxy.arm()
        readings = session.read(ids)
        assert all(isinstance(one, Absent) for one in readings.values())
        assert proxy.take()["DescribeAcls"] == requests
        session.close()
