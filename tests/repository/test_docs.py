"""The documentation says what is so: generated parts are current, quotes are true, links lead somewhere, commands run.

`SQLRUN_WRITE=1 python -m pytest tests/repository/test_docs.py` writes the generated parts anew.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click
import pytest

import sqlrun
from sqlrun.cli.main import main
from sqlrun.engines.delta import table as delta_table
from sqlrun.errors import ProjectError
from sqlrun.expectations.catalogue import CATALOGUE
from sqlrun.load import contract, dashboards, exposures, profile, settings, suites
from sqlrun.project import ON_FAIL, SEVERITIES, Profile
from sqlrun.publish.ledger import Ledger
from sqlrun.report import log_lines
from sqlrun.scaffold.command import STARTER
from sqlrun.scaffold.texts import common
from sqlrun.test_definitions import declared
from sqlrun.transpile import function_catalogue
from tests.repository.test_architecture import LAYERS
from tests.support import function_cases, projects, warm
from tests.support.memory import Memory, Table, View
from tests.support.servers import topics
from tests.support.servers.kafka import Broker
from tests.support.servers.nats import Nats
from tests.support.servers.object_stores import S3
from tests.support.waiting import HUNG

ROOT = Path(__file__).parents[2]
WRITE = bool(os.environ.get("SQLRUN_WRITE"))
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks" / "notes").glob("*.md"),
        ROOT / "models" / "README.md",
        ROOT / "tests" / "README.md",
    ]
)
# What these show is run; the other pages explain.
RUN = [ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))]
# The time at which the examples of the pages play; a run moves it to the present.
SHOWN_AT = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


# The generated parts are written before anything else is read; see `held`.
@functools.cache
def read(page: Path) -> str:
    return page.read_text()


@dataclass(frozen=True)
class Block:
    """A fenced block. `info` is what stands behind the fence, `before` the line above it."""

    line: int
    info: str
    text: str
    before: str

    def attribute(self, name: str) -> str:
        """Read `name=value` from the fence's line."""
        found = re.search(rf"\b{name}=(\S+)", self.info)
        return found[1] if found else ""


def blocks(page: Path) -> Iterator[Block]:
    lines = read(page).split("\n")
    start = None
    for number, line in enumerate(lines):
        if line.startswith("```") and start is None:
            start = number
        elif line == "```" and start is not None:
            above = [text for text in lines[:start] if text.strip()]
            yield Block(start + 1, lines[start][3:], "\n".join(lines[start + 1 : number]), (above or [""])[-1])
            start = None
    assert start is None, f"{page.name}:{(start or 0) + 1} is not closed"


@functools.cache
def prose(page: Path) -> str:
    """Leave out fenced blocks and code spans."""
    text = re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


# ── generated parts ──────────────────────────────────────────────────────────────────────────────────────────────


def held(page: Path, marker: str, text: str) -> None:
    """Compare what stands between a pair of markers with what it has to be, or write it."""
    old = page.read_text()
    pattern = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)", re.DOTALL)
    assert pattern.search(old), f"{page.name} has no <!-- {marker} -->"
    new = pattern.sub(lambda found: f"{found[1]}{text.rstrip()}\n{found[2]}", old)
    if WRITE:
        page.write_text(new)
    assert new == old or WRITE, f"{page.name} is stale: SQLRUN_WRITE=1 python -m pytest tests/repository/test_docs.py"


QUOTES = '"' * 3


def first_line(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix(QUOTES).removesuffix(QUOTES)


def module_list() -> str:
    lines = []
    for folder in [ROOT / "sqlrun", *sorted(path.parent for path in (ROOT / "sqlrun").rglob("*/__init__.py"))]:
        lines += ["", f"## `{folder.relative_to(ROOT)}/`", "", "| module | what it is |", "|---|---|"]
        modules = [
            path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py" or folder.name == "sqlrun"
        ]
        lines += [f"| `{path.name}` | {first_line(path)} |" for path in modules]
    return "\n".join([*lines[1:], ""])


def package_list() -> str:
    """Lay out the packages from the top, with what each is for."""
    lines = ["| package | what it is for |", "|---|---|"]
    for floor in LAYERS:
        for name in floor.split():
            path = ROOT / "sqlrun" / name / "__init__.py"
            if path.exists():
                lines.append(f"| `{name}/` | {first_line(path)} |")
    return "\n".join(lines)


def kind_of(option: click.Parameter) -> str:
    if isinstance(option, click.Option) and option.is_flag:
        return ""
    kind = option.type
    if isinstance(kind, click.Choice):
        return "|".join(str(choice) for choice in kind.choices)
    named = {click.Path: "FOLDER", click.IntRange: "INTEGER", click.FloatRange: "NUMBER"}
    return option.metavar or next((name for known, name in named.items() if isinstance(kind, known)), "TEXT")


def option_row(option: click.Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in sorted(option.opts, key=len, reverse=True))
    word = f" `{kind_of(option)}`" if kind_of(option) else ""
    default = f" Default: `{option.default}`." if option.show_default and option.default is not None else ""
    again = " May be given more than once." if option.multiple else ""
    return f"| {flags}{word} | {option.help or ''}{default}{again} |".replace("|json", "\\|json").replace(
        "|csv", "\\|csv"
    )


def cli_list() -> str:
    lines = []
    named = {}
    for name, command in main.commands.items():
        if command.hidden:
            continue
        within = command.commands.items() if isinstance(command, click.Group) else ()
        named |= {f"{name} {inner}": each for inner, each in within}
        if not isinstance(command, click.Group) or command.invoke_without_command:
            named[name] = command
    for name, command in sorted(named.items()):
        arguments = [p.name.upper() for p in command.params if isinstance(p, click.Argument) and p.name]
        lines += [
            f"## {' '.join(['sqlrun', name, *arguments])}",
            "",
            (command.help or "").replace("\n\n", "\n").strip(),
            "",
        ]
        options = [p for p in command.params if isinstance(p, click.Option)]
        lines += ["| option | what it does |", "|---|---|", *(option_row(o) for o in options), ""]
    return "\n".join(lines)


def expectation_list() -> str:
    lines = ["| expectation | it sees | arguments |", "|---|---|---|"]
    for kind in CATALOGUE.values():
        if kind.refused:
            continue
        optional = [name for name in kind.optional if name not in ("row_condition", "condition_parser")]
        words = [f"**{name}**" for name in (*kind.columns, *kind.required)] + optional
        lines.append(f"| `{kind.name}` | {kind.scope} | {', '.join(words)} |")
    refused = [f"- `{kind.name}`: {kind.refused}." for kind in CATALOGUE.values() if kind.refused]
    return "\n".join([*lines, "", "Not run, and refused with SR702:", "", *refused])


def functions_page() -> str:
    lines = []
    for theme, names in function_catalogue.THEMES.items():
        lines += ["", f"### {theme[0].upper()}{theme[1:]}", "", "| function | runs on | |", "|---|---|---|"]
        for name in sorted(names.split()):
            why, instead = function_catalogue.SPARK_ONLY.get(name, ("", ""))
            note = f"DuckDB: {why}. {instead}".rstrip() if why else function_catalogue.NOTES.get(name, "")
            order = "By order. " if name in function_catalogue.ORDER_DEPENDENT else ""
            lines.append(f"| `{name}` | {'Spark' if why else 'both'} | {order}{note} |")
    return "\n".join(lines[1:])


def differing_operators() -> str:
    lines = ["| expression | Spark | why |", "|---|---|---|"]
    for example in function_cases.read(function_cases.CASES / "operators.case"):
        if example.arrow == "~>":
            lines.append(f"| `{example.sql}` | `{example.value}` | {function_catalogue.OPERATORS[example.subject]} |")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("file", "marker", "made"),
    [
        ("ARCHITECTURE.md", "packages", package_list),
        ("docs/reference/modules.md", "modules", module_list),
        ("docs/reference/cli.md", "commands", cli_list),
        ("docs/reference/yaml.md", "expectations", expectation_list),
        ("docs/functions.md", "functions", functions_page),
        ("docs/functions.md", "operators", differing_operators),
    ],
)
def test_what_is_generated_is_current(file: str, marker: str, made: object) -> None:
    """The code is the source of these lists."""
    held(ROOT / file, marker, made())  # type: ignore[operator]


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "keys",
    [
        contract.MODEL_KEYS,
        contract.SEED_KEYS,
        contract.COLUMN_KEYS,
        contract.CONFIG_KEYS,
        contract.CHOICES["at_worst"],
        settings.KEYS,
        profile.KEYS,
        declared.TEST_KEYS,
        exposures.KEYS,
        exposures.CONFIG_KEYS,
        exposures.SERVE_KEYS,
        dashboards.KEYS,
        dashboards.ENTITY_KEYS,
        dashboards.WINDOWS_KEYS,
        dashboards.MEASURE_KEYS,
        dashboards.RATIO_KEYS,
        dashboards.LIST_KEYS,
        dashboards.ALL_KEYS,
        dashboards.TREND_KEYS,
        dashboards.TIMED_KEYS,
        suites.SUITE_KEYS,
        suites.EXPECTATION_KEYS,
        SEVERITIES,
        ON_FAIL,
    ],
)
def test_every_yaml_key_is_documented(keys: tuple[str, ...]) -> None:
    """A key that can be written is in docs/reference/yaml.md."""
    text = (ROOT / "docs" / "reference" / "yaml.md").read_text()

    assert [key for key in keys if f"`{key}`" not in text] == []


STRATEGIES = re.findall(
    r"^\| `((?:select|with) .*?)` \| (\w+) \| (SR\d+) \|",
    (ROOT / "docs" / "reference" / "sql.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.slow
@pytest.mark.parametrize(("query", "strategy", "code"), STRATEGIES, ids=[query for query, _, _ in STRATEGIES])
def test_each_query_of_the_reference_is_kept_as_it_says(query: str, strategy: str, code: str) -> None:
    """The tables of docs/reference/sql.md are compiled, each row."""
    columns = (("k", "int"), ("a", "int"), ("b", "int"), ("at", "timestamp"))
    tables = [
        Table("t", columns, ("k",)),
        Table("u", columns, ("k",)),
        Table("log", columns, ("k",), grows=True),
    ]
    sql = query.replace("\\|", "|")
    try:
        stage = (
            Memory(tables, [View("v", sql, ("k",) if " k" in sql.partition(" from ")[0] else ("a",))]).compiled[-1].own
        )
        found = (stage.strategy, stage.reason.code)
    except ProjectError as error:
        found = ("error", error.problems[0].code)

    assert found == (strategy, code)


def test_there_are_queries_in_the_reference() -> None:
    """An empty list would prove nothing."""
    assert len(STRATEGIES) > 30


def test_every_rule_has_its_paragraph() -> None:
    """Each `.case` file is named in docs/concepts/incremental.md, and no other."""
    named = set(re.findall(r"(\w+\.case)\b", (ROOT / "docs" / "concepts" / "incremental.md").read_text()))

    assert named == {path.name for path in (ROOT / "tests" / "cases" / "incremental").glob("*.case")}


@pytest.mark.slow
def test_the_readme_counts_the_project_rightly() -> None:
    """The line `Found ...` of the README is the one that a build prints."""
    opening = log_lines.opening(projects.prepared(projects.ROOT), Profile("local", "spark", "", 2, {}))

    assert next(line.text for line in opening if line.text.startswith("Found")) in (ROOT / "README.md").read_text()


def test_the_readme_and_the_architecture_stay_short() -> None:
    assert len(read(ROOT / "README.md").splitlines()) <= 150
    assert (ROOT / "ARCHITECTURE.md").stat().st_size <= 15 * 1024


def test_the_readme_s_commands_name_no_date() -> None:
    """Time only goes forward: a fixed `--as-of` fails after the builds above it, which tick at the present."""
    dated = [b.text for b in blocks(ROOT / "README.md") if b.info == "bash" and re.search(r"20\d\d-\d\d-\d\d", b.text)]

    assert dated == []


# Each of these looks at all pages and lists what it found: one test a page takes longer to report than to run.


def shown(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_there_are_pages() -> None:
    """An empty list would prove nothing."""
    assert len(PAGES) > 100
    assert len(RUN) > 10


def test_quotes_are_true() -> None:
    """A block marked `from=FILE` stands in that file, line by line."""
    untrue = [
        f"{shown(page)}:{block.line} is not in {source}"
        for page in PAGES
        for block in blocks(page)
        if (source := block.attribute("from")) and block.text not in (ROOT / source).read_text()
    ]

    assert untrue == []


@functools.cache
def anchors(page: Path) -> set[str]:
    found = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def test_every_link_leads_somewhere() -> None:
    """Links are relative, to files and headings that exist."""
    astray = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if target.startswith(("https://", "http://")):
                continue
            name, _, anchor = target.partition("#")
            goal = (page.parent / name).resolve() if name else page
            if not goal.exists() or (anchor and anchor not in anchors(goal)):
                astray.append(f"{shown(page)}: {target}")

    assert astray == []


def test_every_code_exists() -> None:
    """A code that a page mentions is explained in docs/errors.md."""
    known = set(re.findall(r"SR\d{3}", (ROOT / "docs" / "errors.md").read_text()))
    unknown = {shown(page): found for page in PAGES if (found := set(re.findall(r"SR\d{3}\b", read(page))) - known)}

    assert unknown == {}


def test_every_file_named_exists() -> None:
    """Paths into tests/, sqlrun/, models/ and the like name files, unless the page or `sqlrun init` makes them."""
    rooms = "tests|sqlrun|models|macros|seeds|expectations|profiles|docs|benchmarks"
    missing = []
    for page in PAGES:
        named = set(re.findall(rf"`((?:{rooms})/[\w./-]*\.(?:py|md|sql|yml|csv|case))`", read(page)))
        made = {block.attribute("file") for block in blocks(page)} | set(common(""))
        missing += [
            f"{shown(page)}: {name}"
            for name in sorted(named - made)
            if not any((folder / name).exists() for folder in (ROOT, page.parent, STARTER))
        ]

    assert missing == []


def test_a_page_is_about_no_machine() -> None:
    """No absolute path of somebody's disk."""
    machine = re.compile(r"(?<![\w.])/(work|home|root|tmp|Users|mnt|opt)/|localhost|[A-Z]:\\\\")

    assert {shown(page): found[0] for page in PAGES if (found := machine.search(read(page)))} == {}


def test_words_are_used_as_the_glossary_says() -> None:
    """Rows with a weight are changes; Delta is a lake. And nothing is called easy."""
    words = re.compile(r"(?i)\b(?:simply|just(?! before)|obviously|easily)\b|(?-i:\bdeltas?\b(?!-rs|-spark))")
    misused = {}
    for page in PAGES:
        text = re.sub(r"<!-- (\w+) -->.*<!-- /\1 -->|\]\([^)]*\)", "", prose(page), flags=re.DOTALL)
        misused |= {shown(page): found} if (found := words.findall(text)) else {}

    assert misused == {}


def test_every_page_can_be_reached() -> None:
    """From the README, by links alone."""
    seen, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose(page))
        left += [goal for t in targets if "://" not in t and (goal := (page.parent / t).resolve()).is_file()]

    assert {page for page in PAGES if "docs" in page.parts} - seen == set()


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────


def shell(text: str, folder: Path, commands: Path, **more: str) -> subprocess.CompletedProcess[str]:
    places = (str(commands), str(Path(sys.executable).parent), os.environ["PATH"])
    environment = {**os.environ, "PATH": os.pathsep.join(places), **more}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=HUNG, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a `sqlrun` that has everything imported."""
    with warm.commands(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


@pytest.fixture(scope="module")
def built(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with a day of orders, built on DuckDB, which is its default here."""
    folder = tmp_path_factory.mktemp("docs") / "project"
    folder.mkdir()
    for room in ("models", "macros", "seeds", "expectations", "profiles", "tests/fixtures"):
        shutil.copytree(ROOT / room, folder / room)
    text = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text.replace('profile = "local"', 'profile = "duckdb"'))
    done = shell("sqlrun simulate --hours 30\nsqlrun build --skip-tests", folder, commands)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def moved(text: str) -> str:
    """Move the times of an example from the page's present to this one."""
    now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    by = now - SHOWN_AT

    def shift(found: re.Match[str]) -> str:
        return f"{datetime.strptime(found[0], '%Y-%m-%dT%H:%M') + by:%Y-%m-%dT%H:%M}"

    return re.sub(r"2026-11-\d\dT\d\d:\d\d", shift, text)


# The pages whose commands need a server.
FROM_KAFKA, FROM_NATS, FROM_KINESIS = "land-from-kafka.md", "forward-from-nats.md", "forward-from-kinesis.md"
ON_A_STORE = "use-an-object-store.md"
# The pages whose commands run in `make test`; the others take minutes together, and run in `make test-all` alone.
FIRST = {"README.md", "add-a-model.md"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] * (page.name not in FIRST), id=page.name)
        for page in RUN
        if page.name not in (FROM_KAFKA, FROM_NATS, FROM_KINESIS, ON_A_STORE)
    ],
)
def test_commands_run(page: Path, built: Path, commands: Path, tmp_path: Path) -> None:
    """Blocks of `bash` run one after the other, on DuckDB; blocks with `file=NAME` are written first.

    A line `<!-- not run: why -->` above a block leaves it out, `<!-- exits N -->` says how it ends.
    """
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    run_page(page, folder, commands)


@pytest.mark.long
@pytest.mark.slow
def test_commands_run_from_an_empty_broker(built: Path, commands: Path, broker: Broker, tmp_path: Path) -> None:
    """The page about Kafka ends with a published tick that has all messages, and a dashboard of it."""
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    before = topics.topic_id(broker, "orders") if "orders" in broker.admin.list_topics(timeout=20).topics else ""
    assert before == ""
    run_page(ROOT / "docs" / "howto" / FROM_KAFKA, folder, commands, KAFKA_BOOTSTRAP=broker.address)

    topics.settle(broker, "orders")
    sent = sum(len(topics.messages(broker, "orders", number)) for number in range(4))
    ledger = Ledger(str(folder / "warehouse" / "kafka"), "restaurant_dashboard").read()
    assert ledger.published is not None
    state = ledger.published.tables["stg_order_events"]
    rows = sqlrun.published("restaurant_windows", str(folder / "warehouse" / "kafka")).num_rows
    assert rows > 100
    assert sent == landed(folder / "warehouse" / "kafka" / state.path) > 1000


@pytest.mark.long
@pytest.mark.slow
def test_commands_run_on_a_store(built: Path, commands: Path, s3: S3, tmp_path: Path) -> None:
    """The tables are in the bucket afterwards, and readable from there."""
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    run_page(ROOT / "docs" / "howto" / ON_A_STORE, folder, commands, LAKE_ENDPOINT=s3.endpoint)
    assert sqlrun.published("restaurant_windows", "s3://lake/restaurants").num_rows > 100


@pytest.mark.long
@pytest.mark.slow
def test_commands_run_from_nats(built: Path, commands: Path, nats_server: Nats, tmp_path: Path) -> None:
    """Each message of a stream is one line, also if the program died after it had sent them."""
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    page = ROOT / "docs" / "howto" / FROM_NATS
    nats_server.publish("RATINGS", [b'{"rating_id":"a1",\n"stars":5}', b"{", b'{"rating_id":"a2","stars":4}'])
    run_page(page, folder, commands, NATS_URL=nats_server.url)
    plan = json.loads((folder / "forward_nats.json").read_text())
    assert (plan["sent"], plan["until"]) == (3, 3)

    (folder / "forward_nats.json").write_text(json.dumps({**plan, "sent": 0}))
    nats_server.publish("RATINGS", [b'{"rating_id":"a3","stars":3}'])
    run_page(page, folder, commands, NATS_URL=nats_server.url)
    found = sqlrun.published("stg_ratings", str(folder / "warehouse" / "duckdb")).to_pydict()
    assert sorted(zip(found["rating_id"], found["stars"], strict=True)) == [("a1", 5), ("a2", 4), ("a3", 3)]
    assert len(list((folder / "data" / "ratings").glob("*.jsonl"))) == 2


@pytest.mark.long
@pytest.mark.slow
def test_commands_run_from_kinesis(
    built: Path, commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record of a stream is one line, also if the program died after it had sent them."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }  # fmt: skip
    for name, value in access.items():
        monkeypatch.setenv(name, value)
    try:
        kinesis = boto3.client("kinesis")
        kinesis.create_stream(StreamName="ratings", ShardCount=1)
        folder = tmp_path / "project"
        shutil.copytree(built, folder)
        page, plan = ROOT / "docs" / "howto" / FROM_KINESIS, folder / "forward_kinesis.json"

        def send(*records: bytes) -> None:
            for record in records:
                kinesis.put_record(StreamName="ratings", Data=record, PartitionKey="k")

        send(b'{"rating_id":"a1",\n"stars":5}', b"{", b'{"rating_id":"a2","stars":4}')
        run_page(page, folder, commands, **access)
        ((shard, sent),) = json.loads(plan.read_text()).items()
        assert sent["sent"] == sent["until"] != ""

        plan.write_text(json.dumps({shard: {**sent, "sent": ""}}))
        send(b'{"rating_id":"a3","stars":3}')
        run_page(page, folder, commands, **access)
    finally:
        server.stop()
    found = sqlrun.published("stg_ratings", str(folder / "warehouse" / "duckdb")).to_pydict()
    assert sorted(zip(found["rating_id"], found["stars"], strict=True)) == [("a1", 5), ("a2", 4), ("a3", 3)]
    assert len(list((folder / "data" / "ratings").glob("*.jsonl"))) == 2


def landed(table: Path) -> int:
    """Return the number of rows of a table, quarantined ones too, that say where they were in the topic."""
    origins = delta_table.open_table(str(table)).to_pyarrow_table(columns=["_file"])["_file"].to_pylist()
    assert len(set(origins)) == len(origins) and all(origin.startswith("orders/") for origin in origins)
    return len(origins)


def run_page(page: Path, folder: Path, commands: Path, **more: str) -> None:
    """Run a page's blocks in a project's folder, or one below it (`in=FOLDER`), with more environment variables."""
    for block in blocks(page):
        if block.attribute("file"):
            file = folder / block.attribute("file")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text + "\n")
        if not block.info.startswith(("bash", "console")) or block.before.startswith("<!-- not run"):
            continue
        ends = re.match(r"<!-- exits (\d+)", block.before)

        done = shell(moved(block.text), folder / block.attribute("in"), commands, **more)

        assert done.returncode == int(ends[1] if ends else 0), f"{page.name}:{block.line}\n{done.stdout}{done.stderr}"


def test_nothing_is_left_unrun_without_a_reason() -> None:
    """The marker says why."""
    for page in PAGES:
        for block in blocks(page):
            if block.before.startswith("<!-- not run"):
                assert re.fullmatch(r"<!-- not run: .{5,} -->", block.before), f"{page.name}:{block.line}"


def test_times_move_together() -> None:
    """An example of five minutes stays one of five minutes."""
    first, last = moved("2026-11-21T12:05 2026-11-21T12:10").split()

    assert datetime.fromisoformat(last) - datetime.fromisoformat(first) == timedelta(minutes=5)
