"""The copy of an audit log in a topic of a real broker, into a table: every record once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kafkaform import __version__
from kafkaform.cli.commands.fleet import INCOMPLETE
from kafkaform.core.errors import KafkaformError
from kafkaform.core.objects import Folder as Objects
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.reader import Gold, read_current
from kafkaform_kafka.connection.settings import make_librdkafka_config

from ..kit.commands.folder import LOG, Folder
from ..kit.fleet.copied_log import SETTINGS, Copy
from ..kit.fleet.landings import Landing, collected, log, step
from ..kit.kafka.logins import Login
from ..kit.kafka.sessions import login

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkaform.fleet.build.driver import BuildResult
    from kafkaform.fleet.landed.topic_source import TopicReader
    from kafkaform.fleet.spark.store import TableStore

pytestmark = pytest.mark.timeout(600)

GOLDEN = Path(__file__).parent.parent / "cases" / "audit" / "golden.jsonl"
LINEAGE, OTHER = "0d9c6f5e-lineage", "other"
OTHERS = log(OTHER, [("intent", "r", step("t"))] * 10)


@pytest.fixture
def copy(broker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    made = Copy(broker)
    monkeypatch.setenv(SETTINGS, json.dumps(made.native))
    yield made
    made.remove()


def test_each_record_once(copy: Copy, spark: SparkSession, tmp_path: Path) -> None:
    """Read, read again, and more of it. What others have written is kept as what it is."""
    from kafkaform.fleet.spark.store import TableStore

    follow = Follow(copy, TableStore(spark, str(tmp_path)))
    golden = GOLDEN.read_bytes().splitlines()
    copy.publish(LINEAGE, golden)
    copy.disturb()
    first = follow("b1")
    mine = {row["seq"]: row["line"].encode() for row in first if row["lineage"] == LINEAGE}
    assert [mine[seq] for seq in sorted(mine)] == golden
    assert [row["line"] for row in first if row["seq"] is None] == ["not ours"]
    assert len(first) == len(golden) + 1
    assert {row["_file"] for row in first} <= {f"topic {copy.name}/{n}" for n in (0, 1)}
    assert all(row["origin"].startswith(row["_file"] + "/") for row in first)

    assert len(follow("b2")) == len(first)

    copy.publish(OTHER, OTHERS[:3])
    more = follow("b3")
    assert len(more) == len(first) + 3
    assert sorted(r["seq"] for r in more if r["_build"] == "b3") == [1, 2, 3]


class Follow:
    """Builds that read the topic into one store."""

    def __init__(self, copy: Copy, store: TableStore) -> None:
        self.copy, self.store = copy, store
        hand_over(store.spark)

    def __call__(self, build: str) -> list[dict[str, Any]]:
        """All rows of the table once the build has read the topic."""
        from kafkaform.fleet.build.intake import make_follower

        make_follower(self.copy.name)(self.store, build)
        table = self.store.spark.read.format("delta").load(self.store.path("audit_raw"))
        return collected(table)


def hand_over(spark: SparkSession) -> None:
    """Where a session starts with the variable set, Java and its workers have it from there."""
    spark.sparkContext.environment[SETTINGS] = os.environ[SETTINGS]


# -- through the whole driver

ONLY = ("event", "event_conflict")


class Died(Exception):
    """As a killed process: nothing that should come later happens."""


def die() -> NoReturn:
    raise Died


class Home:
    """A configuration that is applied, its log, and a root into which it goes by topic or file."""

    def __init__(self, folder: Folder, copy: Copy) -> None:
        self.folder, self.copy, self.topics = folder, copy, list[str]()
        self.root = folder.path / "fleet"
        self.landing = Landing(self.root / "landing")
        self.landing.register(0, clusters=[{"name": "a"}])
        self.landed = 0

    def apply(self) -> None:
        """One more topic is made, and the log is published."""
        self.topics.append(f"t{len(self.topics)}")
        self.folder.declare(*self.topics)
        self.folder.done("apply", "-auto-approve")
        self.folder.done("audit", "publish", "--to-topic", self.copy.name)

    def land(self) -> None:
        """What is new in the log lands as a segment, too."""
        lines = (self.folder.path / LOG).read_bytes().splitlines()
        self.landing.audit(self.lineage, self.landed + 1, lines[self.landed :])
        self.landed = len(lines)

    def command(self) -> str:
        """`fleet run` in a process of its own, which finds its password as the configuration
        says; all that it printed."""
        words = ("fleet", "run", "--root", str(self.root), "--from-topic", self.copy.name, "--json")
        only = (word for name in ONLY for word in ("--only", name))
        known = {name: text for name, text in os.environ.items() if name != SETTINGS}
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        process = self.folder.process(*words, *only, env=known, **pipes)
        out, err = process.communicate(timeout=300)
        assert process.returncode == INCOMPLETE, err
        return str(out + err)

    def run(
        self, spark: SparkSession, ensure_lock: Callable[[], None] = lambda: None
    ) -> BuildResult:
        """A build of little more than the lines, in this process."""
        from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
        from kafkaform.fleet.build.intake import make_follower

        options = BuildOptions(
            __version__,
            ("lineage",),
            follow=make_follower(self.copy.name),
            ensure_lock=ensure_lock,
        )
        return run_build(lambda _: spark, Objects(self.root), str(self.root), DATASETS, options)

    def forgets_the_last_note(self) -> None:
        """As if the run had died when the rows were there, and the offsets were not noted."""
        notes = self.root / "checkpoints" / f"topic-{self.copy.name}" / "commits"
        last = max((p for p in notes.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
        for path in (last, last.with_name(f".{last.name}.crc")):
            path.unlink(missing_ok=True)

    @property
    def lineage(self) -> str:
        return str(self.folder.records()[0]["body"]["lineage"])

    def told(self) -> list[str]:
        """The events that there should be."""
        records = (r for r in self.folder.records() if r["kind"] in ("intent", "outcome"))
        return sorted(f"{self.lineage}/{record['seq']}" for record in records)

    def events(self) -> list[str]:
        """Those that there are."""
        gold = Gold(read_current(str(self.root)))
        assert gold.read_rows("select * from event_conflict") == []
        return sorted(row["event_id"] for row in gold.read_rows("select event_id from event"))

    def lines(self) -> tuple[int, int]:
        """How many were taken in, by topic and by file."""
        sql = "select origin, count(*) as n from audit_raw group by origin"
        found = {
            row["origin"]: row["n"] for row in Gold(read_current(str(self.root))).read_rows(sql)
        }
        files = found.pop("file", 0)
        assert set(found.values()) == {1}
        return len(found), files

    def files_with(self, text: str) -> list[Path]:
        files = (path for path in self.root.rglob("*") if path.is_file())
        return [path for path in files if text.encode() in path.read_bytes()]


@pytest.fixture
def home(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Home]:
    monkeypatch.setenv("ADMIN_PASSWORD", copy.broker.admin_password)
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, f"{copy.name}.", copy.broker, copy.admin, capsys, monkeypatch)
    folder.connect()
    yield Home(folder, copy)
    folder.clean()


def test_a_build_has_each_event_once(home: Home, spark: SparkSession) -> None:
    """New records; nothing new; a crash between rows and note; the same records by file, too; and
    after records were lost, once the log itself has landed. The password is nowhere."""
    hand_over(spark)
    home.apply()
    home.run(spark)
    published = len(home.folder.records())
    assert home.lines() == (published, 0)
    assert home.run(spark).tables == ()

    home.apply()
    with pytest.raises(Died):
        home.run(spark, ensure_lock=die)
    home.forgets_the_last_note()
    home.land()
    last = home.run(spark)
    assert home.landed > published
    assert home.lines() == (home.landed, home.landed)

    home.apply()
    home.copy.lose()
    with pytest.raises(KafkaformError, match="deleted before they were read") as caught:
        home.run(spark)
    assert "fleet snapshot" in caught.value.advice and "checkpoints" in caught.value.advice
    assert manifest.read_current(Objects(home.root)) == last.manifest
    secret = home.copy.broker.admin_password
    assert not [value for _, value in spark.sparkContext.getConf().getAll() if secret in value]

    home.land()
    rmtree(home.root / "checkpoints")
    home.apply()
    assert secret not in home.command()
    assert home.events() == home.told()
    assert home.files_with(home.copy.name) and not home.files_with(secret)


# -- without Spark


def read(reader: TopicReader, start: Mapping[str, int], end: Mapping[str, int]) -> list[str]:
    """The lines between two offsets, whatever partition they are in."""
    batches = [b for p in reader.partitions(dict(start), dict(end)) for b in reader.read(p)]
    return [line for batch in batches for line in batch.column("line").to_pylist()]


def test_only_what_was_committed_is_read(copy: Copy) -> None:
    """Records in the order of their partition, in pieces, and no marks of transactions, also where
    one is the last thing in a partition."""
    from kafkaform.fleet.landed import topic_source

    copy.publish(LINEAGE, GOLDEN.read_bytes().splitlines())
    reader = topic_source.TopicReader(copy.name)
    start, end = reader.initialOffset(), reader.latestOffset({}, ReadAllAvailable())
    lines = [line.decode() for line in GOLDEN.read_bytes().splitlines()]
    assert start == {"0": 0, "1": 0}
    assert read(reader, start, end) == lines
    assert read(reader, {}, end) == lines
    assert list(reader.partitions(end, end)) == []
    copy.disturb()
    last = reader.latestOffset(end, ReadAllAvailable())
    assert read(reader, end, last) == ["not ours"]
    assert sum(last.values()) == sum(end.values()) + 4


def test_a_piece_ends_where_the_next_begins(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into pieces of four offsets and batches of three records it is the same."""
    from kafkaform.fleet.landed import topic_source

    monkeypatch.setattr(topic_source, "PIECE", 4)
    monkeypatch.setattr(topic_source, "BATCH", 3)
    copy.publish(OTHER, OTHERS)
    reader = topic_source.TopicReader(copy.name)
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({}, ReadAllAvailable())
    assert len(reader.partitions({}, end)) == 3
    assert read(reader, {}, end) == [line.decode() for line in OTHERS]
    copy.publish(LINEAGE, GOLDEN.read_bytes().splitlines())
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_what_cannot_be_read_is_told(
    copy: Copy, stranger: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that were deleted before they were read, a topic that there is not, one that may not
    be read, and brokers that nobody has named."""
    from kafkaform.fleet.landed.topic_source import TopicReader, TopicUnreadable

    copy.publish(OTHER, OTHERS)
    reader = TopicReader(copy.name)
    end = reader.latestOffset({}, ReadAllAvailable())
    copy.lose()
    further = {number: offset + 1 for number, offset in end.items()}
    for start, last in (({}, end), (further, end), ({**end, "2": 1}, end)):
        with pytest.raises(TopicUnreadable, match="deleted before they were read, or it is"):
            reader.partitions(start, last)
    assert list(reader.partitions(end, end)) == []
    with pytest.raises(TopicUnreadable, match="no-such-topic.*Unknown topic"):
        TopicReader("no-such-topic").initialOffset()
    monkeypatch.setenv(SETTINGS, json.dumps(make_librdkafka_config(login(copy.broker, stranger))))
    with pytest.raises(TopicUnreadable, match="uthoriz"):
        reader.initialOffset()
    monkeypatch.delenv(SETTINGS)
    with pytest.raises(TopicUnreadable, match=f"{SETTINGS} is not set"):
        reader.initialOffset()
