"""The tutorial and the how-to pages lead where they say: each command is typed on a real broker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.release.build import build_wheel

from ...kit.installed import install_wheel
from ...kit.walks import FENCE, follow

pytestmark = pytest.mark.timeout(300)
DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted((DOCS / "how-to").glob("*.md"))
LIVE = """
resource "kafka_topic" "invoices" {
  name       = "billing.invoices"
  partitions = 3
  config     = { "retention.ms" = retention("30d") }
}

resource "kafka_topic" "refunds" {
  name       = "billing.refunds"
  partitions = 1
}
"""
"""What others have made before the page about taking over begins."""


def run(folder: Path, *words: str) -> str:
    """What a program prints that ends well."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def provider(
    module_home: Path, own_brokers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The provider block of a sandbox; its password is in the environment."""
    folder = tmp_path_factory.mktemp("provider")
    run(folder, "kafkaform", "sandbox", "up")
    with pytest.MonkeyPatch.context() as patch:
        shell = run(folder, "kafkaform", "sandbox", "env", "--format", "shell")
        for line in shell.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            patch.setenv(name, value.strip("'"))
        yield run(folder, "kafkaform", "sandbox", "env")
    run(folder, "kafkaform", "sandbox", "down")


def declare_by_others(folder: Path) -> None:
    """Topics that this folder's state doesn't know."""
    others = folder.with_name("others")
    shutil.copytree(folder, others)
    (others / "main.kf.hcl").write_text(LIVE, encoding="utf-8")
    run(others, "kafkaform", "apply", "--auto-approve")


DYING = """
import os, signal
from kafkaform.cli.app import main

def write(file, data, write=os.write):
    if b'"kind":"outcome"' in bytes(data):
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, data)

os.write = write
main()
"""
"""kafkaform, killed when its request is answered and the outcome is not yet on the disk."""


def kill_an_apply(folder: Path) -> None:
    """An apply of the page's first file dies in the middle."""
    page = (DOCS / "how-to/recover-after-a-crash.md").read_text(encoding="utf-8")
    text = next(body for _, title, body in FENCE.findall(page) if title)
    (folder / "main.kf.hcl").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", DYING, "apply", "--auto-approve"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def cut_a_retention(folder: Path) -> None:
    """Somebody applies a topic, and then the page's first file."""
    page = (DOCS / "how-to/undo-a-run.md").read_text(encoding="utf-8")
    text = next(body for _, title, body in FENCE.findall(page) if title)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKAFORM_ACTOR", "dana")
        for retention in ("7d", "1h"):
            today = text.replace('retention("1h")', f'retention("{retention}")')
            (folder / "main.kf.hcl").write_text(today, encoding="utf-8")
            run(folder, "kafkaform", "apply", "--auto-approve")


def make_team_folders(folder: Path) -> None:
    """60 folders with provider blocks of their own, one of which is applied; and topics that nobody
    has declared."""
    provider = (folder / "provider.kf.hcl").read_text(encoding="utf-8")
    (folder / "provider.kf.hcl").unlink()
    (folder / ".git").mkdir()
    names = ["sale", "pay", *(f"team{number:02}" for number in range(3, 61))]
    orders = 'resource "kafka_topic" "orders" {{\n  name       = "{}"\n  partitions = 3\n}}\n'
    module = 'variable "name" {}\n' + orders.format("x").replace('"x"', "var.name")
    files = {"modules/topic/main.kf.hcl": module}
    for name in names:
        own = provider.replace("{\n", "{\n  operation_timeout = 60\n", 1)
        files[f"teams/{name}/provider.kf.hcl"] = own if name > "team58" else provider
        files[f"teams/{name}/main.kf.hcl"] = orders.format(f"{name}.orders")
    call = 'module "extra" {{\n  source = "../../modules/topic"\n  name   = "{}.extra"\n}}\n'
    files["teams/pay/main.kf.hcl"] = call.format("pay")
    files["others/main.kf.hcl"] = provider + "".join(
        orders.format(name).replace('"orders"', f'"t{number}"')
        for number, name in enumerate(("sale.refunds", "sale.returns", "pay.cards", "audit.all"))
    )
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("others", "teams/sale"):
        run(folder, "kafkaform", "--chdir", name, "apply", "--auto-approve")
    shutil.rmtree(folder / "others")


BEFORE_PAGES = {
    "from-60-folders-to-one-file": make_team_folders,
    "undo-a-run": cut_a_retention,
    "take-over-a-cluster": declare_by_others,
    "recover-after-a-crash": kill_an_apply,
}
"""Page -> what has happened before its first command."""


@pytest.mark.timeout(600)
def test_the_wheel_does_the_tutorial(home: Path, own_brokers: None, tmp_path: Path) -> None:
    """In an environment that has only the wheel and what it asks for: from the first broker to the
    last deletion, everything is printed as the page shows it."""
    commands = install_wheel(build_wheel(tmp_path / "dist"), tmp_path / "environment", "sandbox")
    folder = tmp_path / "work"
    folder.mkdir()
    different = follow(DOCS / "tutorial.md", folder, [str(commands / "kafkaform")])
    assert not different, "\n".join(different)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_how_to_leads_to_its_end(page: Path, provider: str, tmp_path: Path) -> None:
    """In a folder with a provider block, each command of the page prints what the page shows."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "provider.kf.hcl").write_text(provider, encoding="utf-8")
    BEFORE_PAGES.get(page.stem, lambda _: None)(folder)
    different = follow(page, folder)
    assert not different, "\n".join(different)
