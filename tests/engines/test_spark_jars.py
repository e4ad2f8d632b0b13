"""The jars and settings that a profile gives Spark, without starting it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlrun.engines import factory
from sqlrun.engines.spark import jars, object_store, session
from sqlrun.errors import EngineError
from sqlrun.project import Connection, Profile

LOCAL = {
    "spark.sqlrun.connectors": "s3",
    **object_store.settings({"endpoint": "http://127.0.0.1:9000", "region": "eu-west-1"}, {}),
}
KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hush"}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A user without an Ivy cache, and an installation with the jar of the log store."""
    monkeypatch.setenv("HOME", str(tmp_path))
    jar = tmp_path / "log-store.jar"
    jar.touch()
    connector = jars.Connector(**{f: getattr(jars.KNOWN["s3"], f) for f in jars.Connector.__slots__} | {"own": jar})
    monkeypatch.setitem(jars.KNOWN, "s3", connector)
    return tmp_path


def cached(home: Path, *coordinates: str) -> list[str]:
    """Put empty jars in the Ivy cache; return their paths."""
    folder = home / ".ivy2.5.2" / "jars"
    folder.mkdir(parents=True)
    files = [folder / f"{c.split(':')[0]}_{c.split(':')[1]}-{c.split(':')[2]}.jar" for c in coordinates]
    for file in files:
        file.touch()
    return [str(file) for file in files]


def test_jars_of_s3_are_resolved_without_the_bundle(home):
    found = jars.settings(LOCAL)

    assert found["spark.jars.packages"].split(",") == [
        jars.DELTA,
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "software.amazon.awssdk:s3:2.29.52",
        "software.amazon.awssdk:s3-transfer-manager:2.29.52",
        "software.amazon.awssdk:sts:2.29.52",
    ]
    assert found["spark.jars.excludes"] == "software.amazon.awssdk:bundle"
    assert found["spark.jars"] == str(home / "log-store.jar")


def test_jars_in_the_cache_are_taken_from_there(home):
    files = cached(home, *jars.coordinates(("s3", "kafka")))

    found = jars.settings({"spark.sqlrun.connectors": "kafka,s3", "spark.jars": "own.jar"})

    assert list(found) == ["spark.jars"]
    named = found["spark.jars"].split(",")
    assert set(named) == {*files, str(home / "log-store.jar"), "own.jar"}


def test_a_cache_that_lacks_one_jar_isnt_enough(home):
    cached(home, *jars.coordinates(("s3",))[:-1])

    assert "software.amazon.awssdk:s3:2.29.52" in jars.settings(LOCAL)["spark.jars.packages"]


def test_a_profile_that_names_the_jars_itself_gets_only_the_log_store(home):
    found = jars.settings({**LOCAL, "spark.jars": "/opt/hadoop-aws-3.4.3.jar", "spark.jars.excludes": "a:b"})

    assert found["spark.jars.packages"] == jars.DELTA
    assert found["spark.jars"] == f"{home / 'log-store.jar'},/opt/hadoop-aws-3.4.3.jar"
    assert found["spark.jars.excludes"] == "a:b"


def test_a_missing_log_store_is_reported(home):
    (home / "log-store.jar").unlink()

    with pytest.raises(EngineError, match=r"SR810 Spark can't write a warehouse in S3.*make build"):
        jars.settings(LOCAL)
    assert "spark.jars.packages" in jars.settings({})


def test_credentials_are_no_settings_of_spark(home, monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    assert object_store.secrets(LOCAL, KEYS) == {"fs.s3a.access.key": "id", "fs.s3a.secret.key": "hush"}
    assert "hush" not in str(session._merged(LOCAL))
    before = session.key_of(LOCAL)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "changed")
    assert session.key_of(LOCAL) != before, "a JVM with other credentials is lent"


@pytest.mark.parametrize(
    "settings",
    [{}, {**LOCAL, "spark.hadoop.fs.s3a.aws.credentials.provider": "org.some.Provider"}],
    ids=["disk", "own"],
)
def test_credentials_stay_where_nothing_asks_for_them(settings):
    assert object_store.secrets(settings, KEYS) == {}


def test_amazons_own_store_needs_no_endpoint():
    found = object_store.settings({}, {})

    assert set(found) == set(object_store.FIXED)
    assert found["spark.delta.logStore.s3.impl"] == "org.sqlrun.delta.ConditionalLogStore"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_executors_of_a_cluster_reach_the_driver(home, master):
    found = session._merged({"spark.master": master, **LOCAL})

    assert "spark.driver.host" not in found and "spark.driver.bindAddress" not in found
    assert "spark.pyspark.python" not in found  # the cluster's own
    assert ("spark.hadoop.fs.defaultFS" in found) == (master != "yarn")
    assert session._merged({"spark.master": master, "spark.driver.host": "me"})["spark.driver.host"] == "me"
    assert session._merged({})["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_a_profile_says_what_its_warehouse_needs(monkeypatch, engine):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    there = Profile("p", engine, "s3://lake/shop", settings={"spark.hadoop.fs.s3a.path.style.access": "false"})

    found = factory.settings_of(there)

    assert found["spark.sqlrun.connectors"] == "s3"
    assert found["spark.delta.logStore.s3.impl"] == object_store.LOG_STORE
    assert found["spark.hadoop.fs.s3a.endpoint"] == "http://store:9000"
    assert found["spark.hadoop.fs.s3a.path.style.access"] == "false"  # the profile's own
    remote = replace(there, settings={"spark.remote": "sc://host"}, connections={"kafka": Connection("broker:9092")})
    assert factory.settings_of(remote) == {"spark.remote": "sc://host", "spark.sqlrun.connectors": "kafka,s3"}
    assert factory.settings_of(Profile("p", engine, "/lake")) == {}
    assert factory.settings_of(replace(there, engine="duckdb", settings={})) == {}
