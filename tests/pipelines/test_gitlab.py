"""The pipeline for GitLab, from a merge request to drift."""

from __future__ import annotations

import pytest

from .conftest import World
from .jobs import gitlab, gitlab_file, joined

COMMON = {
    "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
    "CI_PROJECT_ID": "7",
    "CI_DEFAULT_BRANCH": "main",
    "GITLAB_USER_LOGIN": "somebody",
    "KAFKA_REVIEW_TOKEN": "pw-of-the-forge",
}
REQUEST = {**COMMON, "CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "4"}
PUSH = {**COMMON, "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main"}
WEB = {**PUSH, "CI_PIPELINE_SOURCE": "web"}
SCHEDULE = {**PUSH, "CI_PIPELINE_SOURCE": "schedule"}


@pytest.mark.timeout(600)
def test_from_a_merge_request_to_drift(world: World) -> None:
    """Plan, note, merge, apply, the same once more by hand, and no drift. Each command of the
    pipeline runs."""
    forge = world.forge("gitlab")
    runner = world.runner(forge)
    reader, writer = world.settings("reader"), world.settings("writer")
    head = forge.change("partitions = 1", "partitions = 2")

    mine = {**REQUEST, **reader, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7"}
    theirs = {**mine, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8"}
    assert gitlab(runner, "kafka-plan", theirs, head) is None
    plan = gitlab(runner, "kafka-plan", mine, head, "4")
    assert plan is not None and plan.code == 0, plan
    assert plan.approval and plan.approval in forge.comment
    assert (world.topics(), world.bucket.objects) == ({}, {})

    unplanned = gitlab(runner, "kafka-apply", {**PUSH, **writer}, head)
    assert unplanned is not None and unplanned.code == 4 and "No merge request" in unplanned.said
    merged = forge.merge(4)
    done = gitlab(runner, "kafka-apply", {**PUSH, **writer}, merged)
    assert done is not None and done.code == 0, done
    assert "Apply complete: 3 added, 0 changed, 0 destroyed." in done.said
    assert world.topics() == {"checkout.orders": 3, "checkout.refunds": 2}

    by_hand = {**WEB, **writer, "KAFKAFORM_EXPECT": plan.approval}
    assert gitlab(runner, "kafka-plan", by_hand, merged) is None
    again = gitlab(runner, "kafka-apply", by_hand, merged)
    assert again is not None and again.code == 0 and "Already applied by run" in again.said
    clean = gitlab(runner, "kafka-drift", {**SCHEDULE, **reader}, merged)
    assert clean is not None and clean.code == 0 and "No drift." in clean.said, clean

    file = gitlab_file()
    before = file["default"]["before_script"]
    jobs = [job for name, job in file.items() if name.startswith("kafka-")]
    texts = {joined([*before, *job["script"]]) for job in jobs}
    texts |= {joined(job["after_script"]) for job in jobs if "after_script" in job}
    assert {text.strip() for text in texts} == set(runner.ran)
    assert "pw-of" not in plan.said + done.said + again.said + clean.said
