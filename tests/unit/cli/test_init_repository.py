"""`init --repository`: what it says, and that it writes one file and no other."""

from __future__ import annotations

import pytest

from ...kit.commands.here import Here

PROVIDER = 'provider "kafka" {{\n  bootstrap_servers = ["kafka-1.{0}:9092"]\n}}\n'
TOPIC = 'resource "kafka_topic" "a" {{\n  name = "{0}.a"\n}}\n'


def write_folders(here: Here) -> None:
    for env in ("dev", "prod"):
        for team in ("ads", "pay", "web"):
            here.write(f"{env}/{team}/main.kf.hcl", PROVIDER.format(env) + TOPIC.format(team))


def test_what_it_says(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the file, what differs, what is left out and what to do next."""
    write_folders(here)
    here.write("prod/web/main.kf.hcl", PROVIDER.format("old") + TOPIC.format("web"))
    here.write("modules/a/main.kf.hcl", TOPIC.format("a"))
    before = here.files()
    monkeypatch.setenv("COLUMNS", "100")
    assert here.done("init", "--repository").out.splitlines() == [
        "Wrote kafkaform.hcl for 6 folders. It changes none of their plans.",
        "",
        "cluster dev       3 folders  kafka",
        "cluster prod      2 folders  kafka",
        "cluster old       1 folder   kafka",
        "folders dev/*     3 folders  kafka = dev",
        "folders prod/*    2 folders  kafka = prod",
        "folders prod/web  1 folder   kafka = old",
        "",
        "What differs:",
        "  · prod/web: kafka = cluster.old, and not cluster.prod as in prod/*; different: "
        "bootstrap_servers",
        "",
        "Left out:",
        "  · modules/a is a module that no folder calls",
        "",
        "Next:",
        "  · `kafkaform validate --all` checks all folders.",
        "  · Remove provider and backend blocks that say the same as the file, folder by folder:",
        "    `kafkaform plan` shows no change. A block that stays wins over the file.",
        "  · Add owners, labels and boundaries: docs/repository.md.",
    ]
    text = here.files().pop("kafkaform.hcl")
    assert {**before, "kafkaform.hcl": text} == here.files()
    assert here.done("validate", "--all").out == "6 folders are valid: 6 objects declared.\n"
    assert here.done("fmt", "--all", "--check").out == ""


def test_it_never_overwrites(here: Here) -> None:
    """Whichever form of the file is there, and also below one."""
    write_folders(here)
    here.done("init", "--repository")
    before = here.files()
    assert "is not overwritten" in here.fails("init", "--repository")
    here.monkeypatch.chdir(here.path / "prod")
    assert "is not overwritten" in here.fails("init", "--repository")
    assert here.files() == before


def test_wrong_command_lines(here: Here) -> None:
    """Nothing is written where there is nothing to write for, or with flags of the other `init`."""
    assert "no folder below this one has a configuration" in here.fails("init", "--repository")
    write_folders(here)
    for flags in (["--upgrade"], ["--state", "a.json"], ["--untrusted"], ["--var", "a=b"]):
        text = here.fails("init", "--repository", *flags)
        assert f"--repository and {flags[0]} exclude each other" in text
    assert "kafkaform.hcl" not in here.files()
