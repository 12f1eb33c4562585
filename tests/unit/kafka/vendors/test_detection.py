"""Which profile applies: found by marks of one vendor, or named by the provider block."""

from __future__ import annotations

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform_kafka.vendors.profile import (
    HINT,
    MARKS,
    PROFILES,
    Detection,
    explain_connection,
    find_profile,
)

FOUND = {
    "b-1.demo.123z8u.c2.kafka.us-west-1.amazonaws.com:9098": "amazon-msk",
    "b-2-public.demo.v4ni96.c2.kafka.eu-central-1.amazonaws.com:9198": "amazon-msk",
    "b-1.demo.1a2b3c.c2.kafka.cn-north-1.amazonaws.com.cn:9094": "amazon-msk",
    "boot-vab1abab.c1.kafka-serverless.us-east-1.amazonaws.com:9098": "amazon-msk-serverless",
    "pkc-00000.us-central1.gcp.confluent.cloud:9092": "confluent-cloud",
    "PKC-00000.US-CENTRAL1.GCP.CONFLUENT.CLOUD.:9092": "confluent-cloud",
    "demo-kafka.my-demo-project.aivencloud.com:17072": "aiven",
    "mynamespace.servicebus.windows.net:9093": "azure-event-hubs",
    "mynamespace.servicebus.usgovcloudapi.net:9093": "azure-event-hubs",
    "serverless.warpstream.com:9092": "warpstream",
    "my-cluster-kafka-0.my-cluster-kafka-brokers.myproject.svc:9092": "strimzi",
    "my-cluster-kafka-bootstrap.myproject.svc.cluster.local:9093": "strimzi",
}
STRANGERS = (
    "kafka-1:9092",
    "localhost:9092",
    "10.0.0.1:9092",
    "[::1]:9092",
    "confluent.cloud.example.com:9092",
    "myconfluent.cloud:9092",
    "kafka.confluent.cloud.evil.example:9092",
    "ec2-1-2-3-4.compute.amazonaws.com:9092",
    "kafka.us-east-1.amazonaws.com.example:9092",
    "redpanda-0.redpanda.svc:9092",
    "my-kafka-brokers.example.com:9092",
)


@pytest.mark.parametrize(("address", "profile"), FOUND.items())
def test_an_address_of_a_vendor(address: str, profile: str) -> None:
    """The vendors' own domains, in any spelling; the reason names the host."""
    detection = find_profile(None, [address, "kafka-1:9092"], "abc")
    assert detection is not None and detection.profile == profile
    host = address.lower().rpartition(":")[0].rstrip(".")
    assert detection.text == f"profile {profile}, found by the host name {host}"
    assert HINT.search(address)


@pytest.mark.parametrize("address", STRANGERS)
def test_an_address_that_is_no_vendors(address: str) -> None:
    """A name that only contains a vendor's domain proves nothing."""
    assert find_profile(None, [address], "5tjJEpdwSveZ2vMqqpAUHw") is None


def test_a_cluster_id_of_redpanda() -> None:
    """Redpanda begins its cluster ids with its name."""
    detection = find_profile(None, ["broker:9092"], "redpanda.bb2f54e9-1f5c-4f3b-b59d-54a3b07e6f0c")
    assert detection is not None and detection.profile == "redpanda"
    assert "found by the cluster id redpanda.bb2f" in detection.text
    assert find_profile(None, ["broker:9092"], "my-redpanda.1") is None


def test_the_provider_block_decides() -> None:
    """Its name stands against every mark, and `apache` switches all rules off."""
    host = ["pkc-1.confluent.cloud:9092"]
    assert find_profile("aiven", host, "x") == Detection("aiven", "as the provider block says")
    apache = find_profile("apache", host, "redpanda.1")
    assert apache is not None and apache.text == "profile apache, as the provider block says"
    assert apache.values == {}


def test_every_mark_names_a_profile_and_is_hinted_at() -> None:
    """The quick search for a hint misses no mark, and each mark has a place that shows it. Express
    brokers have the addresses of Standard ones, so only the provider block names them."""
    assert {mark.profile for mark in MARKS} == set(PROFILES) - {"apache", "amazon-msk-express"}
    for mark in MARKS:
        assert HINT.search(mark.form), mark
        assert mark.url.startswith("https://")


def test_a_failed_connection_is_explained() -> None:
    """Azure Event Hubs cannot be managed at all, and the error says so; others are not blamed."""
    error = ConnectError("nobody answers", "Check the address.")
    detection = find_profile(None, ["n.servicebus.windows.net:9093"], "")
    assert detection is not None
    told = explain_connection(detection, error)
    assert str(told) == "nobody answers"
    assert "Check the address." in told.advice
    assert "Azure Event Hubs" in told.advice and "cannot manage it" in told.advice
    assert explain_connection(Detection("aiven", ""), error) is error
    assert explain_connection(Detection("apache", ""), error) is error
