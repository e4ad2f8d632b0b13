"""100 unit tests: sqlrun's, with steps, beside dbt-duckdb's, and on a warm Spark. Shell: processes, package installs.

python -m benchmarks.unit_tests
python -m benchmarks.unit_tests --tests 20 --contenders sqlrun,watch

The queries and rows are the same. sqlrun's tests play two ticks each, by the change query and by the whole one; dbt's
unit tests have no steps, so each is one query. Commands are whole processes: sqlrun cold (without target/), dbt with
its input loaded and its project parsed before. For Spark only the tests' seconds count, not the JVM's start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.compile import DBT, ROOT, timed
from benchmarks.environments import installed, version_of

MODELS = 10
QUERY = """with orders as (
    select * from {{{{ ref('orders') }}}}
    where not is_cancelled and amount > {number}
)

select
    guest_id,
    count(*) as n_orders,
    cast(sum(amount) as decimal(18, 2)) as total
from orders
group by guest_id
"""
SEED = "order_id,guest_id,amount,is_cancelled\no1,g1,9.50,false\n"
COLUMNS = {"order_id": "string", "guest_id": "string", "amount": "decimal(10,2)", "is_cancelled": "boolean"}
TOTALS = {"guest_id": "string", "n_orders": "bigint", "total": "decimal(18,2)"}
QUIET = 60.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tests", type=int, default=100)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--contenders", default="sqlrun,watch,dbt,spark")
    options.add_argument("--folder", type=Path, default=ROOT / "target" / "benchmarks" / "unit_tests")
    chosen = options.parse_args()
    measure = {"sqlrun": sqlrun, "watch": watch, "dbt": dbt, "spark": spark}
    lines: list[tuple[str, float | None, str]] = []
    for name in chosen.contenders.split(","):
        folder = chosen.folder / ("dbt" if name == "dbt" else "sqlrun")
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, chosen.tests, rival=name == "dbt")
        lines.append(measure[name](folder, chosen.tests, chosen.repeat))
        print(f"{lines[-1][0]}: {lines[-1][1]}", file=sys.stderr, flush=True)
    first = next((seconds for label, seconds, _ in lines if seconds and label.startswith("sqlrun test,")), None)
    print(f"{chosen.tests} unit tests of {MODELS} models; medians of {chosen.repeat}, {os.cpu_count()} cores\n")
    print("| | seconds | times `sqlrun test` | what it does |\n|---|---|---|---|")
    for label, seconds, what in lines:
        ratio = f"{seconds / first:.2f}" if seconds and first else "-"
        print(f"| {label} | {'-' if seconds is None else f'{seconds:.3f}'} | {ratio} | {what} |")


def sqlrun(folder: Path, tests: int, repeat: int) -> tuple[str, float | None, str]:
    found = []
    for _ in range(repeat):
        shutil.rmtree(folder / "target", ignore_errors=True)
        found.append(timed((sys.executable, "-m", "sqlrun", "test", "--quiet"), folder)[0])
    return "sqlrun test, cold", statistics.median(found), "each test: two ticks, incremental and whole"


def watch(folder: Path, tests: int, repeat: int) -> tuple[str, float | None, str]:
    """Return the time from a save to the last line of the tests that it started."""
    label = "sqlrun test --watch, a save"
    if "--watch" not in help_of(folder):
        return label, None, "there is no --watch"
    file = folder / "models" / "totals_0.sql"
    text = file.read_text()
    command = (sys.executable, "-u", "-m", "sqlrun", "test", "--watch", "--select", "totals_0::test_0")
    process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    timer = threading.Timer(QUIET, process.terminate)
    timer.start()
    try:
        done = (time.perf_counter() for line in process.stdout if "TOTAL=" in line)
        next(done)
        found = []
        for number in range(repeat + 1):
            time.sleep(0.5)
            started = time.perf_counter()
            file.write_text(text.replace("amount > 0", f"amount > 0.{number + 1}"))
            found.append(next(done) - started)
        return label, statistics.median(found[1:]), "one test, from the save to its last line"
    except StopIteration:
        return label, None, "nothing was run after a save"
    finally:
        timer.cancel()
        process.terminate()
        process.wait()
        file.write_text(text)


def dbt(folder: Path, tests: int, repeat: int) -> tuple[str, float | None, str]:
    python = installed(folder.parent / "venv-dbt", DBT)
    command = str(python.parent / "dbt")
    timed((command, "--quiet", "build", "--empty", "--exclude", "test_type:unit"), folder)
    found = [timed((command, "--quiet", "test", "--select", "test_type:unit"), folder)[0] for _ in range(repeat)]
    label = f"dbt-core {version_of(python, 'dbt-core')}, dbt-duckdb {version_of(python, 'dbt-duckdb')}"
    return label, statistics.median(found), "each test: one query, no steps"


def spark(folder: Path, tests: int, repeat: int) -> tuple[str, float | None, str]:
    label = "sqlrun test --engine spark, warm"
    if "--engine" not in help_of(folder):
        return label, None, "there is no --engine"
    command = (sys.executable, "-m", "sqlrun", "test", "--engine", "spark", "--json")
    shown = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    seconds = sorted(one["seconds"] for one in json.loads(shown.stdout))
    # The first tests warm up the JVM.
    return label, statistics.median(seconds) * tests, f"{tests} times the median test"


def help_of(folder: Path) -> str:
    command = (sys.executable, "-m", "sqlrun", "test", "--help")
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True).stdout


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def write(folder: Path, tests: int, *, rival: bool) -> None:
    """Write the project, in sqlrun's or dbt's form."""
    texts = {f"models/totals_{n}.sql": QUERY.format(number=n) for n in range(MODELS)}
    texts["seeds/orders.csv"] = SEED
    for number in range(MODELS):
        own = range(number, tests, MODELS)
        entry = contract(f"totals_{number}", TOTALS, "models") if not rival else f"models:\n  - name: totals_{number}\n"
        entry += "unit_tests:\n" + "".join(unit_test(n, number, rival=rival) for n in own) if own else ""
        texts[f"models/totals_{number}.yml"] = entry
    if rival:
        kinds = "\n".join(f"      {name}: {kind.replace('string', 'varchar')}" for name, kind in COLUMNS.items())
        texts["dbt_project.yml"] = (
            f"name: bench\nversion: '1.0'\nprofile: bench\nseeds:\n  bench:\n    +column_types:\n{kinds}\n"
        )
        texts["profiles.yml"] = (
            "bench:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: bench.duckdb, threads: 2}\n"
        )
    else:
        texts["seeds/orders.yml"] = contract("orders", COLUMNS, "seeds")
        texts["pyproject.toml"] = '[tool.sqlrun]\nname = "bench"\n'
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def contract(name: str, columns: dict[str, str], key: str) -> str:
    lines = [
        f"{key}:",
        f"  - name: {name}",
        "    description: Rows.",
        f"    grain: [{next(iter(columns))}]",
        "    columns:",
    ]
    lines += [f'      - {{name: {c}, data_type: "{kind}", description: It.}}' for c, kind in columns.items()]
    return "\n".join(lines) + "\n"


def unit_test(number: int, model: int, *, rival: bool) -> str:
    """Return a test of ten rows; sqlrun's adds a tick with a new and a cancelled row."""
    low = model + 1
    rows = [f"{{order_id: o{n}, guest_id: g{n % 2}, amount: {low + n}.50, is_cancelled: false}}" for n in range(10)]
    totals = [sum(low + n + 0.5 for n in range(10) if n % 2 == guest) for guest in (0, 1)]
    given = "\n".join(f"          - {row}" for row in rows)
    expect = "\n".join(f"        - {{guest_id: g{g}, n_orders: 5, total: {totals[g]:.2f}}}" for g in (0, 1))
    text = f"""  - name: test_{number}
    model: totals_{model}
    given:
      - input: ref('orders')
        rows:
{given}
    expect:
      rows:
{expect}
"""
    if rival:
        return text
    return (
        text
        + f"""    then:
      - changes:
          - input: ref('orders')
            came: [{{order_id: o10, guest_id: g2, amount: 99.00, is_cancelled: false}}]
            updated: [{{order_id: o0, is_cancelled: true}}]
        expect:
          rows:
            - {{guest_id: g0, n_orders: 4, total: {totals[0] - low - 0.5:.2f}}}
            - {{guest_id: g1, n_orders: 5, total: {totals[1]:.2f}}}
            - {{guest_id: g2, n_orders: 1, total: 99.00}}
"""
    )


if __name__ == "__main__":
    main()
