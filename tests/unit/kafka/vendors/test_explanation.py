"""A refusal of a vendor's cluster is explained, and every other fault is left as it is."""

from __future__ import annotations

import pytest

from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.value import EMPTY
from kafkaform_kafka.protocol.faults import fault_of, lost_answer_fault
from kafkaform_kafka.vendors.profile import (
    explain_fault,
    explain_reading,
    explain_readings,
    explain_sweep,
    load_profile,
)

SERVERLESS, WARPSTREAM = load_profile("amazon-msk-serverless"), load_profile("warpstream")
CONFLUENT = load_profile("confluent-cloud")
QUOTA = Identity("kafka", "kafka_quota", "user=ci")
ACL = Identity("kafka", "kafka_acl", "User:ci|*|Read|Allow|Topic|orders|Literal")


@pytest.mark.parametrize("code", [31, 35, 42, 44])
def test_a_refused_request_names_the_vendor(code: int) -> None:
    """Whichever code a cluster chooses, the advice is not to grant a right that nobody has."""
    fault = explain_fault(SERVERLESS, fault_of("DescribeAcls", code, "", None, "1"), "kafka_acl")
    assert "MSK Serverless lets nobody create or delete ACLs" in fault.message
    assert "kafka-actions.html" in fault.message
    assert fault.advice == "write IAM policies instead"
    assert fault.where == "DescribeAcls at 1"


def test_a_rule_without_advice_points_to_the_tools_of_the_vendor() -> None:
    """The reader learns where the object is managed instead."""
    fault = fault_of("DescribeClientQuotas", 31, "")
    assert "tools of Confluent Cloud" in explain_fault(CONFLUENT, fault, "kafka_quota").advice


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (fault_of("AlterClientQuotas", 7, ""), "kafka_quota"),
        (fault_of("AlterClientQuotas", 89, ""), "kafka_quota"),
        (lost_answer_fault("AlterClientQuotas", "gone"), "kafka_quota"),
        (fault_of("CreateTopics", 44, "a"), "kafka_topic"),
        (fault_of("DescribeAcls", 31, ""), "kafka_user_scram_credential"),
    ],
)
def test_other_faults_stay(fault: Fault, kind: str) -> None:
    """A time-out, a lost answer, a quota, and a refusal that can have other reasons are told as
    they are: only a code that refuses a request that the vendor does not offer is explained."""
    assert explain_fault(CONFLUENT, fault, kind) is fault
    assert explain_fault(SERVERLESS, fault, kind) is fault


def test_a_failed_listing_is_explained() -> None:
    """Coverage keeps saying that the listing failed, with the reason."""
    fault = fault_of("DescribeClientQuotas", 35, "")
    failed = Sweep("kafka_quota", Depth.FULL, (), Coverage(CoverageKind.FAILED, fault))
    told = explain_sweep(WARPSTREAM, failed)
    assert told.coverage.kind is CoverageKind.FAILED
    assert told.coverage.fault is not None
    assert "WarpStream's list of the requests" in told.coverage.fault.message
    whole = Sweep("kafka_quota", Depth.FULL, (), Coverage(CoverageKind.COMPLETE))
    assert explain_sweep(WARPSTREAM, whole) is whole


def test_readings_are_explained_and_never_turned_into_an_absence() -> None:
    """A failed reading stays failed. A hidden object whose kind the vendor does not offer is told
    as that, and is no more known than before."""
    failed = Failed(QUOTA, fault_of("DescribeClientQuotas", 31, ""))
    seen = Observed(QUOTA, EMPTY)
    told = explain_readings(SERVERLESS, {QUOTA: failed})[QUOTA]
    assert isinstance(told, Failed) and "quotas" in told.fault.message
    assert explain_reading(SERVERLESS, seen) is seen
    hidden = Hidden(ACL, "Describe on Cluster")
    denied = explain_reading(SERVERLESS, hidden)
    assert isinstance(denied, Failed)
    assert denied.fault.kind is FaultClass.PERMISSION
    assert "Describe on Cluster is missing. MSK Serverless" in denied.fault.message
    assert explain_reading(CONFLUENT, hidden) is hidden
