"""The one-file pipeline with a module from Git: fetched as locked, by the plan and by the apply."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkaform.language.declare.modules import Package
from kafkaform.workflow.modules.cache import (
    LOCK_FILE,
    Lock,
    open_store,
    render_locks,
    store_snapshot,
)
from kafkaform.workflow.modules.installation import fetch_entries

from ...kit.git_origin import Origin, call
from ...kit.pipelines.github import Runner
from .conftest import CONFIGURATION, MAIN, Texts
from .test_github import apply, merge, plan

pytestmark = pytest.mark.slow("each job is a process with an installation of its own")


def make_lock_file(origin: Origin, commit: str) -> str:
    """What `kafkaform init` writes for this commit of the tag v1."""
    package = Package(origin.source, "v1")
    digest = store_snapshot(open_store(), package.source, commit, fetch_entries(package, commit))
    return render_locks({package: Lock(package.source, "v1", commit, digest)}).decode()


def set_variables(hub: Runner, **more: str) -> None:
    """Set variables of the jobs of all environments."""
    hub.more = {name: {**variables, **more} for name, variables in hub.more.items()}


def test_modules_are_fetched_as_locked(
    hub: Runner, texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is fetched for a branch unless the environment allows the source; then plan and
    apply have the same approval, each on an empty cache. A moved tag changes neither."""
    monkeypatch.setenv("KAFKAFORM_CACHE_DIR", str(tmp_path / "mine"))
    origin = Origin.make(tmp_path / "origin")
    commit = origin.commit({"main.kf.hcl": CONFIGURATION.partition("\n\n")[2]}, "v1")
    text = 'provider "textstore" {}\n\n' + call("motd", f"{origin.source}?ref=v1")
    hub.repository.branch("one", f"{Path(MAIN).parent}/{LOCK_FILE}", make_lock_file(origin, commit))
    cache = tmp_path / "cache"
    set_variables(hub, KAFKAFORM_CACHE_DIR=str(cache))

    _, refused = plan(hub, "two", text)
    assert refused.code == 1 and "does not allow fetching it" in refused.log
    (comment,) = hub.api.comments.values()
    assert "It is not on this computer yet." in comment["body"]

    set_variables(hub, KAFKAFORM_MODULE_SOURCES=f"git::file://{tmp_path}/")
    head, planned = plan(hub, "three", text + "\n")
    assert planned.code == 0, planned.log
    shutil.rmtree(cache)
    origin.commit({"main.kf.hcl": "# forged\n"}, "v1")
    done = apply(hub, merge(hub, "three", head))
    assert done.code == 0, done.log
    assert "The tag v1 was at" in done.log
    assert done.outputs["approval"] == planned.outputs["approval"]
    assert texts.read() == {"motd": "hello"}
