"""`python -m tests.bench.peers` measures a small world on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..bench.peers.__main__ import main
from ..bench.peers.figures import Scene, read_figures

SIZE = "20x3"


@pytest.mark.timeout(600)
def test_twenty_topics(
    own_brokers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kafkaform and the bare clients do all they can with 20 topics: each work has a figure, what
    kafkaform makes is as declared, and a tool that is not installed has a reason and no figure."""
    file, nowhere = tmp_path / "figures.json", tmp_path / "programs"
    rows = ["empty", "apply", "destroy", "no-op", "change"]
    words = ["--sizes", SIZE, "--rows", *rows, "--runs", "1", "--programs", str(nowhere)]
    peers = ["kafkaform", "jikkou", "limit"]
    main([*words, "--peers", *peers, "--record", "--figures", str(file)])
    found = read_figures(file)
    done = {(f.work, f.tool): f for f in found.figures if f.runs}
    assert done.keys() == {
        *((work, "kafkaform") for work in ("empty", "apply", "destroy", "no-op", "change")),
        *((w, "limit") for w in ("create", "create-shown", "delete", "delete-shown", "sweep")),
    }
    for figure in done.values():
        assert figure.requests and figure.runs[0].wall > 0 and figure.runs[0].cpu > 0
    (plan,) = (f for key, f in done.items() if key == ("no-op", "kafkaform"))
    assert plan.scene == Scene(SIZE)
    assert plan.requests is not None and plan.requests["DescribeConfigs"] >= 1
    failed = {f.tool: f.why for f in found.figures if not f.runs}
    assert failed in ({}, {"jikkou": "jikkou not installed"})
    assert "20 topics of 3 partitions" in capsys.readouterr().out
