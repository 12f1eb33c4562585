"""The bot of `examples/library`, run as its README says, on a real broker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from ..conftest import Broker

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library"
SECONDS = 120


def run_bot(folder: Path, broker: Broker, *arguments: str, **more: str) -> tuple[int, list[Any]]:
    """Its exit code, and the events that it printed."""
    env = {
        "KF_VAR_bootstrap": broker.bootstrap,
        "KAFKAFORM_SANDBOX_PASSWORD": broker.admin_password,
    }
    done = subprocess.run(
        [sys.executable, str(folder / "bot.py"), *arguments],
        cwd=folder,
        env={**os.environ, **env, **more},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_bot_keeps_its_cluster(broker: Broker, tmp_path: Path) -> None:
    """It applies what it may, has nothing to do then, leaves deletions to a review, and reports
    faults as data."""
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "library"))
    main = folder / "main.kf.hcl"
    prefix = f"inbox-{uuid.uuid4().hex[:8]}."
    main.write_text(main.read_text("utf-8").replace('"inbox.', f'"{prefix}'), "utf-8")

    code, events = run_bot(folder, broker, "--max-changes", "0")
    assert code == 0 and events[-1]["event"] == "review"
    token = events[-1]["approval"]

    code, events = run_bot(folder, broker)
    assert code == 0, events
    assert next(e for e in events if e["event"] == "plan")["approval"] == token
    assert {e["address"]: e["status"] for e in events if e["event"] == "result"} == {
        'kafka_topic.inbox["billing"]': "applied",
        'kafka_topic.inbox["crm"]': "applied",
    }

    code, events = run_bot(folder, broker)
    assert code == 0 and [e["changes"] for e in events if e["event"] == "plan"] == [[]]

    text = main.read_text("utf-8")
    main.write_text(re.sub("billing = 6", "", text), "utf-8")
    code, events = run_bot(folder, broker)
    [plan] = [e for e in events if e["event"] == "plan"]
    assert [change["action"] for change in plan["changes"]] == ["delete"]
    assert "result" not in {e["event"] for e in events}

    code, events = run_bot(folder, broker, KAFKAFORM_SANDBOX_PASSWORD="wrong")
    assert code == 1 and [e["event"] for e in events] == ["error"] and events[0]["advice"]
