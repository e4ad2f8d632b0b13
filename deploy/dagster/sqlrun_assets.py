"""A project's tables as Dagster assets. One run of `sqlrun build` maintains, checks and publishes all of them.

Dagster's process needs the project's folder and a `sqlrun` on its PATH. Secrets are variables of its environment.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import dagster as dg

PROJECT = os.environ.get("SQLRUN_PROJECT", "/project")
PROFILE = "cluster_duckdb"
# Seconds that a build gets after SIGTERM: longer than the profile's `stop_grace`.
GRACE = 150
PUBLISHED, ANOTHER_BUILD = 0, 75


def listed() -> list[dict[str, str]]:
    """Return the project's nodes in the order of its graph."""
    shown = subprocess.run(
        ["sqlrun", "ls", "--output", "json"], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    nodes: list[dict[str, str]] = json.loads(shown.stdout)
    return nodes


def spec_of(node: dict[str, str]) -> dg.AssetSpec:
    """Return a node as an asset; a source `orders.events` is the asset `orders/events`."""
    reads = [dg.AssetKey(name.split(".")) for name in node["reads"].split(", ") if name]
    return dg.AssetSpec(node["name"], deps=reads, kinds={"sqlrun"}, metadata={"file": node["file"]}, skippable=True)


# In the order of the graph, in which Dagster wants the results too.
SPECS = [spec_of(node) for node in listed() if node["kind"] != "source"]


@dg.multi_asset(name="tick", specs=SPECS)
def tables(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Run a tick; if another build is running, skip all tables."""
    build = subprocess.Popen(["sqlrun", "build", "--quiet", "--profile", PROFILE], cwd=PROJECT)
    try:
        code = build.wait()
    finally:
        # A run that is cancelled stops its build, which has time to finish the tick.
        if build.poll() is None:
            build.terminate()
            build.wait(GRACE)
    if code == ANOTHER_BUILD:
        context.log.info("Another build is running.")
        return
    if code != PUBLISHED:
        raise dg.Failure(
            f"The tick was not published (exit code {code}). Readers see the one before.", allow_retries=False
        )
    for spec in SPECS:
        if spec.key in context.selected_asset_keys:
            yield dg.MaterializeResult(asset_key=spec.key)


every_five_minutes = dg.ScheduleDefinition(
    name="every_five_minutes",
    job=dg.define_asset_job("build", selection=[tables]),
    cron_schedule="*/5 * * * *",
)
definitions = dg.Definitions(assets=[tables], schedules=[every_five_minutes])
