"""Writes docs/vendors.md from the tables of the profiles: `python docs/vendors.py`.

A test compares the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkaform.core.change import Action
from kafkaform.core.finding import Level
from kafkaform_kafka.vendors.profile import (
    APACHE,
    MARKS,
    SENDS,
    SETS,
    Citation,
    Profile,
    Refusal,
    Sends,
    Switches,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)
from kafkaform_kafka.vendors.profiles import PROFILES

FILE = Path(__file__).parent / "vendors.md"
INTRO = """\
# Clusters of vendors

Many clusters answer Kafka's protocol and are not plain Apache Kafka: they refuse requests, fix
settings, or have rights of their own. A *profile* is what kafkaform knows about the clusters of one
vendor. With it, a plan refuses with the reason what the cluster would refuse later, and says what a
refusal of the cluster means.

**None of these profiles was tried on the real service.** Each rule follows from a public text,
which is cited with its edition and the day on which it was read. The vendor may have changed it
since. The tests simulate refusals with a proxy before a broker of Apache Kafka. If a rule is wrong,
switch the profile off and [tell us](../CONTRIBUTING.md).

## Which profile applies

A plan names the profile, and why it applies, beside the cluster:

```
Cluster kafka: lkc-abc123 at pkc-1.eu-central-1.aws.confluent.cloud:9092 as User:sa-1234 (profile
confluent-cloud, found by the host name pkc-1.eu-central-1.aws.confluent.cloud)
```

It is found by the addresses in `bootstrap_servers`, by those that the brokers advertise, and by the
cluster id. A cluster behind a proxy or under names of your own is not recognized, and Express
brokers of Amazon MSK are taken for Standard ones. Then, or if kafkaform is wrong, name the profile
in the provider block; `apache` stands for no rules beside Kafka's own:

```hcl
provider "kafka" {
  bootstrap_servers = ["kafka.internal.example:9092"]
  profile           = "confluent-cloud"
}

resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = 6
}
```

With [`--untrusted`](security.md), the profile comes from the environment (such as
`KAFKAFORM_KAFKA_PROFILE`), as the connection does: a pull request cannot switch rules off.
[`kafkaform test`](testing.md) applies the rules of a profile that a provider block names to its
simulated cluster.
"""
EFFECTS = """
## What the rules do

| effect | meaning |
|---|---|
| blocks | the change is not made (exit code 8) |
| cautions, notes | the plan says so with the change, or once for the cluster |
| explains | if the cluster refuses the request, the message says this |

The last column but one has the effect and, for `kafkaform explain rule`, the id of the rule.

Where a rule only explains, its source does not say that the cluster refuses the request, so no
change is judged beforehand.

What is not in a table is left to the cluster, whose dry run shows most refusals before anything is
sent. Limits that depend on a plan, a tier or a quota of the vendor are not rules.
"""
_WORDS = {Level.BLOCK: "blocks", Level.CAUTION: "cautions", Level.NOTE: "notes"}
_ACTIONS = {
    SENDS: "every change",
    SETS: "creates and updates",
    (Action.CREATE,): "creates",
    (Action.UPDATE,): "updates",
}


def page() -> str:
    """The text of docs/vendors.md."""
    parts = [INTRO, *_list_marks(), EFFECTS]
    for profile in sorted(PROFILES.values(), key=lambda one: one.title.lower()):
        parts += _render_profile(profile)
    return "\n".join(parts).rstrip() + "\n"


def _list_marks() -> Iterator[str]:
    yield "| profile | product | found by | shown in |\n|---|---|---|---|"
    for mark in MARKS:
        title = PROFILES[mark.profile].title
        yield f"| `{mark.profile}` | {title} | {mark.source} `{mark.form}` | <{mark.url}> |"
    for name in sorted(PROFILES.keys() - {mark.profile for mark in MARKS}):
        yield f"| `{name}` | {PROFILES[name].title} | the provider block only | |"
    yield f"| `{APACHE}` | Apache Kafka | none of these | |"


def _render_profile(profile: Profile) -> Iterator[str]:
    sources: dict[Citation, int] = {}
    notes = profile.notes if profile.connection is None else (*profile.notes, profile.connection)
    cited: tuple[VendorRule | Refusal | VendorNote, ...] = (*profile.rules, *notes)
    for one in cited:
        sources.setdefault(one.source, len(sources) + 1)
    yield f'\n## {profile.title}\n\n`profile = "{profile.name}"`\n'
    yield "| objects | where | rule | effect | source |\n|---|---|---|---|---|"
    yield from (_render_rule(rule, sources[rule.source]) for rule in profile.rules)
    if notes:
        yield ""
        yield from (f"- {note.sentence.rstrip('.')} [{sources[note.source]}]." for note in notes)
    yield "\nSources:\n"
    for source, number in sources.items():
        yield f"{number}. {source.title}: {source.edition}, read on {source.read}. <{source.url}>"


def _render_rule(rule: VendorRule | Refusal, number: int) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in rule.kinds)
    judges = isinstance(rule, VendorRule)
    where = (
        _DESCRIPTIONS[type(rule.condition)](rule.condition) if judges else "if the cluster refuses"
    )
    effects = [
        f"{_WORDS[rule.level]} (`{rule.id}`)" if judges else "",
        "explains" if rule.apis else "",
    ]
    advice = f"; {rule.advice}" if rule.advice else ""
    says = rule.title if judges else rule.sentence
    return (
        f"| {kinds} | {where} | {says}{advice}. | {', '.join(filter(None, effects))} | [{number}] |"
    )


# ── conditions in words ─────────────────────────────────────────────────────────────────


def _describe_writes(when: Writes) -> str:
    paths = ", ".join(f"`{'.'.join(path)}`" for path in when.paths)
    return f"{_ACTIONS[when.actions]} of {paths}"


def _describe_key(when: WritesKey) -> str:
    keys = ", ".join(f"`{key}`" for key in sorted(when.only or when.never))
    some = "other keys than" if when.only is not None else "the keys"
    return f"{_ACTIONS[when.actions]} of `{when.attribute}`: {some} {keys}"


def _describe_value(when: WritesValue) -> str:
    path = f"`{'.'.join(when.path)}`"
    parts = [
        f"is not {', '.join(when.only)}" if when.only else "",
        f"is {', '.join(when.never)}" if when.never else "",
        f"does not match `{_escape(when.pattern)}`" if when.pattern else "",
        f"is below {when.low:,}" if when.low is not None else "",
        f"is over {when.high:,}" if when.high is not None else "",
        "is even" if when.odd else "",
    ]
    return f"{path} {' or '.join(filter(None, parts))}"


def _escape(pattern: str) -> str:
    """The pattern in a cell of a table."""
    return pattern.replace("|", "\\|")


_DESCRIPTIONS: Mapping[type, Callable[[Any], str]] = {
    Sends: lambda when: _ACTIONS[when.actions],
    Writes: _describe_writes,
    WritesKey: _describe_key,
    WritesValue: _describe_value,
    Switches: lambda when: (
        f"an update of `{'.'.join(when.path)}` that adds or removes `{when.word}`"
    ),
}


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
