"""A Spark session from a profile's settings. Shell: Spark, Java, the environment."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from sqlrun.engines.spark import borrowed, class_archive, jars, object_store, reach
from sqlrun.errors import EngineError
from sqlrun.runtime.text_lines import text_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON = "spark.pyspark.python"
JAVA = 17
HINT = (
    f"Install a JDK {JAVA} or newer, for example `apt-get install openjdk-{JAVA}-jdk-headless`, and make sure that "
    "`java -version` finds it (or set JAVA_HOME)."
)
# Environment variables that the JVM gets: java_method() in a model could read all of them.
PASSED = re.compile(
    r"PATH|HOME|JAVA_HOME|LANG|LC_\w+|TZ|TMPDIR|USER|LD_LIBRARY_PATH|SPARK_LOCAL_\w+|HADOOP_\w+|YARN_CONF_DIR|"
    r"KUBECONFIG|KUBERNETES_SERVICE_\w+|PYSPARK_\w+|_PYSPARK\w+"
)
SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "sqlrun",
    # A warehouse is a folder; a cluster's configuration would make Hadoop look for it there.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Landing runs without ANSI errors; in this mode too, the size of NULL is NULL rather than -1.
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Small changes on few cores: the defaults (50 and 200 tasks) cost seconds each.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.files.openCostInBytes": "131072",
    # The driver lists the files of a relation one by one, without a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # Not INT96: it has no statistics to skip files by, and other readers take it for a time without a zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The delta of a MERGE is already evaluated and pinned; Delta need not materialize it again.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # A table unchanged for 30 days is read at its last version after the next commit, too: maintenance retains
    # the files of every version that a tick or a reader may still need.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # Delta's own statements write deletion vectors to separate files; sqlrun's are inline in the log.
    "spark.databricks.delta.merge.deletionVectors.persistent": "false",
    "spark.databricks.delta.update.deletionVectors.persistent": "false",
    "spark.databricks.delta.delete.deletionVectors.persistent": "false",
    # The plan's text for Spark's web pages, which are off.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "2000",
    "spark.sql.streaming.metricsEnabled": "false",
    # Milliseconds; without a limit, a stream that loses an interrupt is never interrupted again.
    "spark.sql.streaming.stopTimeout": "1000",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    # Each relation would leave its file listing in a cache of 250 MB that no later relation reads: 100 KB a tick.
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    "spark.cleaner.periodicGC.interval": "10min",
    # A tick's statements and Delta's own make more code than fits the default of a hundred entries.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
# On a cluster: executors reach the driver by the name of its host, and a large statement has more tasks.
CLUSTER: dict[str, str | None] = {
    "spark.driver.host": None,
    "spark.driver.bindAddress": None,
    "spark.databricks.delta.snapshotPartitions": "4",
    "spark.sql.shuffle.partitions": "8",
    # Of statements that Spark plans again after each exchange: it then joins small partitions.
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "200",
}
JAVA_OPTIONS = (
    "-XX:+UseParallelGC -XX:+IgnoreUnrecognizedVMOptions "
    # Half of a warm tick's CPU time goes into the JIT's highest tier: use it less, and later.
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 -XX:Tier4CompileThreshold=75000 "
    "-XX:Tier4BackEdgeThreshold=200000 "
    "-Dlog4j2.configurationFile={log4j} -Dderby.system.home={home}"
)


def java_problem() -> str | None:
    """Return what is wrong with Java and how to fix it; None if it works."""
    home, java = os.environ.get("JAVA_HOME"), _java()
    if not java or not Path(java).exists():
        return f"Spark needs Java {JAVA} or newer, but java is missing{f' in {home}' if home else ''}. {HINT}"
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java} doesn't run: {error}. {HINT}"
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if not found:
        return f"{java} doesn't print its version. {HINT}"
    if int(found[1]) < JAVA:
        return f"Spark needs Java {JAVA} or newer, but {java} is Java {found[1]}. {HINT}"
    return None


def session_of(settings: dict[str, str], *, record: bool = False) -> SparkSession:
    """Start Spark or join a borrowed one. Raises: EngineError with the reason if it doesn't start.

    `record`: the JVM records its loaded classes for `keep_classes`.
    """
    _without_connect()
    _log_quietly()
    merged = _merged(settings)
    with _interrupts_kept():
        lent = borrowed.join(key_of(settings))
    if lent is not None:
        return _prepared(lent, merged)
    problem = java_problem()
    if problem is not None:
        raise EngineError(problem)
    from pyspark.sql import SparkSession

    reach.require_master(merged["spark.master"])
    # Not among the settings: a JVM that has loaded its classes itself is equivalent to one that mapped them.
    merged["spark.driver.extraJavaOptions"] += f" {class_archive.options_for(_classes(), record=record)}"
    builder = SparkSession.builder
    for key, value in merged.items():
        builder = builder.config(key, value)
    with _own_settings(), _interrupts_kept(), _launched_apart() as output:
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise EngineError(_unstarted(error, _tail(output))) from error
    if not merged["spark.master"].startswith("local"):
        try:
            reach.await_executors(session)
        except EngineError:
            session.stop()
            raise
    return _prepared(session, merged)


def _prepared(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Set the Python of executors, and the credentials of the environment; those are sent to executors with each task.

    PySpark itself reads the Python from PYSPARK_PYTHON alone, else `python3`.
    """
    python = settings.get(PYTHON)
    if python:
        session.sparkContext.pythonExec = python
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    for name, value in object_store.secrets(settings, os.environ).items():
        hadoop.set(name, value)
    return session


def keep_classes(session: SparkSession) -> None:
    """Write the archive of a session's JVM once, so that later ones start sooner."""
    file, gateway = _classes(), session.sparkContext._gateway
    if gateway is not None and not file.exists():
        class_archive.keep(_java(), gateway.proc.pid, file)


def _classes() -> Path:
    import pyspark

    return class_archive.file_of(_java(), Path(pyspark.__file__).parent / "jars", JAVA_OPTIONS, os.environ)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java") or ""


def key_of(settings: dict[str, str]) -> str:
    """Return a hash of all that a JVM depends on at its start; JVMs with the same hash are interchangeable."""
    java = os.environ.get("JAVA_HOME") or shutil.which("java") or ""
    # PATH only finds Java, which is hashed itself.
    seen = {n: v for n, v in os.environ.items() if PASSED.fullmatch(n) and n != "PATH" and "PYSPARK" not in n}
    merged = _merged(settings)
    # Hadoop's file systems, which a JVM keeps open, have the credentials that they were opened with.
    born = [merged, object_store.secrets(merged, os.environ), seen, os.path.realpath(java), str(Path.cwd())]
    return hashlib.blake2b(json.dumps(born, sort_keys=True).encode(), digest_size=16).hexdigest()


def end(session: SparkSession) -> None:
    """Stop Spark and its JVM, unless it is borrowed."""
    if not borrowed.is_lent(session):
        session.stop()


def _merged(settings: dict[str, str]) -> dict[str, str]:
    folder = Path(tempfile.gettempdir()) / f"sqlrun-spark-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # Log4j splits a list of files at commas, Spark's launcher options at blanks: a URI has neither.
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    options = JAVA_OPTIONS.format(log4j=log4j, home=_quoted(str(folder)))
    master = settings.get("spark.master", SETTINGS["spark.master"])
    defaults = {**SETTINGS, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    if not master.startswith("local"):
        defaults = {k: v for k, v in {**defaults, **CLUSTER}.items() if v is not None}
    if master.startswith("yarn") and "s3" in jars.words(settings):
        # YARN hands out jars and programs by the cluster's own file system.
        del defaults["spark.hadoop.fs.defaultFS"]
    merged = {**defaults, **settings, **jars.settings(settings)}
    if master.startswith("local"):
        # Executors in this process start workers of this very Python, which has sqlrun's libraries.
        merged.setdefault(PYTHON, sys.executable)
    # Else a text such as '${spark.hadoop.fs.s3a.secret.key}' in a model would be that setting, '${env:X}' a variable.
    merged["spark.sql.variable.substitute"] = "false"
    merged["spark.driver.extraJavaOptions"] = f"{options} {settings.get('spark.driver.extraJavaOptions', '')}".strip()
    return merged


def _quoted(text: str) -> str:
    r"""Return a text quoted for Spark's launcher, as a part of one option.

    >>> print(_quoted('My "own"'))
    "My \"own\""
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _log_quietly() -> None:
    """Keep PySpark and Py4J from printing errors with stacks: the engine reports the useful part."""
    from py4j import java_gateway

    # PySpark prints every error of a query, with values.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    # Py4J logs interrupted and failed calls by the root logger, which prints them; its own logger prints nothing.
    setattr(java_gateway, "logging", java_gateway.logger)  # noqa: B010  the module doesn't export it


def _without_connect() -> None:
    """Disable Spark Connect for good: PySpark checks for it at every step, and a process has one or the other."""
    for name in [name for name in os.environ if re.fullmatch(r"SPARK_(REMOTE|API_MODE|CONNECT_\w+)", name)]:
        del os.environ[name]


@contextmanager
def _own_settings() -> Iterator[None]:
    """Hide a foreign SPARK_HOME, PYSPARK_SUBMIT_ARGS and the like from PySpark; no other variable changes."""
    foreign = re.compile(r"SPARK_(?!LOCAL_)\w+|MASTER|PYSPARK_SUBMIT_ARGS|PYSPARK_GATEWAY_\w+")
    taken = {name: os.environ.pop(name) for name in list(os.environ) if foreign.fullmatch(name)}
    try:
        yield
    finally:
        for name in [name for name in os.environ if foreign.fullmatch(name)]:
            del os.environ[name]
        os.environ.update(taken)


@contextmanager
def _launched_apart() -> Iterator[Path]:
    """Start the JVM with few variables and with its output in a file for its whole life.

    This process's own environment stays unchanged, because other threads work and print meanwhile.
    """
    from pyspark import SparkContext, java_gateway

    handle, name = tempfile.mkstemp(prefix="sqlrun-spark-", suffix=".log")
    launched = list[subprocess.Popen[Any]]()

    def launch(command: list[str], **given: Any) -> subprocess.Popen[Any]:
        # PySpark itself adds the variables that this process doesn't have.
        passed = {n: value for n, value in given["env"].items() if n not in os.environ or PASSED.fullmatch(n)}
        # In this locale Java knows only ASCII names of files; Python takes UTF-8 too (PEP 540).
        if passed.get("LC_ALL") in ("C", "POSIX"):
            passed["LC_ALL"] = "C.UTF-8"
        started = subprocess.Popen(command, stdout=handle, stderr=handle, **given | {"env": passed})
        launched.append(started)
        return started

    try:
        with _replaced(java_gateway, "Popen", launch):
            yield Path(name)
    except BaseException:
        # PySpark has deleted the folder for the JVM's port. A JVM that can't write there fails in its main thread, but
        # its gateway waits for a connection for ever, even after this process has ended. One that is connected remains
        # for the next attempt: PySpark starts no second one.
        if SparkContext._gateway is None:
            for process in launched:
                process.kill()
                process.wait()
        raise
    finally:
        os.close(handle)
        Path(name).unlink(missing_ok=True)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep PySpark from setting its own handler of SIGINT.

    That one asks the JVM to cancel its jobs, over the connection on which the interrupted call waits: while Spark still
    starts, Py4J fails and the signal is lost. Later it would interrupt a tick.
    """
    from pyspark.core import context

    with _replaced(context, "signal", SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: None)):
        yield


@contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """Replace a name that a module of PySpark's uses, without exporting it."""
    real = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, real)


def _unstarted(error: Exception, output: str) -> str:
    """Return why Spark doesn't start: Java's error, or the JVM's last output; without stacks.

    >>> _unstarted(ValueError("An error occurred while calling x.\\n: a.B: Too little memory.\\n\\tat c.D"), "")
    "Spark doesn't start: Too little memory."
    """
    raised = re.search(r"^: (?:[\w.$]+: )?(.+)", str(error), re.MULTILINE)
    if raised:
        return f"Spark doesn't start: {raised[1]}"
    first = (text_lines(str(error)) or [type(error).__name__])[0]
    return f"Spark doesn't start: {first}\n{output}".rstrip()


def _tail(file: Path, lines: int = 5) -> str:
    text = [line for line in text_lines(file.read_text(errors="replace")) if not line.lstrip().startswith("at ")]
    return "\n".join(text[-lines:])
