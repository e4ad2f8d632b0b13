"""The profiles of docs/howto/run-on-a-cluster.md are profiles, and Spark gets what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlrun.engines import factory
from sqlrun.engines.spark import remote, session
from sqlrun.load import profile

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "run-on-a-cluster.md"
BLOCKS = dict(re.findall(r"```yaml file=profiles/(\w+)\.yml\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    (tmp_path / "profiles").mkdir()
    for name, text in BLOCKS.items():
        (tmp_path / "profiles" / f"{name}.yml").write_text(text)
    for variable in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "CLUSTER_ID"):
        monkeypatch.setenv(variable, variable.lower())
    return tmp_path


def test_there_is_a_profile_for_each_cluster():
    assert set(BLOCKS) == {"cluster", "yarn", "kubernetes", "connect", "databricks"}


@pytest.mark.parametrize("name", ["cluster", "yarn", "kubernetes"])
def test_spark_starts_with_the_settings_of_a_cluster(root, name):
    given = factory.settings_of(profile.load(root, name))
    merged = session._merged(given)

    assert {key: merged[key] for key in given} == given
    assert not merged["spark.master"].startswith("local")
    assert merged["spark.sql.shuffle.partitions"] == "8" and "spark.driver.bindAddress" not in merged


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("connect", "sc://spark-connect:15002"),
        ("databricks", "sc://databricks_host:443/;token=databricks_token;x-databricks-cluster-id=cluster_id"),
    ],
)
def test_a_server_is_reached_with_settings_of_sessions_alone(root, name, url):
    given = factory.settings_of(profile.load(root, name))

    assert given == {remote.REMOTE: url}
    assert not [key for key in given if key.startswith(remote.STATIC)]
