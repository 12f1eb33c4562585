"""Which place state and log have: flag, environment, backend block, default."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.errors import UsageError
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.workflow.stores import open_store, parse_duration

from ...kit.commands.here import Here

S3 = 'kafkaform {\n  backend "s3" {\n    bucket = "team"\n    key    = "prod"\n%s  }\n}\n'
LOCAL = 'kafkaform {\n  backend "local" {\n    path = "states/eu.json"\n  }\n}\n'


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKAFORM_STATE", raising=False)


def place(named: str | None = None) -> str:
    return open_store(named).backend.location


def test_the_nearest_word_counts(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing said: a file here. Then the block, over it the variable, over both the flag; an
    empty variable is none."""
    assert place().endswith("kafkaform.state.json")
    here.write("main.kf.hcl", S3 % "")
    assert place() == "s3://team/prod/state.json"
    monkeypatch.setenv("KAFKAFORM_STATE", "gs://other/stage")
    assert place() == "gs://other/stage/state.json"
    assert place("mine.json").endswith("mine.json")
    monkeypatch.setenv("KAFKAFORM_STATE", "")
    assert place() == "s3://team/prod/state.json"


def test_the_block_is_not_read_where_it_does_not_count(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend block that is wrong is no fault of a command that names the place itself."""
    here.write("main.kf.hcl", 'kafkaform {\n  backend "nowhere" {}\n}\n')
    assert place("mine.json").endswith("mine.json")
    monkeypatch.setenv("KAFKAFORM_STATE", "s3://team/prod")
    assert place() == "s3://team/prod/state.json"


def test_state_and_log_are_a_pair(here: Here) -> None:
    """The log of a state in a file is beside it, that of a state in a store in the store."""
    here.write("main.kf.hcl", LOCAL)
    kept = open_store()
    assert isinstance(kept.sink, LocalSink)
    assert kept.sink.path == here.path / "states/eu.audit.jsonl"
    remote = open_store("s3://team/prod")
    assert isinstance(remote.sink, ObjectSink) and isinstance(remote.backend, ObjectBackend)
    assert remote.sink.objects is remote.backend.objects


def test_options_of_an_address_are_those_of_the_block(here: Here) -> None:
    """The lease is kafkaform's, the rest the store's; none of it stays in the address shown."""
    here.write("main.kf.hcl", S3 % '    lease  = "5m"\n')
    backends = (open_store().backend, open_store("s3://team/prod?lease=5m&timeout=3s").backend)
    for backend in backends:
        assert isinstance(backend, ObjectBackend)
        assert (backend.lease_seconds, backend.location) == (300.0, "s3://team/prod/state.json")


def test_a_block_says_how_old_earlier_versions_become(here: Here) -> None:
    """`keep` is an argument of every backend, and of an address."""
    here.write("main.kf.hcl", S3 % '    keep = "30d"\n')
    assert open_store().backend.keep_seconds == 30 * 86_400  # type: ignore[attr-defined]
    address = open_store("s3://team/prod?keep=7d").backend
    assert address.keep_seconds == 7 * 86_400  # type: ignore[attr-defined]
    here.write("main.kf.hcl", LOCAL.replace('json"\n', 'json"\n    keep = "2d"\n'))
    assert open_store().backend.keep_seconds == 2 * 86_400  # type: ignore[attr-defined]
    said = here.fails("state", "list", "--state", "s3://team/prod?keep=soon")
    assert "keep 'soon' is not a number of days" in said


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("60s", 60), (" 1.5m ", 90), ("2h", 7200)]
)
def test_durations(text: str, seconds: float) -> None:
    """Seconds, unless a unit says otherwise."""
    assert parse_duration(text, "--lock-timeout") == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 d", "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """The message names the flag."""
    with pytest.raises(UsageError, match="lease"):
        parse_duration(text, "lease")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ('backend "s4" {}', 'There is no backend "s4"'),
        ('backend "memory" {}', 'There is no backend "memory"'),
        ('backend "s3" { bucket = "team" }', 'The backend "s3" needs "key"'),
        ('backend "local" {}', 'The backend "local" needs "path"'),
        (
            'backend "s3" {\n    bucket = "team"\n    key = "k"\n    acl = "x"\n  }',
            'The backend "s3" has no argument "acl"',
        ),
        (
            'backend "s3" {\n    bucket = "team"\n    key = "k"\n    secret_key = "hush"\n  }',
            "Credentials come from the environment only",
        ),
        ('backend "local" {\n    path = "s"\n    keep = "30h"\n  }', 'Write it as "30d"'),
        ('backend "local" {\n    path = "s"\n    keep = true\n  }', "must be a number of days"),
        ('backend "s3" {\n    bucket = ["team"]\n    key = "k"\n  }', "must be a text"),
    ],
)
def test_faults_of_a_block_have_its_place(here: Here, block: str, told: str) -> None:
    """Each fault stands at the block, for every command that wants the state."""
    here.write("main.kf.hcl", f"# why\nkafkaform {{\n  {block}\n}}\n")
    for command in (("state", "list"), ("audit", "verify"), ("lock", "show")):
        said = here.fails(*command)
        assert told in said and "main.kf.hcl:3" in said
        assert "hush" not in said


def test_a_place_that_no_store_has_is_refused(here: Here) -> None:
    """An unknown scheme and an option that the store does not know are usage errors."""
    assert "ftp:// is not a store" in here.fails("state", "list", "--state", "ftp://x/y")
    said = here.fails("state", "list", "--state", "s3://team/prod?colour=blue")
    assert "'colour' is not an option of the s3 backend" in said
    assert "lease 'soon' is not a duration" in here.fails(
        "state", "list", "--state", "s3://team/prod?lease=soon"
    )


def test_init_of_a_store_leaves_nothing_here(here: Here) -> None:
    """Where the lock is in a store, no folder for it is made, and Git need not ignore one."""
    (here.path / ".git").mkdir()
    here.write("main.kf.hcl", 'provider "kafka" {}\n')
    before = here.files()
    said = here.done("init", "--state", "memory://init/prod").text
    assert "memory://init/prod/state.json: none yet" in said and "can be taken" in said
    assert ".kafkaform/" not in said and here.files() == before


def test_a_block_in_json_is_found(here: Here) -> None:
    """Its letters may be written as numbers."""
    here.write(
        "main.kf.json",
        r'{"kafkaform": {"b\u0061ckend": {"local": {"path": "elsewhere.json"}}}}',
    )
    assert Path(place()).name == "elsewhere.json"
