"""Every table that is made of others: of which, and by which function."""

from __future__ import annotations

from . import (
    attribution,
    capacity,
    consistency,
    drift,
    events,
    grants,
    history,
    permissions,
    policy,
    quotas,
    registers,
    reliability,
    resources,
    runs,
    unused,
)
from .dataset import Dataset

_OWNED = ("desired", "recorded")
"""What says whose an object is."""

DATASETS = (
    Dataset("cluster", ("audit_raw", "snapshot", "snapshot_raw"), registers.cluster),
    Dataset("lineage", ("audit_raw", "snapshot"), registers.lineage),
    Dataset("live", ("snapshot", "snapshot_raw"), resources.live),
    Dataset("recorded", ("cluster", "snapshot", "snapshot_raw"), resources.recorded),
    Dataset("desired", ("cluster", "snapshot", "snapshot_raw"), resources.desired),
    Dataset("history", ("history", "snapshot", "snapshot_raw"), history.history),
    Dataset("event_conflict", ("audit_raw", "event_conflict"), events.event_conflict),
    Dataset("event", ("audit_raw", "cluster", "event_conflict"), events.event),
    Dataset("run", ("audit_raw",), runs.run),
    Dataset("drift", ("cluster", "drift", "lineage", "live", *_OWNED), drift.build),
    Dataset("drift_daily", ("drift",), drift.daily),
    Dataset("change_attribution", ("event", "history", "snapshot"), attribution.build),
    Dataset("effective_permissions", ("cluster", "live"), permissions.build),
    Dataset("grant_findings", ("cluster", "live"), grants.build),
    Dataset("effective_quotas", ("cluster", "live"), quotas.build),
    Dataset(
        "unused_topics",
        ("cluster", "history", "live", "snapshot", "snapshot_raw", "unused_topics", *_OWNED),
        unused.build,
    ),
    Dataset("policy_findings", ("cluster", "live", "policy_findings", *_OWNED), policy.build),
    Dataset("capacity", ("cluster", "history", "live", *_OWNED), capacity.build),
    Dataset("apply_reliability", ("event", "run"), reliability.build),
    Dataset(
        "fleet_consistency",
        ("cluster", "event_conflict", "lineage", "live", "run", *_OWNED),
        consistency.build,
    ),
)
