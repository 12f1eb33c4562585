"""The power is lost after the last request to a real broker: what the disk kept is enough."""

from __future__ import annotations

import shutil
from random import Random

from kafkaform.state.codec import decode

from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.promises import Before, Thing, broken
from .disk import Image, images
from .recorder import Recorder

SAMPLE = 6


def test_power_is_lost_after_a_request(folder: Folder) -> None:
    """Images of the disk from when everything was sent: each is put back, and an apply takes the
    topics in without making them again; a second one has nothing to do (NL1-NL5)."""
    folder.declare("a", "b")
    before = Before.of(folder.path, {})
    recorder = Recorder.of(folder.path)
    with recorder.recording():
        folder.done("apply", "-auto-approve")
    # The first promise is the run's head, the second the intents; then the request leaves.
    sent = sorted({number for number, _ in recorder.promised})[1]
    every = [image for image in images(recorder.tape, grain=2000) if image.at >= sent]
    for image in Random(5).sample(every, SAMPLE):
        _put(folder, image)
        folder.done("apply", "-auto-approve")
        once = [(folder.path / name).read_bytes() for name in (STATE, LOG)]
        assert "No changes" in folder.done("apply", "-auto-approve").text
        assert once == [(folder.path / name).read_bytes() for name in (STATE, LOG)]
        faults = broken(folder.path, lambda: _world(folder), before, patience=5)
        kept = [fault for fault in faults if "left behind" not in fault]
        assert kept == [], (image.kind, image.at, image.about)
        assert set(folder.topics()) == {"a", "b"}


def _world(folder: Folder) -> dict[tuple[str, str], Thing]:
    recorded = decode((folder.path / STATE).read_bytes(), STATE).objects
    ids = {(i.kind, i.key): row.incarnation for i, row in recorded.items()}
    return {
        ("kafka_topic", folder.prefix + name): Thing(
            {"name": folder.prefix + name, "partitions": count},
            ids.get(("kafka_topic", folder.prefix + name)),
        )
        for name, count in folder.topics().items()
    }


def _put(folder: Folder, image: Image) -> None:
    """The folder's state and log, and what belongs to them, are those of the image."""
    shutil.rmtree(folder.path / ".kafkaform", ignore_errors=True)
    for path in folder.path.iterdir():
        if path.suffix != ".hcl":
            path.unlink()
    image.put(folder.path)
