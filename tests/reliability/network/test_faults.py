"""What becomes of an apply when the network or the broker fails in a way that has a name, on a
real broker behind the proxy. All applies run at the same time; each test looks at one of them.

Each is followed by an apply without a fault; what `tests.kit.promises` demands holds then.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pytest

from ...kit.commands.server import Ended
from ...kit.kafka.truth import observe
from ...kit.promises import kept
from ...kit.proxy.answers import Passed
from ...kit.proxy.faults import FOR_EVER, REAL, Fault
from ...kit.proxy.frames import Asked, answer, answered
from ...kit.proxy.proxy import proxying
from .lane import APPLY, FaultLane, lane

LANES = 3
"""So many applies run at the same time."""
HELD = 600.0
"""Seconds that no test takes: such an answer comes when the proxy is told to let it go."""


@dataclass(frozen=True)
class Story:
    """How an apply went. passed: its requests; later: those of the applies after it; topics: name
    -> id of those that live at the end."""

    first: Ended
    passed: list[Passed]
    later: list[Passed]
    violations: tuple[str, ...]
    topics: Mapping[str, str]
    second: Ended | None = None

    def sent(self, api: str, later: bool = False) -> list[Passed]:
        """Its real requests of this name that reached the broker."""
        return [
            p for p in (self.later if later else self.passed) if p.request.api == api and p.items
        ]

    def dry(self, api: str) -> list[Passed]:
        return [p for p in self.passed if p.request.api == api and p.request.dry]


Script = Callable[[FaultLane], Story]


def struck(*faults: Fault) -> Script:
    """An apply that meets these."""

    def play(lane: FaultLane) -> Story:
        lane.next()
        lane.proxy.arm(*faults)
        first = lane.folder.run(*APPLY)
        assert lane.proxy.all_struck, faults
        return _ended(lane, first, lane.proxy.disarm())

    return play


def killed(fault: Fault, reaches: Callable[[Passed], bool]) -> Script:
    """An apply that is killed as soon as a request that the fault struck is so far."""

    def play(lane: FaultLane) -> Story:
        lane.next()
        lane.proxy.arm(fault)
        process = lane.folder.start(*APPLY)
        try:
            deadline = time.monotonic() + 60
            while not any(p.fault is not None and reaches(p) for p in list(lane.proxy.passed)):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
        finally:
            process.send_signal(signal.SIGKILL)
            ended = process.finish()
        assert ended.code == -signal.SIGKILL, ended.out
        left = kept(lane.folder.path, lane.before)
        passed = lane.proxy.disarm()
        story = _ended(lane, ended, passed)
        return replace(story, first=ended, violations=(*left, *story.violations))

    return play


def _ended(lane: FaultLane, first: Ended, passed: list[Passed]) -> Story:
    found = [*lane.after(first, passed)]
    later = lane.settled
    topics = {name: t.incarnation or "" for (k, name), t in lane.world().items() if k == TOPIC}
    return Story(first, passed, later, tuple(found), topics)


TOPIC = "kafka_topic"


def another_cluster(lane: FaultLane) -> Story:
    """Applies that reach a cluster of another id at the same address: one with an intent left
    open, and one without."""
    lane.next()
    lane.proxy.arm(Fault("CreateTopics", "swallow", REAL))
    process = lane.folder.start(*APPLY)
    try:
        assert lane.proxy.fired.wait(60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.finish()
    begun = lane.proxy.disarm()
    lane.proxy.tamper = _elsewhere
    recovering = lane.folder.run(*APPLY)
    passed = lane.proxy.disarm()
    lane.proxy.tamper = None
    story = _ended(lane, Ended(4, "Error: another cluster"), [*begun, *passed])
    return replace(story, first=recovering, passed=passed)


def _elsewhere(request: Asked, data: bytes) -> bytes:
    if request.api not in ("DescribeCluster", "Metadata"):
        return data
    body = answer(request, data)
    if body.cluster_id is None:
        return data
    return answered(request, replace(body, cluster_id="another-cluster-000000"))


def vanished(lane: FaultLane) -> Story:
    """An apply whose topics no reading shows for the rest of it and for the first readings of the
    next one."""
    lane.next()
    lane.proxy.arm(Fault("Metadata", "stale", times=FOR_EVER))
    first = lane.folder.run(*APPLY)
    lane.proxy.keep(Fault("Metadata", "stale", times=4))
    second = lane.folder.run(*APPLY)
    story = _ended(lane, first, lane.proxy.disarm())
    return replace(story, second=second)


SCRIPTS: Mapping[str, Script] = {
    "silent": struck(Fault("DescribeUserScramCredentials", "half open", nth=2)),
    "late": struck(Fault("CreateTopics", "late", REAL, seconds=2.0)),
    "never": struck(Fault("CreateTopics", "reset before", REAL)),
    "killed before": killed(Fault("CreateTopics", "swallow", REAL), lambda p: True),
    "killed after": killed(Fault("CreateTopics", "hold", REAL, seconds=HELD), lambda p: p.answered),
    "vanished": vanished,
    "another cluster": another_cluster,
    "errors": struck(
        Fault("CreateTopics", "refuse one", REAL, code=44),
        Fault("AlterClientQuotas", "refuse one", REAL, code=31),
        Fault("CreateAcls", "refuse", REAL, code=44),
    ),
    "open": struck(
        Fault("CreateTopics", "reset after", REAL),
        Fault("CreatePartitions", "cut", REAL),
        Fault("IncrementalAlterConfigs", "say", REAL, code=41),
        Fault("AlterClientQuotas", "stranger", REAL),
        Fault("CreateAcls", "oversized", REAL),
        Fault("DeleteAcls", "say whole", REAL, code=7),
    ),
    "slow": struck(
        Fault("DescribeUserScramCredentials", "lose"),
        Fault("DescribeClientQuotas", "garbage"),
        Fault("CreateTopics", "throttle", REAL, times=2, seconds=0.3),
        Fault("CreatePartitions", "hold", REAL, seconds=4.0),
        Fault("IncrementalAlterConfigs", "slow", REAL, seconds=0.002),
        Fault("AlterClientQuotas", "twice", REAL),
        Fault("CreateAcls", "delay", REAL, seconds=0.5),
        Fault("DeleteAcls", "pause", REAL, seconds=0.3),
    ),
}


@pytest.fixture(scope="module")
def stories(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The future of each script's story, in as many lanes as run at the same time."""
    port = int(broker.bootstrap.rpartition(":")[2])
    todo = list(SCRIPTS.items())
    home = tmp_path_factory.mktemp("lanes")  # here: two threads that make the first folder collide
    with ExitStack() as stack, ThreadPoolExecutor(LANES) as pool:
        futures: dict[str, Future[Story]] = {name: Future() for name in SCRIPTS}

        def work(number: int) -> None:
            with proxying(port) as proxy:
                observer = observe(broker)
                mine = lane(broker, proxy, observer, home / str(number), f"w{uuid4().hex[:8]}-")
                while todo:
                    name, script = todo.pop(0)
                    try:
                        futures[name].set_result(script(mine))
                    except BaseException as error:
                        futures[name].set_exception(error)
                        raise
                assert not list(mine.quiet())
                observer.close()

        lanes = [pool.submit(work, number) for number in range(LANES)]
        stack.callback(lambda: [each.result() for each in lanes])
        yield lambda name: futures[name].result(110)


def test_nothing_is_lost(stories: Any) -> None:
    """After each of these faults, and an apply without one, every promise holds."""
    assert [text for name in SCRIPTS for text in stories(name).violations] == []


def test_killed_before_the_request_arrives(stories: Any) -> None:
    """An apply that dies between intent and send has done nothing; the next one says so of the
    intent, and creates the topics once."""
    story = stories("killed before")
    assert story.first.code == -signal.SIGKILL
    assert not story.sent("CreateTopics")
    assert len(story.sent("CreateTopics", later=True)) == 1


def test_killed_while_the_answer_is_held(stories: Any) -> None:
    """An apply that dies after the broker has created topics and before it hears so: the next one
    finds them, takes them for its own, and sends no create."""
    story = stories("killed after")
    assert len(story.sent("CreateTopics")) == 1
    assert not story.sent("CreateTopics", later=True)


def test_an_effect_that_comes_late(stories: Any) -> None:
    """A create whose connection is reset and that is carried out 2 s later is waited for, counts
    as applied, and is sent once."""
    story = stories("late")
    assert story.first.code == 0, story.first.out
    assert len(story.sent("CreateTopics")) == 1 and not story.later


def test_an_effect_that_never_comes(stories: Any) -> None:
    """A create that never arrived counts as failed once the time has passed in which it could
    have; what depends on nothing goes on; the next apply creates the topics."""
    story = stories("never")
    assert story.first.code == 5, story.first.out
    assert "the object was unchanged after the timeout" in story.first.out
    assert not story.sent("CreateTopics") and story.sent("CreateAcls")
    assert len(story.sent("CreateTopics", later=True)) == 1


def test_a_throttled_create_is_sent_again(stories: Any) -> None:
    """THROTTLING_QUOTA_EXCEEDED (89) with a throttle time: the create is sent again after it,
    twice here, each topic once, and an answer that only asks for a pause is a success."""
    story = stories("slow")
    assert story.first.code == 0, story.first.out
    throttled = [p for p in story.passed if p.fault is not None and p.fault.kind == "throttle"]
    made = [item.name for request in story.sent("CreateTopics") for item in request.items]
    assert len(throttled) == 2 and len(made) == len(set(made)) == 2


def test_a_slow_broker_gets_nothing_twice(stories: Any) -> None:
    """Answers that come byte by byte, 4 s late, or twice: each request is sent once."""
    story = stories("slow")
    for api in ("CreatePartitions", "CreateAcls", "DeleteAcls", "DeleteTopics"):
        assert len(story.sent(api)) == 1, api


def test_a_policy_that_was_not_there_in_the_dry_run(stories: Any) -> None:
    """POLICY_VIOLATION on one topic after a dry run without a fault: that topic fails with the
    broker's words, the other one is made, deletes wait, exit 5."""
    story = stories("errors")
    assert story.first.code == 5, story.first.out
    assert story.dry("CreateTopics") and len(story.sent("CreateTopics")[0].items) == 1
    out = story.first.out
    assert "POLICY_VIOLATION: a policy of the cluster forbids this: said by the proxy" in out
    assert not story.sent("DeleteTopics") and "nothing is deleted, because" in out


def test_a_right_that_is_missing_for_one_item(stories: Any) -> None:
    """An authorization failure on one quota: it fails and names the right, the others are set."""
    story = stories("errors")
    assert "CLUSTER_AUTHORIZATION_FAILED" in story.first.out
    assert "Grant AlterConfigs on Cluster" in " ".join(story.first.out.split())
    assert len(story.sent("AlterClientQuotas")[0].items) == 2


def test_a_request_that_is_refused_as_a_whole(stories: Any) -> None:
    """One error for every item of a request: all of them fail, nothing of them is done, and the
    next apply sends them again."""
    story = stories("errors")
    assert not story.sent("CreateAcls")
    assert len(story.sent("CreateAcls", later=True)[0].items) == 2


def test_a_reset_after_the_request_arrived(stories: Any) -> None:
    """A create that was carried out and whose connection was reset is read, counts as applied
    with the topic's id in the state, and is not sent again: no "already exists"."""
    story = stories("open")
    assert story.first.code == 0, story.first.out
    assert len(story.sent("CreateTopics")) == 1 and not story.later


def test_answers_that_cannot_be_read(stories: Any) -> None:
    """An answer that is cut off, too long or another request's, or that leaves open whether it
    was done (7, 41): the object decides, and nothing is sent twice."""
    story = stories("open")
    for api in ("CreatePartitions", "CreateAcls", "DeleteAcls"):
        assert len(story.sent(api)) == 1, api


def test_silence_on_every_connection_ends(stories: Any) -> None:
    """Connections that stay open and say nothing any more: the apply ends by itself before it
    has sent anything, and the next one does all of it."""
    story = stories("silent")
    assert story.first.code in (1, 4, 8), story.first.out
    assert not any(p.items for p in story.passed)
    assert len(story.sent("CreateTopics", later=True)) == 1


def test_topics_that_no_broker_shows_yet(stories: Any) -> None:
    """Metadata that stays behind the writes of an apply: exit 6, and each change that is not to
    be seen is named."""
    story = stories("vanished")
    assert story.first.code == 6, story.first.out
    assert story.first.out.count("applied, not yet visible on broker 1") == 3, story.first.out
    assert story.first.out.count("applied, not yet gone on broker 1") == 2


def test_a_topic_that_vanished_after_its_create(stories: Any) -> None:
    """The next apply, whose first readings do not show the topics either, waits for them: no
    changes, and no second create."""
    story = stories("vanished")
    assert story.second is not None and story.second.code == 0, story.second
    assert "No changes" in story.second.out
    assert not story.sent("CreateTopics", later=True)


def test_another_cluster_answers(stories: Any) -> None:
    """A broker of another cluster id behind the same address: recovery and apply are refused (4)
    and send nothing; with the right cluster the open intents are closed."""
    story = stories("another cluster")
    assert story.first.code == 4, story.first.out
    assert "another-cluster-000000" in story.first.out
    assert not any(p.items for p in story.passed)
