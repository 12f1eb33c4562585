"""The plan that the README shows is what the program prints, line by line, on a real broker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

from ..conftest import Broker

ROOT = Path(__file__).resolve().parents[2]

DIFFERENT = (
    (r"^Cluster kafka: .*", "Cluster kafka: …"),
    (r"^Approval: .*", "Approval: …"),
    (r'customers_id = "[^"]+"', 'customers_id = "…"'),
    (r"(?:no|up to [\d,]+) records \([\d.]+ \w*B\)", "… records (…)"),
    (r"^Not managed by this configuration\n(?:  .*\n)+\n", ""),
)
"""What is another in every run -> what stands for it here."""


def same_everywhere(plan: str) -> str:
    for pattern, text in DIFFERENT:
        plan = re.sub(pattern, text, plan, flags=re.MULTILINE)
    return plan


def shown() -> str:
    """The plan in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (plan,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(plan)


def type_in(folder: Path, broker: Broker, *arguments: str) -> str:
    """Run a command in the folder; what it printed as its result."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform", *arguments, "--quiet"],
        cwd=folder,
        env={
            **os.environ,
            "COLUMNS": "100",
            "KF_VAR_bootstrap": broker.bootstrap,
            "KAFKAFORM_SANDBOX_PASSWORD": broker.admin_password,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_plan_in_the_readme_is_real(broker: Broker, tmp_path: Path) -> None:
    """The example, applied, edited as the README says and planned again, prints that plan."""
    prefix = f"readme-{uuid.uuid4().hex[:8]}."
    for path in (ROOT / "examples/01-topics").glob("*.kf.hcl"):
        text = path.read_text(encoding="utf-8").replace('"shop.', f'"{prefix}')
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    type_in(tmp_path, broker, "apply", "--auto-approve")

    main = tmp_path / "main.kf.hcl"
    raised = re.sub(r"(clicks +=.*partitions = )6", r"\g<1>12", main.read_text(encoding="utf-8"))
    main.write_text(raised, encoding="utf-8")
    (tmp_path / "customers.kf.hcl").unlink()

    printed = type_in(tmp_path, broker, "plan").replace(prefix, "shop.")
    assert same_everywhere(printed) == same_everywhere(shown())
