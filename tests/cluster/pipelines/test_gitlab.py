"""The pipeline for GitLab, from a merge request to drift."""

from __future__ import annotations

import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ...kit.listener import Listener
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
    (begin,) = (record for record in world.records() if record.kind == "run_begin")
    assert begin.body["pull_request"] == "4"

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


class Redirecting(HTTPServer):
    """Answers every request with the address of another host."""

    def __init__(self, to: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", f"http://{to}/elsewhere")
                self.end_headers()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.mark.parametrize("job", ["kafka-plan", "kafka-apply"])
def test_a_redirect_does_not_get_the_token(job: str, tmp_path: Path) -> None:
    """What the real `curl` of a job is redirected to gets not one request, and the redirect is an
    error: an answer without a body must not pass for the approval of a plan without changes."""
    elsewhere = Listener()
    server = Redirecting(elsewhere.address)
    here = f"http://127.0.0.1:{server.server_port}"
    if job == "kafka-apply":
        (script,) = [one for one in gitlab_file()[job]["script"] if "get()" in one]
        (get,) = re.findall(r"^ *get\(\) .*$", script, re.MULTILINE)
        command = f'{get}\nanswer=$(get "$CI_API_V4_URL/projects/7")'
    else:
        command = joined(gitlab_file()[job]["after_script"])
        (tmp_path / "out").mkdir()
        (tmp_path / "out/plan.md").write_text("plan")
    env = {**REQUEST, "CI_API_V4_URL": here, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    server.shutdown()
    server.server_close()
    elsewhere.close()
    assert elsewhere.connections == 0 and elsewhere.received == b""
    assert done.returncode == 47, done.stderr
    assert COMMON["KAFKA_REVIEW_TOKEN"] not in done.stdout + done.stderr
