"""One described project, written in the forms of sqlrun, dbt and SQLMesh. Shell: files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.described import Column, Described, Source, World

# The same bodies for all three; dbt and sqlrun use them as Jinja macros, SQLMesh gets the expanded text.
MACROS = {
    "money": ("amount", "cast({amount} as decimal(18, 2))"),
    "day_of": ("time", "cast({time} as date)"),
    "hour_of": ("time", "date_trunc('hour', {time})"),
    "quarter_of": ("time", "date_trunc('quarter', {time})"),
    "newest_of": (
        "key, version, tie",
        "qualify row_number() over (\n    partition by {key}\n    order by {version} desc, {tie} desc\n) = 1",
    ),
}
REGIONS = "region,country\nnorth,Norland\neast,Estland\nsouth,Sudland\nwest,Westland\nunknown,none\n"
LARGE = 60


def sqlrun(world: World, root: Path) -> None:
    """Write pyproject.toml, models/, macros/, seeds/, expectations/ and profiles/."""
    settings = f'[tool.sqlrun]\nname = "many"\nprofile = "duckdb"\n\n[tool.sqlrun.vars]\nlarge_order = {LARGE}\n'
    write(root / "pyproject.toml", settings)
    write(root / "profiles" / "duckdb.yml", "engine: duckdb\nwarehouse: warehouse\nthreads: 2\n")
    macros(root / "macros")
    write(root / "seeds" / "regions.csv", REGIONS)
    seed = "seeds:\n  - name: regions\n    description: The regions with their countries.\n    grain: [region]\n"
    seed += "    columns:\n" + "".join(
        column(Column(n, "string", f"The {n}."), own=True) for n in ("region", "country")
    )
    write(root / "seeds" / "regions.yml", seed)
    for group, sources in by_group(world.sources).items():
        tables = "".join(table(source, own=True) for source in sources)
        text = f"sources:\n  - name: {group}\n    description: The streams of {group}.\n    tables:\n{tables}"
        write(root / "models" / "staging" / group / "_sources.yml", text)
        for source in sources:
            (root / "data" / source.group / source.name).mkdir(parents=True, exist_ok=True)
    for model in world.models:
        write(root / "models" / model.folder / f"{model.name}.sql", model.sql)
        write(root / "models" / model.folder / f"{model.name}.yml", contract(model, own=True))
        if model.checks:
            listed = "\n".join(expectation(*check) for check in model.checks)
            write(root / "expectations" / model.folder / f"{model.name}.yml", f"expectations:\n{listed}")


def dbt(world: World, root: Path) -> None:
    """Write dbt_project.yml, profiles.yml, models/, macros/ and seeds/; the data is in a DuckDB file."""
    settings = f"name: many\nversion: '1.0'\nprofile: many\nvars: {{large_order: {LARGE}}}\n"
    write(root / "dbt_project.yml", settings + "flags: {send_anonymous_usage_stats: false}\n")
    profile = "many: {target: dev, outputs: {dev: {type: duckdb, path: many.duckdb, threads: 2}}}\n"
    write(root / "profiles.yml", profile)
    macros(root / "macros")
    write(root / "seeds" / "regions.csv", REGIONS)
    for group, sources in by_group(world.sources).items():
        tables = "".join(table(source, own=False) for source in sources)
        text = f"sources:\n  - name: {group}\n    description: The streams of {group}.\n    tables:\n{tables}"
        write(root / "models" / "staging" / group / "_sources.yml", text)
    for model in world.models:
        write(root / "models" / model.folder / f"{model.name}.sql", model.sql)
        write(root / "models" / model.folder / f"{model.name}.yml", contract(model, own=False))


def sqlmesh(world: World, root: Path) -> None:
    """Write config.yaml, models/ with MODEL blocks, external_models.yaml and a seed model."""
    config = "gateways: {local: {connection: {type: duckdb}}}\nmodel_defaults: {dialect: databricks}\n"
    write(root / "config.yaml", config + "disable_anonymized_analytics: true\n")
    write(root / "seeds" / "regions.csv", REGIONS)
    seed = (
        "MODEL (name main.regions, kind SEED (path '../seeds/regions.csv'), columns (region string, country string));\n"
    )
    write(root / "models" / "regions.sql", seed)
    external = []
    for source in world.sources:
        listed = "".join(f"    {c.name}: {c.type}\n" for c in source.columns)
        external.append(f"- name: {source.group}.{source.name}\n  columns:\n{listed}")
    write(root / "external_models.yaml", "".join(external))
    for model in world.models:
        write(root / "models" / model.folder / f"{model.name}.sql", mesh_model(model))


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def macros(folder: Path) -> None:
    for name, (arguments, text) in MACROS.items():
        body = re.sub(r"\{(\w+)\}", r"{{ \1 }}", text)
        doc = f"{{#- What `{name}` stands for, in one place. -#}}\n"
        write(folder / f"{name}.sql", f"{doc}{{%- macro {name}({arguments}) -%}}\n{body}\n{{%- endmacro -%}}\n")


def by_group(sources: list[Source]) -> dict[str, list[Source]]:
    found: dict[str, list[Source]] = {}
    for source in sources:
        found.setdefault(source.group, []).append(source)
    return found


def table(source: Source, *, own: bool) -> str:
    columns = "".join(column(c, own=own, indent="          ") for c in source.columns)
    place = f"        format: json\n        path: data/{source.group}/{source.name}\n" if own else ""
    head = f"      - name: {source.name}\n        description: {source.text}\n"
    return f"{head}{place}        columns:\n{columns}"


def column(of: Column, *, own: bool, held: bool = True, indent: str = "      ") -> str:
    lines = [f"- name: {of.name}", f"  data_type: {of.type}", f"  description: {json.dumps(of.text)}"]
    if of.filled and held:
        lines += ["  nulls: false"] if own else ["  data_tests: [not_null]"]
    return "".join(f"{indent}{line}\n" for line in lines)


def contract(model: Described, *, own: bool) -> str:
    lines = ["models:", f"  - name: {model.name}", f"    description: {json.dumps(model.text)}"]
    config = {"materialized": "view" if model.view else "table"}
    lines += [f"    config: {{{', '.join([f'{k}: {v}' for k, v in config.items()])}, tags: {list(model.tags)}}}"]
    kept = own and not model.view  # no tick evaluates the contract of a view
    if kept:
        lines += [f"    grain: [{', '.join(model.grain)}]"] + (["    repeats: true"] if model.repeats else [])
    lines.append("    columns:")
    text = "\n".join(lines) + "\n" + "".join(column(c, own=own, held=kept or not own) for c in model.columns)
    if model.example is None:
        return text
    read, row, gives = model.example
    rows = f"        rows:\n          - {json.dumps(row)}\n"
    text += f"\nunit_tests:\n  - name: {model.name}_keeps_a_good_order\n    model: {model.name}\n"
    text += f"    given:\n      - input: ref('{read}')\n{rows}    expect:\n      rows:\n        - {json.dumps(gives)}\n"
    return text


def expectation(kind: str, name: str, value: object) -> str:
    types = {
        "above": ("expect_column_values_to_be_between", "min_value"),
        "among": ("expect_column_values_to_be_in_set", "value_set"),
        "shape": ("expect_column_values_to_match_regex", "regex"),
    }
    long, argument = types[kind]
    return (
        f"  - type: {long}\n    kwargs:\n      column: {name}\n      {argument}: {json.dumps(value)}\n"
        f"    severity: warning\n    on_fail: warn\n    description: What {name} can't be other than.\n"
    )


def mesh_model(model: Described) -> str:
    """Return a MODEL block with the text that Jinja would expand to."""
    comments = ", ".join(f"{c.name} = {quoted(c.text)}" for c in model.columns)
    kind = "VIEW" if model.view else "FULL"
    head = f"MODEL (\n  name main.{model.name},\n  kind {kind},\n  description {quoted(model.text)},\n"
    columns = ", ".join(f"{c.name} {c.type}" for c in model.columns)
    audits = [f"not_null(columns := ({', '.join(c.name for c in model.columns if c.filled)}))"]
    if not model.repeats:
        audits.append(f"unique_combination_of_columns(columns := ({', '.join(model.grain)}))")
    head += f"  columns ({columns}),\n  column_descriptions ({comments}),\n  audits ({', '.join(audits)})\n);\n\n"
    return head + rendered(model.sql)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def rendered(sql: str) -> str:
    """Return the text with the described models' few calls expanded."""
    sql = re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"main.\1", sql)
    sql = re.sub(r"\{\{ source\('(\w+)', '(\w+)'\) \}\}", r"\1.\2", sql)
    sql = sql.replace("{{ var('large_order') }}", str(LARGE))
    return re.sub(r"\{\{ (\w+)\((.*?)\) \}\}", _call, sql)


def _call(found: re.Match[str]) -> str:
    arguments, text = MACROS[found[1]]
    names = [name.strip() for name in arguments.split(",")]
    values = re.findall(r"'([^']*)'", found[2])
    return re.sub(r"\{(\w+)\}", lambda hole: values[names.index(hole[1])], text)


WRITERS: dict[str, Callable[[World, Path], None]] = {"sqlrun": sqlrun, "dbt": dbt, "sqlmesh": sqlmesh}
