"""Two real clusters with one login behind one address: the other one gets nothing, and nothing that
it says is believed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform import sandbox
from kafkaform.core.errors import ConfigurationError
from kafkaform_kafka.connection.settings import KafkaSettings
from kafkaform_kafka.session import open_session

from ...kit import promises
from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended
from ...kit.kafka.clusters import HELD, own_sandbox
from ...kit.kafka.quota_user import account
from ...kit.kafka.sessions import login
from ...kit.kafka.truth import Observer, looking
from ...kit.lane import APPLY, REFUSED, UNKNOWN, recover
from ...kit.promises import Before
from ...kit.proxy.faults import Fault
from ...kit.proxy.proxy import SECONDS, Proxy, proxying
from .test_changed_midway import PASSWORD, PROVIDER, RUNNER, said, writes

pytestmark = pytest.mark.timeout(600)
USER = "both"
"""Has the same password at both."""
FIRST, SECOND = 1, 2
"""Rounds: in the second something of every kind comes, changes and goes."""
BLOCKS = """\
resource "kafka_topic" "t{number}" {{
  name       = "{prefix}t{number}"
  partitions = 1
}}

resource "kafka_topic" "stays" {{
  name       = "{prefix}stays"
  partitions = 1
  config     = {{ "retention.ms" = "{number}000" }}
}}

resource "kafka_acl" "a{number}" {{
  acl_principal       = "User:{prefix}u{number}"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{prefix}t{number}"
}}

resource "kafka_quota" "q{number}" {{
  user   = "{prefix}u{number}"
  config = {{ producer_byte_rate = {number}000 }}
}}

resource "kafka_user_scram_credential" "s{number}" {{
  username            = "{prefix}u{number}"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("PROOF_PASSWORD")
  password_wo_version = 1
}}
"""
GONE = """\
removed {
  from = kafka_topic.t1
  lifecycle {
    destroy = true
  }
}
"""
AT = {
    "CreateAcls": True,
    "CreateAcls elsewhere nothing": False,
    "DeleteAcls": True,
    "DeleteAcls elsewhere nothing": False,
    "AlterUserScramCredentials": True,
    "DeleteTopics": True,
    "AlterClientQuotas, dry": True,
    "CreateTopics, dry": False,
}
"""The request in flight with which the other cluster comes -> whether that one has all that ours
has at that moment, or nothing."""


@dataclass
class Two:
    """Two clusters, clients that look at them, and an address that leads to one of them."""

    boxes: tuple[sandbox.Sandbox, sandbox.Sandbox]
    clients: tuple[Observer, Observer]
    proxy: Proxy

    @property
    def ids(self) -> tuple[str, str]:
        return self.boxes[0].cluster_id, self.boxes[1].cluster_id

    def lead_to(self, which: int) -> None:
        """What is connected breaks, and new connections lead there."""
        self.proxy.lead_to(self.boxes[which].brokers[0].ports.client)

    def folder(self, path: Path) -> Folder:
        path.mkdir()
        return Folder(path, self.proxy.bootstrap, PASSWORD)

    def declare(self, folder: Folder, prefix: str, number: int) -> None:
        text = PROVIDER.format(bootstrap=self.proxy.bootstrap, more=RUNNER.format(name=USER))
        text += BLOCKS.format(prefix=prefix, number=number)
        text += GONE if number == SECOND else ""
        (folder.path / "main.kf.hcl").write_text(text, "utf-8")

    def world(self, which: int, prefix: str) -> promises.World:
        return self.clients[which].world(prefix)


@pytest.fixture(scope="module")
def two(own_brokers: None) -> Iterator[Two]:
    """Two clusters that nobody else uses."""
    with ExitStack() as stack:
        name = f"two-{os.getpid()}"
        boxes = (
            stack.enter_context(own_sandbox(f"{name}-a", config=HELD)),
            stack.enter_context(own_sandbox(f"{name}-b", config=HELD)),
        )
        for box in boxes:
            stack.enter_context(account(box, USER, password=PASSWORD))
        clients = tuple(
            stack.enter_context(looking(box.bootstrap, box.admin_password)) for box in boxes
        )
        proxy = stack.enter_context(proxying(boxes[0].brokers[0].ports.client))
        yield Two(boxes, (clients[0], clients[1]), proxy)


@contextmanager
def in_flight(two: Two, folder: Folder, api: str, *, dry: bool) -> Iterator[None]:
    """While the block runs, an apply waits with this request on its way. dry: it is a dry run."""
    two.proxy.arm(Fault(api, "wait"))
    process = folder.start(*APPLY)
    assert two.proxy.fired.wait(SECONDS), process.finish(1).out
    ended: list[Ended] = []
    yield
    two.proxy.release(passes=False)
    ended.append(process.finish())
    # What was on its way may have had its effect; a dry run has none.
    assert ended[0].code == (REFUSED if dry else UNKNOWN), ended[0].out
    assert all(id_ in said(ended[0]) for id_ in two.ids), ended[0].out


@pytest.mark.parametrize("name", AT)
def test_another_cluster_answers_with_a_request_in_flight(
    two: Two, tmp_path: Path, name: str
) -> None:
    """Ours dies with the request, the other one answers at its address: the run ends with 6, or
    with 4 if nothing was on its way, and names both; the other one was sent nothing that writes,
    what was under way stays open, and the next apply is refused. With ours back the promises
    hold."""
    prefix = f"{USER}-{list(AT).index(name)}-"
    folder = two.folder(tmp_path / "ours")
    for which, where in ((1, two.folder(tmp_path / "theirs")), (0, folder)):
        two.lead_to(which)
        two.declare(where, prefix, FIRST)
        if AT[name] or which == 0:
            ended = where.apply()
            assert ended.code == 0, ended.out
    before, theirs = Before.of(folder.path, two.world(0, prefix)), two.world(1, prefix)
    two.declare(folder, prefix, SECOND)
    with in_flight(two, folder, re.split("[ ,]", name)[0], dry="dry" in name):
        two.lead_to(1)
    assert two.proxy.passed and not writes(two.proxy)
    assert two.world(1, prefix) == theirs
    assert not promises.kept(folder.path, before)
    left = promises.open_intents(folder.records())
    assert bool(left) == ("dry" not in name)
    files = [(folder.path / file).read_bytes() for file in (promises.STATE, promises.LOG)]
    again = folder.apply()
    assert again.code == REFUSED and all(id_ in said(again) for id_ in two.ids), again.out
    assert files == [(folder.path / f).read_bytes() for f in (promises.STATE, promises.LOG)]
    two.lead_to(0)
    _mends(two, folder, before, prefix)
    assert two.world(1, prefix) == theirs


def _mends(two: Two, folder: Folder, before: Before, prefix: str) -> None:
    """Applied as each run advises, everything is as declared and the promises hold."""
    *_, ended = recover(folder)
    assert ended.code == 0, ended.out
    faults = promises.broken(folder.path, lambda: two.world(0, prefix), before)
    assert not faults, "\n".join(faults)
    names = {name.partition("|")[0] for kind, name in two.world(0, prefix) if "topic" in kind}
    assert names == {f"{prefix}t2", f"{prefix}stays"}


def test_a_list_that_leads_to_two_clusters(two: Two) -> None:
    """It is refused, whichever client asks where first, with both ids and the address of each."""
    servers = tuple(box.bootstrap for box in two.boxes)
    for order in (servers, servers[::-1], (*servers, "127.0.0.1:1")):
        with pytest.raises(ConfigurationError) as refused:
            open_session(_both(two, *order))
        for box in two.boxes:
            assert f"{box.bootstrap} to {box.cluster_id}" in refused.value.message


def test_a_list_of_one_cluster(two: Two) -> None:
    """Several addresses of one cluster are fine, and one where nobody answers is passed over."""
    here = two.boxes[0].bootstrap
    session = open_session(_both(two, here, here.replace("127.0.0.1", "localhost"), "127.0.0.1:1"))
    assert session.facts.scope_id == two.ids[0]
    session.close()


def _both(two: Two, *servers: str) -> KafkaSettings:
    given = {"mechanism": "SCRAM-SHA-256", "password": PASSWORD, "username": USER}
    return login(two.boxes[0], "admin", **given, servers=servers)
