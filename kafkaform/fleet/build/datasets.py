"""Every computed table: its inputs and the function that computes it."""

from __future__ import annotations

from ..access import grants, permissions
from ..datasets import (
    capacity,
    consistency,
    drift,
    history,
    policy,
    quotas,
    resources,
    runs,
    unused_topics,
)
from ..tables.definitions import Dataset

_OWNED = ("desired", "recorded")
"""Tables that name the owner of an object."""
_LANDED = ("snapshot", "snapshot_raw")
"""What snapshots bring."""

DATASETS = (
    Dataset("run", ("audit_raw",), runs.build_run),
    Dataset(
        "cluster",
        ("run", "snapshot", "snapshot_raw"),
        resources.build_cluster,
        resources.find_newest_builds,
    ),
    Dataset("lineage", ("audit_raw", "snapshot"), resources.build_lineage),
    Dataset("live", _LANDED, resources.build_live, resources.find_live_builds),
    Dataset(
        "recorded", ("cluster", *_LANDED), resources.build_recorded, resources.find_recorded_builds
    ),
    Dataset(
        "desired", ("cluster", *_LANDED), resources.build_desired, resources.find_desired_builds
    ),
    Dataset("history", ("history", *_LANDED), history.build_history, history.find_new_builds),
    Dataset("event_conflict", ("audit_raw",), runs.build_event_conflict),
    Dataset(
        "event",
        ("audit_raw", "cluster", "event_conflict", "run"),
        runs.build_event,
        of_records=True,
    ),
    Dataset("drift", ("cluster", "drift", "lineage", "live", *_OWNED), drift.build),
    Dataset("drift_daily", ("drift",), drift.build_daily),
    Dataset("change_attribution", ("event", "history", "snapshot"), history.build),
    Dataset("effective_permissions", ("cluster", "live"), permissions.build),
    Dataset("grant_findings", ("cluster", "live"), grants.build),
    Dataset("effective_quotas", ("cluster", "live"), quotas.build),
    Dataset(
        "unused_topics",
        ("cluster", "history", "live", "snapshot", "snapshot_raw", "unused_topics", *_OWNED),
        unused_topics.build,
    ),
    Dataset("policy_findings", ("cluster", "live", "policy_findings", *_OWNED), policy.build),
    Dataset("capacity", ("cluster", "history", "live", *_OWNED), capacity.build),
    Dataset("apply_reliability", ("event", "run"), runs.build_reliability, of_records=True),
    Dataset(
        "fleet_consistency",
        ("cluster", "event_conflict", "lineage", "live", "run", *_OWNED),
        consistency.build,
    ),
)
