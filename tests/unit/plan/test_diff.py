"""Differences path by path, and laying values over others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkaform.core.resource import Identity, Lifecycle, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.plan.diff import (
    compare,
    equals_target,
    flatten,
    is_ignored,
    keep_set_values,
    lay_over,
)

SCHEMA = make_schema(
    "A thing.",
    AttributeSchema("size", STRING, "Size."),
    AttributeSchema("config", map_of(STRING), "Config."),
    AttributeSchema("token", STRING, "Hidden.", sensitive=True),
)
maps = st.dictionaries(st.sampled_from("xyz"), st.sampled_from(("1", "2")), max_size=3)
things = st.fixed_dictionaries(
    {"size": st.sampled_from((None, "s", "m")), "config": maps.map(FrozenMap)}
).map(FrozenMap)


def test_only_what_the_target_manages_is_compared() -> None:
    """None in the target means that the system chooses."""
    before = FrozenMap(size="s", config=FrozenMap(x="1"))
    assert compare(before, FrozenMap(size=None, config=FrozenMap(x="1")), schema=SCHEMA) == ()


def test_an_object_that_goes_shows_every_path() -> None:
    """A reviewer of a deletion sees all that is lost."""
    before = FrozenMap(size="s", config=FrozenMap(x="1"))
    gone = compare(before, None, schema=SCHEMA)
    assert [(c.path, c.after) for c in gone] == [(("config", "x"), None), (("size",), None)]


def test_keys_with_dots_stay_whole() -> None:
    """A config key is one step of a path, whatever is in its name."""
    (change,) = compare(
        FrozenMap(config=EMPTY), FrozenMap(config=FrozenMap({"a.b.c": "1"})), schema=SCHEMA
    )
    assert change.path == ("config", "a.b.c")


def test_fallbacks_show_only_where_a_value_goes() -> None:
    """`effective` is what holds after a removal; a changed value needs none."""
    fallbacks = FrozenMap({"config.x": "9", "config.y": "9"})
    gone, changed = compare(
        FrozenMap(config=FrozenMap(x="1", y="1")),
        FrozenMap(config=FrozenMap(y="2")),
        schema=SCHEMA,
        fallbacks=fallbacks,
    )
    assert (gone.effective, changed.effective) == ("9", None)


def test_fallbacks_show_where_a_value_comes() -> None:
    """`effective_before` is what held without the value; an unknown one is left out."""
    fallbacks = FrozenMap({"config.x": "9", "config.z": "9"})
    known, unknown = compare(
        FrozenMap(config=EMPTY),
        FrozenMap(config=FrozenMap(x="1", y="1")),
        schema=SCHEMA,
        fallbacks=fallbacks,
    )
    assert (known.effective_before, unknown.effective_before) == ("9", None)


def test_a_word_for_what_is_in_effect_anyway_shows_it() -> None:
    """The default of an attribute sets nothing where the reading has a fallback."""
    schema = make_schema("", AttributeSchema("level", STRING, "", default="INHERITED"))
    own, inherited = FrozenMap(level="HIGH"), FrozenMap(level="INHERITED")
    below = FrozenMap(level="LOW")
    (comes,) = compare(inherited, own, schema=schema, fallbacks=below)
    assert (comes.effective_before, comes.effective) == ("LOW", None)
    (goes,) = compare(own, inherited, schema=schema, fallbacks=below)
    assert (goes.effective_before, goes.effective) == (None, "LOW")
    (plain,) = compare(inherited, own, schema=schema)
    assert plain.effective_before is None


def test_sensitive_attributes_are_marked() -> None:
    """The renderer needs no schema to hide them."""
    (change,) = compare(None, FrozenMap(token="t"), schema=SCHEMA)
    assert change.sensitive


def test_globs_name_paths_and_whole_attributes() -> None:
    """`config.retention.*`, `config` and `*` are all ways to ignore config.retention.ms."""
    path = ("config", "retention.ms")
    for glob in ("config.retention.*", "config", "*"):
        assert is_ignored(path, Lifecycle(ignore_changes=(glob,)))
        assert not is_ignored(path, Lifecycle(ignore_changes_except=(glob,)))
    for glob in ("retention.ms", "config.segment.*", "conf"):
        assert not is_ignored(path, Lifecycle(ignore_changes=(glob,)))
        assert is_ignored(path, Lifecycle(ignore_changes_except=(glob,)))


@given(things, things)
def test_laying_every_difference_over_gives_the_target(one: FrozenMap, two: FrozenMap) -> None:
    """compare and lay_over are each other's inverse on what is managed."""
    paths = [change.path for change in compare(one, two, schema=SCHEMA)]
    merged = lay_over(one, paths, two)
    managed = {path: v for path, v in flatten(merged).items() if two.get(path[0]) is not None}
    assert managed == flatten(keep_set_values(two))


@given(things, things, st.data())
def test_a_path_that_was_not_written_keeps_its_value(
    one: FrozenMap, two: FrozenMap, data: st.DataObject
) -> None:
    """Only the paths that succeeded move."""
    paths = sorted(flatten(one).keys() | flatten(two).keys())
    some = set(data.draw(st.lists(st.sampled_from(paths)))) if paths else set()
    merged = flatten(lay_over(one, some, two))
    for path in paths:
        expected = flatten(two) if path in some else flatten(one)
        assert merged.get(path) == expected.get(path)


KEPT = make_schema(
    "A login.",
    AttributeSchema("name", STRING, "Name."),
    AttributeSchema("password", STRING, "Hidden.", secret=True),
    AttributeSchema("extra", map_of(STRING), "More of them.", secret=True),
)
LOGIN = FrozenMap(
    name="ci", password=SecretRef("env", "A"), extra=FrozenMap(key=SecretRef("file", "k"))
)


def test_secrets_of_a_new_object_are_listed_as_references() -> None:
    """A reviewer sees that a secret is sent and where it comes from, and never its value."""
    found = {c.path: c for c in compare(None, LOGIN, schema=KEPT)}
    assert found.keys() == {("name",), ("password",), ("extra", "key")}
    assert found["password",].after == SecretRef("env", "A") and found["password",].sensitive
    assert found["extra", "key"].sensitive


def test_secrets_are_never_compared() -> None:
    """Nobody can read them back, so neither a live object nor another reference differs."""
    live, other = FrozenMap(name="ci"), LOGIN.with_items({"password": SecretRef("env", "B")})
    assert compare(live, LOGIN, schema=KEPT) == compare(LOGIN, other, schema=KEPT) == ()
    live_map = FrozenMap(name="ci", extra=FrozenMap())
    assert compare(live_map, LOGIN, schema=KEPT) == ()
    assert equals_target(LOGIN, Observed(Identity("kafka", "login", "ci"), live))


def test_a_row_keeps_no_secret() -> None:
    """Not even the reference: a state row says what is live."""
    assert keep_set_values(LOGIN) == FrozenMap(name="ci", extra=EMPTY)
