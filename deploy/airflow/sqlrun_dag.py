"""A tick every five minutes as an Airflow 3 DAG.

The worker needs the project's folder and a `sqlrun` on its PATH, which may live in an environment of its own. Secrets
are variables of the worker's environment.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="sqlrun_build",
    description="Land new lines, maintain and check the models, publish the tick.",
    schedule="*/5 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    # The next tick lands and computes whatever a missed one left.
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=15),
    tags=["sqlrun"],
):
    BashOperator(
        task_id="tick",
        # `exec`: Airflow's SIGTERM reaches sqlrun itself.
        bash_command="exec sqlrun build --quiet --profile cluster_duckdb",
        cwd=os.environ.get("SQLRUN_PROJECT", "/project"),
        append_env=True,
        # 75: another build is running, which is no failure. 1 and 2 are; trying again at once doesn't help.
        skip_on_exit_code=75,
        retries=0,
        execution_timeout=timedelta(minutes=10),
    )
