"""State files: equal states are equal bytes, and any other bytes are refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import integers
from msgspec.structs import replace

from kafkaform.core import canonical
from kafkaform.core.errors import StorageError
from kafkaform.core.value import FrozenMap
from kafkaform.state import codec
from kafkaform.state.codec import decode, decode_outline, encode
from kafkaform.state.model import Row, State

from ...kit.states import SMALL, state_of, states, topic


def refit(**changes: Any) -> bytes:
    """SMALL's file edited by hand by somebody who also knows how to fit the checksum."""
    members = {**json.loads(encode(SMALL)), **changes}
    lines = [f"{json.dumps(k)}:{json.dumps(members[k])}" for k in sorted(members)]
    first, _, *rest = lines
    body = f"{{\n{first},\n", ",\n".join(rest) + "\n}\n"
    checksum = hashlib.sha256("".join(body).encode()).hexdigest()
    return f'{body[0]}"checksum":"{checksum}",\n{body[1]}'.encode()


def fit_checksum(data: bytes) -> bytes:
    """The bytes of a state with the checksum that they need."""
    lines = data.splitlines(keepends=True)
    (number,) = (n for n, line in enumerate(lines) if line.startswith(b'"checksum"'))
    checksum = hashlib.sha256(b"".join(lines[:number] + lines[number + 1 :])).hexdigest()
    lines[number] = f'"checksum":"{checksum}",\n'.encode()
    return b"".join(lines)


def refused(data: bytes) -> str:
    with pytest.raises(StorageError) as caught:
        decode(data, "kafkaform.state.json")
    assert caught.value.advice
    return caught.value.message


@given(states)
def test_round_trip(state: State) -> None:
    """Whatever is saved is read back equal, and saving that again gives the same bytes."""
    data = encode(state)
    assert decode(data, "s") == state
    assert encode(decode(data, "s")) == data


@given(states, integers(min_value=0, max_value=400))
def test_pieces(state: State, size: int) -> None:
    """A state is the same however many of its objects are parsed at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_PIECE", size)
        assert decode(encode(state), "s") == state


def test_a_large_state_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a piece and a line is parsed at once."""
    data = encode(state_of(*(topic(f"topic-{number}") for number in range(50))))
    longest = max(map(len, data.splitlines()))
    parsed: list[int] = []
    loads = canonical.loads
    monkeypatch.setattr(codec, "_PIECE", 1000)
    monkeypatch.setattr(canonical, "loads", lambda text: parsed.append(len(text)) or loads(text))
    assert len(decode(data, "s").objects) == 50
    assert len(parsed) > 10 and max(parsed) < 1000 + longest + 2


def test_order_of_rows_does_not_matter() -> None:
    """Two states with the same rows are the same bytes, however they came about."""
    a, b = topic("a"), topic("b")
    assert encode(state_of(a, b)) == encode(state_of(b, a))


def test_one_object_a_line() -> None:
    """A changed object is one changed line in a diff."""
    lines = encode(SMALL).decode("ascii").splitlines()
    assert sum(line.startswith('{"attributes"') for line in lines) == len(SMALL.objects)


def test_checksum_can_be_checked_without_kafkaform() -> None:
    """The checksum is the SHA-256 of the file without the checksum's line."""
    lines = encode(SMALL).splitlines(keepends=True)
    [stated] = [line for line in lines if line.startswith(b'"checksum"')]
    rest = b"".join(line for line in lines if line != stated)
    assert hashlib.sha256(rest).hexdigest() in stated.decode()


def test_every_changed_byte_is_noticed() -> None:
    """Eight bit flips, a blank and a zero at every position of a file are refused."""
    data = encode(state_of(topic("a")))
    for position, byte in enumerate(data):
        for other in {*(byte ^ (1 << bit) for bit in range(8)), 0x20, 0x00} - {byte}:
            refused(data[:position] + bytes([other]) + data[position + 1 :])


def test_every_lost_and_every_doubled_byte_is_noticed() -> None:
    """Removing or repeating any one byte is refused."""
    data = encode(state_of(topic("a")))
    for position in range(len(data)):
        refused(data[:position] + data[position + 1 :])
        refused(data[: position + 1] + data[position:])


def test_torn_files_are_refused() -> None:
    """Every prefix of a file, alone or with a tail of zeros, is refused."""
    data = encode(state_of(topic("a")))
    for length in range(len(data)):
        refused(data[:length])
        refused(data[:length].ljust(len(data), b"\0"))


def test_refusal_names_file_reason_and_way_out() -> None:
    """A damaged state says which file, what is wrong, and what to do."""
    with pytest.raises(StorageError) as caught:
        decode(encode(SMALL)[:-40], "eu/kafkaform.state.json")
    assert "eu/kafkaform.state.json" in caught.value.message
    assert "Restore an earlier version" in caught.value.advice


def test_newer_format_is_refused_not_rewritten() -> None:
    """A state of a newer kafkaform says which version wrote it, even if all else differs."""
    message = refused(b'{"format": 3, "kafkaform_version": "9.1", "new": 1}')
    assert "9.1" in message
    assert "format 3" in message


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lineage": ""}, "lineage"),
        ({"serial": -1}, "serial"),
        ({"serial": True}, "serial"),
        ({"serial": "3"}, "serial"),
        ({"providers": {"kafka": 1}}, "providers"),
        ({"outputs": {"a": 1}}, "outputs"),
        ({"audit_head": {"seq": 1}}, "audit_head"),
        ({"objects": {}}, "objects"),
        ({"format": 0}, "format is 0"),
        ({"format": 1.5}, "format is 1.5"),
        ({"more": 1}, "unknown members: more"),
        ({"outputs": {"a": {"value": 1}}}, "outputs"),
        ({"outputs": {"a": {"value": [{"$secret": "env:X"}], "sensitive": False}}}, "outputs"),
    ],
)
def test_invariants_of_the_state(changes: dict[str, Any], named: str) -> None:
    """A hand-made state with a fitting checksum still has to obey the rules, by name."""
    assert named in refused(refit(**changes))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"owners": []}, "owners"),
        ({"owners": [""]}, "owners"),
        ({"owners": ["x"]}, "objects[0] (kafka_topic orders)"),
        ({"owners": ['a.b["\\x"]']}, "owners"),
        ({"depends_on": ["data.a.b"]}, "depends_on"),
        ({"origin": 0}, "origin"),
        ({"origin": -3}, "origin"),
        ({"protected": "maybe"}, "protected"),
        ({"attributes": None}, "attributes"),
        ({"labels": {"a": 1}}, "labels"),
        ({"incarnation": 7}, "incarnation"),
        ({"reported": {}}, "reported"),
        ({"reported": ["config.retention.ms"]}, "reported"),
        ({"extra": 1}, "objects[0] has unknown members: extra"),
    ],
)
def test_invariants_of_a_row(changes: dict[str, Any], named: str) -> None:
    """The same for each object."""
    row = json.loads(encode(SMALL))["objects"][0]
    assert named in refused(refit(objects=[{**row, **changes}]))


def test_values_that_are_only_reported_are_in_the_rows_that_have_some() -> None:
    """A row without them is as earlier versions know it."""
    values = FrozenMap({"config.retention.ms": "604800000"})
    state = state_of(topic("orders", reported=values), topic("other"))
    data = encode(state)
    assert decode(data, "s") == state
    assert encode(decode(data, "s")) == data
    orders, other = json.loads(data)["objects"]
    assert orders["reported"] == dict(values) and "reported" not in other


def test_one_identity_once() -> None:
    """An object that is recorded twice is refused."""
    row = json.loads(encode(SMALL))["objects"][0]
    assert "twice" in refused(refit(objects=[row, row]))


def test_new_state_is_empty() -> None:
    """A new state has recorded nothing and can be saved."""
    state = State("lineage", kafkaform_version="0.1.0")
    assert decode(encode(state), "s") == state
    assert not state.objects


def list_outlined(data: bytes) -> set[tuple[str, str, str, str, str]]:
    """Scope, instance, kind, key and protection of each object in the outline."""
    outline = decode_outline(data, "s")
    return {
        (outline.providers.get(o.instance, ""), o.instance, o.kind, o.key, o.protected)
        for o in outline.objects
    }


@given(states)
def test_an_outline_has_every_object(state: State) -> None:
    """The same objects and systems as the whole state, which can still be read."""
    data = encode(state)
    assert list_outlined(data) == {
        (str(state.providers.get(i.instance, "")), i.instance, i.kind, i.key, row.protected)
        for i, row in state.objects.items()
    }
    assert len(decode_outline(data, "s").objects) == len(state.objects)
    assert decode_outline(data, "s").decode() == state


def name_object(key: str) -> Row:
    """A row whose object has this key."""
    row = topic("a")
    return replace(row, identity=replace(row.identity, key=key))


def test_an_outline_knows_a_name_however_it_is_written() -> None:
    """JSON can write each letter of a key, and of the names of members, as a number."""
    name = 'caf\u00e9 \U0001f600 \\u0041 "\x7f'
    data = encode(state_of(name_object(name)))
    assert b"\\u00e9" in data and b"\\ud83d" in data
    assert {key for _, _, _, key, _ in list_outlined(data)} == {name}
    spelled = data.replace(b"identity", b"\\u0069dentity").replace(b"caf", b"\\u0063\\u0061f")
    spelled = fit_checksum(spelled)
    assert {key for _, _, _, key, _ in list_outlined(spelled)} == {name}
    half = encode(state_of(name_object("\ud800")))
    assert {key for _, _, _, key, _ in list_outlined(half)} == {"\ud800"}


@pytest.mark.parametrize(
    "change", [lambda d: d[:-9], lambda d: d.replace(b"topic", b"tipoc"), lambda d: b""]
)
def test_an_outline_of_a_damaged_state_is_refused(change: Callable[[bytes], bytes]) -> None:
    """As the state is, and for the same reason; so is a later format."""
    data = change(encode(SMALL))
    with pytest.raises(StorageError) as caught:
        decode_outline(data, "kafkaform.state.json")
    assert caught.value.message == refused(data)
    with pytest.raises(StorageError, match="has state format 3"):
        decode_outline(refit(format=3), "s")
