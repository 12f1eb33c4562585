"""How many requests a plan and an apply cost, counted on the wire in front of a real broker."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ..kit.commands.process_folder import Folder
from ..kit.kafka.clusters import own_sandbox
from ..kit.kafka.topic_clients import Clients
from ..kit.proxy.proxy import Proxy, proxying

TOPICS = 1_000
IN_ALL, PER_KEY = 40, 15
"""No per-topic request: far below the number of topics, whatever the version of a client."""

DECLARED = f"""
resource "kafka_topic" "many" {{
  for_each = toset([for n in range({TOPICS}) : format("proof.requests-%04d", n)])

  name       = each.key
  partitions = 1
  config     = {{ "retention.ms" = retention("7d") }}
}}
"""


@pytest.fixture(scope="module")
def proxied(
    tmp_path_factory: pytest.TempPathFactory, own_brokers: None
) -> Iterator[tuple[Folder, Proxy]]:
    """A folder that declares the topics, whose every request passes the counter."""
    path = tmp_path_factory.mktemp("requests")
    with (
        own_sandbox(f"requests-{os.getpid()}") as box,
        proxying(box.brokers[0].ports.client) as proxy,
    ):
        folder = Folder(path, proxy.bootstrap, box.admin_password)
        folder.write(DECLARED)
        yield folder, proxy


def assert_few(requests: Counter[str]) -> None:
    assert requests["DescribeCluster"] >= 1, f"the proxy did not see the run: {requests}"
    assert sum(requests.values()) <= IN_ALL, requests
    assert max(requests.values()) <= PER_KEY, requests


def test_requests_do_not_grow_with_topics(proxied: tuple[Folder, Proxy]) -> None:
    """1,000 topics are planned in at most 40 requests, missing or there, and created by at most
    12 CreateTopics requests, dry runs included."""
    folder, proxy = proxied

    missing = folder.plan()
    assert missing.code == 2, missing.out
    assert_few(planned := proxy.take())

    made = folder.apply()
    assert made.code == 0, made.out
    applied = proxy.take()
    assert 2 <= applied["CreateTopics"] <= 12, applied
    assert sum(applied.values()) < TOPICS / 4, applied

    again = folder.plan()
    assert again.code == 0, again.out
    assert_few(quiet := proxy.take())
    for title, seen in (("plan, none live", planned), ("apply", applied), ("plan, all", quiet)):
        print(f"{title}: {sum(seen.values())} requests: {dict(sorted(seen.items()))}")


USERS = {"ListGroups", "DescribeGroups", "OffsetFetch", "DescribeProducers"}
"""What is asked to find out whom a change hits."""
SIZES = {"ListOffsets", "DescribeLogDirs"}
"""What is asked for what is deleted, and for what fits."""
WEEK = '"retention.ms" = retention("7d")'


def count_plan(proxied: tuple[Folder, Proxy], config: str, *flags: str) -> Counter[str]:
    """The requests of a plan with this config for all topics."""
    folder, proxy = proxied
    folder.write(DECLARED.replace(WEEK, config))
    proxy.take()
    planned = folder.run("plan", "-detailed-exitcode", "--concise", "--no-color", *flags)
    assert planned.code in (2, 8), planned.out
    return proxy.take()


def test_only_a_dangerous_change_asks_whom_it_hits(proxied: tuple[Folder, Proxy]) -> None:
    """A harmless change costs not one request more than without the look. A shorter retention asks
    for groups and a longer one for disks, as long as --impact is not off."""
    rolled = f'{WEEK}, "segment.bytes" = 104857600'
    harmless = count_plan(proxied, rolled, "--impact=off")
    assert count_plan(proxied, rolled) == harmless
    assert not harmless.keys() & (USERS | SIZES), harmless
    shorter, longer = WEEK.replace("7d", "1d"), WEEK.replace("7d", "8d")
    asked = count_plan(proxied, shorter)
    assert asked["ListGroups"] == 1, asked
    assert_few(asked)
    unasked = count_plan(proxied, shorter, "--impact=off")
    assert not unasked.keys() & USERS, unasked
    fits = count_plan(proxied, longer)
    assert fits["DescribeLogDirs"] == 1 and not fits.keys() & USERS, fits
    assert_few(fits)
    assert count_plan(proxied, longer, "--impact=off") == harmless
    for title, seen in (("shorter", asked), ("shorter, off", unasked), ("longer", fits)):
        print(f"{title} retention of all: {sum(seen.values())} requests")


CALM = """
resource "kafka_topic" "calm" {{
  name       = "proof.calm"
  partitions = 1
  config     = {{ "segment.bytes" = {size} }}
  labels     = {{ round = "{round}" }}
}}

resource "kafka_acl" "calm" {{
  for_each = toset({operations})

  acl_principal       = "User:calm"
  acl_host            = "*"
  acl_operation       = each.key
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "proof.calm"
}}

resource "kafka_quota" "calm" {{
  user   = "calm"
  config = {{ producer_byte_rate = {size} }}
}}

resource "kafka_user_scram_credential" "calm" {{
  username            = "calm"
  scram_mechanism     = "SCRAM-SHA-256"
  password            = secret_env("PROOF_PASSWORD")
  password_wo_version = {round}
}}

resource "kafka_cluster_config" "calm" {{
  config = {{ "log.segment.bytes" = {size} }}
}}
"""
"""Objects of every sort. In the second round each changes, and no look can show whom that hits: not
for the new password either, which is a danger."""


def test_no_harmless_change_asks_whom_it_hits(proxied: tuple[Folder, Proxy]) -> None:
    """Whatever is created or changed, a plan sends not one request more than without the look, an
    apply asks for no groups, producers and disks, and neither do drift, `check` and a plan without
    changes."""
    path = proxied[0].path.with_name("calm")
    path.mkdir()
    folder, proxy = replace(proxied[0], path=path), proxied[1]

    def count(code: int, *words: str) -> Counter[str]:
        proxy.take()
        ended = folder.run(*words, "--no-color")
        assert ended.code == code, ended.out
        return proxy.take()

    for number, operations in ((1, '["Read"]'), (2, '["Read", "Write"]')):
        size = 100_000_000 + number * 1_000_000
        folder.write(CALM.format(round=number, size=size, operations=operations))
        quiet = count(2, "plan", "-detailed-exitcode", "--impact=off")
        assert count(2, "plan", "-detailed-exitcode") == quiet
        applied = count(0, "apply", "-auto-approve")
        assert applied["IncrementalAlterConfigs"] or applied["CreateTopics"], applied
        for requests in (quiet, applied, count(0, "plan", "-detailed-exitcode")):
            assert not requests.keys() & (USERS | SIZES), requests
    assert Clients(folder.bootstrap, folder.password).set("proof.calm", retention_ms=1000) == ""
    drift = count(2, "plan", "-refresh-only", "-detailed-exitcode")
    assert drift and not drift.keys() & (USERS | SIZES), drift
    checked = count(0, "check")
    assert checked and not checked.keys() & {"OffsetFetch", "DescribeProducers"}, checked
