"""Conditional writes to an S3-like store: whatever it answers, who wrote is known for certain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform.core.errors import StorageError, UsageError
from kafkaform.core.objects import ObjectChanged, ObjectExists, Objects
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects

from ...kit.stores import s3
from ...kit.stores.clocks import Hasty
from ...kit.stores.faults import PASSING, UNFIT, WAIT, cut, instead, reset_before

KEY = "prefix/key"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[s3.Bucket, str]]:
    bucket = s3.Bucket()
    with s3.serving(bucket) as address:
        yield bucket, address


@pytest.fixture
def bucket(server: tuple[s3.Bucket, str], monkeypatch: pytest.MonkeyPatch) -> s3.Bucket:
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server[0].__init__()  # type: ignore[misc]  # the server keeps its bucket, emptied
    return server[0]


@pytest.fixture
def objects(bucket: s3.Bucket, server: tuple[s3.Bucket, str]) -> Objects:
    return opened(server[1])


def opened(address: str, url: str = "s3://bucket/prefix", **more: str) -> Objects:
    return open_objects(url, s3.options(address, **{"timeout": "0.25"} | more), Hasty())


# ── the seam ────────────────────────────────────────────────────────────────────────────


def test_create_read_replace_delete(objects: Objects) -> None:
    """The five verbs do what they say, and refuse with what is there."""
    assert objects.read("key") is None
    first = objects.create("key", b"one")
    with pytest.raises(ObjectExists) as exists:
        objects.create("key", b"two")
    assert exists.value.found.data == b"one"
    second = objects.replace("key", b"three", first)
    with pytest.raises(ObjectChanged) as changed:
        objects.replace("key", b"four", first)
    assert changed.value.found is not None
    assert changed.value.found.version == second
    objects.delete("key")
    objects.delete("key")
    assert objects.read("key") is None
    with pytest.raises(ObjectChanged) as gone:
        objects.replace("key", b"five", second)
    assert gone.value.found is None


def test_listing_has_all_pages(objects: Objects, bucket: s3.Bucket) -> None:
    """Names of all pages are listed in order, below their folder, and after a name."""
    bucket.page = 7
    for number in range(30):
        objects.create(f"log/{number:03d}", b"x" * number)
    objects.create("lock.json", b"")
    found = objects.names("log")
    assert [entry.key for entry in found] == [f"log/{number:03d}" for number in range(30)]
    assert [entry.size for entry in found] == list(range(30))
    assert len(objects.names("log", after="log/019")) == 10
    assert bucket.requests["LIST"] >= 5


@pytest.mark.parametrize("name", PASSING)
def test_a_faulty_answer_to_a_create(objects: Objects, bucket: s3.Bucket, name: str) -> None:
    """After any single fault a create has happened exactly once, and its version is right."""
    bucket.next(f"PUT {KEY}", PASSING[name])
    version = objects.create("key", b"mine")
    found = objects.read("key")
    assert found is not None
    assert (found.data, found.version) == (b"mine", version)


@pytest.mark.parametrize("name", PASSING)
def test_a_faulty_answer_to_a_replace(objects: Objects, bucket: s3.Bucket, name: str) -> None:
    """After any single fault a replace has happened exactly once, and its version is right."""
    before = objects.create("key", b"before")
    bucket.next(f"PUT {KEY}", PASSING[name])
    version = objects.replace("key", b"mine", before)
    found = objects.read("key")
    assert found is not None
    assert (found.data, found.version) == (b"mine", version)


@pytest.mark.parametrize("name", PASSING)
def test_a_faulty_answer_never_beats_somebody_else(
    objects: Objects, bucket: s3.Bucket, name: str
) -> None:
    """Whose object is there already has won, whatever the store answers to the later one."""
    theirs = objects.create("key", b"theirs")
    before = objects.replace("key", b"newer", theirs)
    fault = PASSING[name]
    bucket.next(f"PUT {KEY}", fault)
    with pytest.raises(ObjectExists):
        objects.create("key", b"mine")
    bucket.next(f"PUT {KEY}", fault)
    with pytest.raises(ObjectChanged):
        objects.replace("key", b"mine", theirs)
    found = objects.read("key")
    assert found is not None
    assert (found.data, found.version) == (b"newer", before)


def test_a_write_that_lands_after_it_was_given_up(objects: Objects, bucket: s3.Bucket) -> None:
    """A lost write that arrives after its repetition changes nothing: its condition is over."""
    before, kept = objects.create("key", b"before"), []

    def hold(_: s3.Bucket, request: s3.Request) -> s3.Answer:
        kept.append(request)
        return s3.Answer(0, breaks=True)

    bucket.next(f"PUT {KEY}", hold)
    version = objects.replace("key", b"mine", before)
    later = objects.replace("key", b"later", version)
    assert bucket.serve(kept[0]).status == 412
    found = objects.read("key")
    assert found is not None
    assert found.version == later


def test_reads_and_listings_are_repeated(objects: Objects, bucket: s3.Bucket) -> None:
    """A read, a listing and a delete get over a fault too."""
    objects.create("key", b"data" * 1000)
    for pattern in (f"GET {KEY}", "GET $", f"DELETE {KEY}"):
        bucket.next(pattern, instead(500, "InternalError"))
        bucket.next(pattern, reset_before)
    for pattern in (f"GET {KEY}", "GET $"):
        bucket.next(pattern, cut)
    found = objects.read("key")
    assert found is not None
    assert found.data == b"data" * 1000
    assert len(objects.names("")) == 1
    objects.delete("key")
    assert not bucket.faults
    assert not bucket.objects


def test_each_attempt_is_one_request(objects: Objects, bucket: s3.Bucket) -> None:
    """Nothing below repeats a request behind our back: six attempts are six requests."""
    bucket.always.append(lambda _, request: s3.refusal(500, "InternalError"))
    with pytest.raises(StorageError):
        objects.read("key")
    assert bucket.requests["GET"] == 6


def test_a_large_object(objects: Objects, bucket: s3.Bucket) -> None:
    """An object of some megabytes is written with one conditional request and read back whole."""
    data = bytes(range(256)) * (8 << 12)
    objects.create("key", data)
    assert bucket.requests["PUT"] == 1
    found = objects.read("key")
    assert found is not None
    assert found.data == data


# ── refusals ────────────────────────────────────────────────────────────────────────────

REFUSALS = {
    "no such bucket": instead(404, "NoSuchBucket"),
    "permission denied": instead(403, "AccessDenied"),
    "credentials have expired": instead(400, "ExpiredToken"),
    "credentials are not accepted": instead(403, "InvalidAccessKeyId"),
    "another region": instead(400, "AuthorizationHeaderMalformed"),
    "clock of this computer": instead(403, "RequestTimeTooSkewed"),
    "overloaded": instead(503, "SlowDown"),
    "internal error": instead(500, "InternalError"),
    "no answer came in time": lambda bucket, request: s3.Answer(500, wait=WAIT),
    "connection failed": reset_before,
}


@pytest.mark.parametrize("why", list(REFUSALS)[:6])
def test_a_refusal_is_final(objects: Objects, bucket: s3.Bucket, why: str) -> None:
    """What cannot go through by itself is not tried again."""
    bucket.always.append(REFUSALS[why])  # type: ignore[arg-type]  # a table of mixed lambdas
    with pytest.raises(StorageError):
        objects.create("key", b"data")
    with pytest.raises(StorageError):
        objects.read("key")
    assert bucket.requests.total() == 2


@pytest.mark.parametrize("why", REFUSALS)
def test_refusals_say_why(objects: Objects, bucket: s3.Bucket, why: str) -> None:
    """A store that goes on refusing is a storage error with place, cause and advice."""
    bucket.always.append(REFUSALS[why])  # type: ignore[arg-type]  # a table of mixed lambdas
    with pytest.raises(StorageError, match=why) as caught:
        objects.create("key", b"data")
    assert "s3://bucket/prefix/key" in caught.value.message
    assert caught.value.advice
    assert "tester" not in str(caught.value.diagnostics)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that nobody serves is a storage error that speaks of the connection."""
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3.serving(s3.Bucket()) as address:
        pass
    with pytest.raises(StorageError, match="connection failed"):
        opened(address).read("key")


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_stores_are_refused_at_init(objects: Objects, bucket: s3.Bucket, name: str) -> None:
    """A store that ignores a condition or shows old things is refused, and told what is missing."""
    fault, named = UNFIT[name]
    bucket.always.append(fault)
    with pytest.raises(StorageError, match=named):
        ObjectBackend(objects).probe()


def test_a_fit_store_is_accepted_and_left_clean(objects: Objects, bucket: s3.Bucket) -> None:
    """The probe and the check before a run leave nothing behind."""
    ObjectBackend(objects).probe()
    ObjectBackend(objects).check_writable()
    assert not bucket.objects


def test_a_store_that_ignores_conditions_is_met_before_a_run(
    objects: Objects, bucket: s3.Bucket
) -> None:
    """Who never ran init is stopped before anything is sent, too."""
    bucket.always.append(UNFIT["ignores every condition"][0])
    with pytest.raises(StorageError, match="nothing is sent.*If-None-Match"):
        ObjectBackend(objects).check_writable()


# ── addresses ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("ftp://bucket/x", {}, "not a store"),
        ("s3:///x", {}, "bucket is not named"),
        ("s3://bucket/x", {"secret_key": "k"}, "not an option"),
        ("s3://bucket/x", {"access_key_id": "k"}, "not an option"),
        ("s3://bucket/x", {"bucket": "other"}, "names 'bucket', the option bucket 'other'"),
        ("s3://bucket/x", {"endpoint": "http://store.example"}, "not encrypted"),
        ("s3://bucket/x", {"use_path_style": "yes"}, "expected true or false"),
        ("s3://bucket/x", {"timeout": "soon"}, "not a number of seconds"),
    ],
)
def test_addresses_that_cannot_be(url: str, options: dict[str, str], why: str) -> None:
    """A wrong address or option is a fault of the user, said before anything is sent."""
    with pytest.raises(UsageError, match=why):
        open_objects(url, options)


@pytest.mark.parametrize(
    ("url", "options", "location"),
    [
        ("s3://b/p/q/", {}, "s3://b/p/q"),
        ("s3://", {"bucket": "b", "key": "p/q"}, "s3://b/p/q"),
        ("s3://b/p?region=eu-central-1", {}, "s3://b/p"),
        ("gs://b/p", {}, "gs://b/p"),
        ("az://c/p", {"storage_account_name": "a"}, "az://c/p"),
        ("abfs://c/p", {"storage_account_name": "a"}, "az://c/p"),
        ("memory://m", {}, "memory://m"),
        ("s3://b/p", {"endpoint": "http://store.example", "allow_http": "true"}, "s3://b/p"),
    ],
)
def test_addresses(url: str, options: dict[str, str], location: str) -> None:
    """Each kind of address, or the options of a backend block, names a place."""
    assert open_objects(url, options).location == location


def test_the_environment_names_the_endpoint(
    bucket: s3.Bucket, server: tuple[s3.Bucket, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint from the environment works as one of the options does, also without TLS."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server[1])
    open_objects("s3://bucket/prefix", {}).create("key", b"data")
    assert KEY in bucket.objects
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store.example")
    with pytest.raises(UsageError, match="not encrypted"):
        open_objects("s3://bucket/prefix", {})
