"""`profile` in the provider block: checked offline, shown in plans, used by tests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.value import FrozenMap
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.review.html_page import render_html
from kafkaform.render.terraform import to_json
from kafkaform_kafka.connection.settings import read_settings
from kafkaform_kafka.vendors.profile import PROFILES

from ....kit.commands.here import Here
from ....kit.simulated.engine import desired, house, plan, topic

BLOCK = """
provider "kafka" {{
  bootstrap_servers = ["kafka-1:9092"]
  profile           = "{}"
}}

resource "kafka_topic" "orders" {{
  name               = "orders"
  partitions         = 1
  replication_factor = 2
}}
"""
TEST = """
run "refuses_two_replicas" {
  command         = plan
  expect_failures = [kafka_topic.orders]
}
"""


def test_an_unknown_profile_is_refused_with_the_list(here: Here) -> None:
    """A misspelt name would switch all rules off without a word."""
    here.write("main.kf.hcl", BLOCK.format("confluent-clout"))
    said = here.fails("validate")
    assert '"profile" must be one of' in said
    for name in PROFILES:
        assert name in said
    here.write("main.kf.hcl", BLOCK.format("confluent-cloud"))
    here.done("validate")


def test_an_unknown_profile_of_a_program_is_refused() -> None:
    """A session that a program opens has no schema before it."""
    config = FrozenMap(bootstrap_servers=("kafka-1:9092",), profile="x")
    with pytest.raises(ConfigurationError, match="profile 'x' is unknown"):
        read_settings("kafka", config, {})
    known = read_settings("kafka", config.with_items({"profile": "aiven"}), {})
    assert known.profile == "aiven"


def test_the_profile_stands_beside_the_cluster() -> None:
    """The text of a plan and its JSON say which profile applies, and why; without one they say
    nothing of it."""
    where = house()
    told = plan(where, desired(topic("a"), profile="aiven"))
    words = "profile aiven, as the provider block says"
    assert f"({words})" in " ".join(render_plan_text(told, width=200).split())
    assert to_json(told)["kafkaform"]["instances"]["kafka"]["profile"] == words
    plain = plan(where, desired(topic("a")))
    assert "profile" not in render_plan_text(plain)
    assert "profile" not in to_json(plain)["kafkaform"]["instances"]["kafka"]


def test_every_form_of_a_review_shows_the_profile_safely() -> None:
    """An address that a cluster advertises, or its id, is foreign text: no form of a plan lets it
    pass for its own."""
    told = plan(house(), desired(topic("a"), profile="aiven"))
    kafka = told.instances["kafka"]
    evil = "profile x, found by the host name <b>`|\x1b[2J\u202e.example"
    facts = replace(kafka.facts, profile=evil)
    shown = replace(told, instances={"kafka": replace(kafka, facts=facts)})
    text, comment, page = render_plan_text(shown), render_markdown(shown), render_html(shown)
    for form in (text, comment, page):
        assert "profile x, found by the" in " ".join(form.split())
        assert "\x1b" not in form and "\u202e" not in form
    assert "<b>`" not in page


def test_tests_of_a_configuration_apply_the_rules(here: Here) -> None:
    """A simulated cluster refuses what the vendor of the provider block refuses."""
    here.write("main.kf.hcl", BLOCK.format("redpanda"))
    here.write("main.kftest.hcl", TEST)
    here.done("test")
    here.write("main.kf.hcl", BLOCK.format("apache"))
    here.fails("test")
