"""A project with one thing of any name: a seed, a variable, a file of a source, a field, a macro, a folder.

Its mart counts sales by a shop's region, so that the expected rows follow from the files alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlrun.transpile.writer import identifier, string

# Things that can get a name.
SLOTS = (
    "seed", "seed column", "seed value", "var", "var value", "source file", "field", "struct field", "model",
    "staging model", "macro", "source", "source group", "folder of models", "profile", "env", "tag",
)  # fmt: skip
HEAD = "    description: It.\n"


@dataclass(frozen=True)
class Names:
    """The name of each thing; all others have plain names."""

    given: Mapping[str, str] = field(default_factory=dict)

    def of(self, slot: str, plain: str) -> str:
        return self.given.get(slot, plain)


def spark(name: str) -> str:
    """Return a name quoted for a query."""
    return identifier(name, "spark")


def quoted(name: str) -> str:
    """Return a name quoted for a call in Jinja, which reads backslashes as Spark does."""
    return string(name, "spark")


def text(value: str) -> str:
    """Return a value quoted for YAML, JSON and TOML."""
    return json.dumps(value, ensure_ascii=not value.isprintable())


def files(names: Names) -> dict[str, str]:
    """Return the project's files by path; a name may produce an impossible path."""
    seed, key = names.of("seed", "regions"), names.of("seed column", "shop")
    value, variable = names.of("seed value", "north"), names.of("var", "least")
    field_, inner = names.of("field", "shop"), names.of("struct field", "city")
    model, macro = names.of("model", "by_region"), names.of("macro", "large")
    group, table = names.of("source group", "g"), names.of("source", "t")
    folder, profile = names.of("folder of models", "marts"), names.of("profile", "local")
    wanted, staged = names.of("var value", "ada"), names.of("staging model", "stg")
    csv = ",".join('"' + each.replace('"', '""') + '"' for each in (key, "region")) + "\n"
    csv += "".join(f'"{shop}","' + value.replace('"', '""') + '"\n' for shop in ("ada", "bob"))
    tag = names.of("tag", "daily")
    return {
        f"seeds/{seed}.csv": csv,
        f"seeds/{seed}.yml": f"seeds:\n  - name: {text(seed)}\n{HEAD}    grain: [{text(key)}]\n    columns:\n"
        f"      - {{name: {text(key)}, data_type: string, description: It.}}\n"
        "      - {name: region, data_type: string, description: It.}\n",
        "models/_sources.yml": f"sources:\n  - name: {text(group)}\n{HEAD}    tables:\n      - name: {text(table)}\n"
        "        description: It.\n        format: json\n        path: data/orders\n        columns:\n"
        "          - {name: id, data_type: string, description: It., nulls: false}\n"
        f"          - {{name: {text(field_)}, data_type: string, description: It., nulls: false}}\n"
        f"          - {{name: place, data_type: {text(f'struct<{spark(inner)}:string>')}, description: It.}}\n",
        f"models/{staged}.sql": f"select id, {spark(field_)} as shop, place.{spark(inner)} as city\n"
        f"from {{{{ source({quoted(group)}, {quoted(table)}) }}}}\n",
        f"models/{staged}.yml": f"models:\n  - name: {text(staged)}\n{HEAD}    grain: [id]\n"
        f"    config: {{tags: [{text(tag)}]}}\n"
        "    columns:\n      - {name: id, data_type: string, description: It.}\n"
        "      - {name: shop, data_type: string, description: It., nulls: false}\n"
        "      - {name: city, data_type: string, description: It.}\n",
        f"macros/{macro}.sql": f"{{% macro {macro}(x) %}}{{{{ x }}}} is not null{{% endmacro %}}\n",
        f"models/{folder}/{model}.sql": f"select r.region, s.city, count(*) as n\n"
        f"from {{{{ ref({quoted(staged)}) }}}} as s\n"
        f"join {{{{ ref({quoted(seed)}) }}}} as r on s.shop = r.{spark(key)}\n"
        f"where {{{{ {macro}('s.city') }}}} and (s.shop <> 'x' or s.city = '{{{{ var({quoted(variable)}) }}}}')\n"
        "group by r.region, s.city\n",
        f"models/{folder}/{model}.yml": f"models:\n  - name: {text(model)}\n{HEAD}    grain: [region, city]\n"
        "    config: {partition_by: [region]}\n    columns:\n"
        "      - {name: region, data_type: string, description: It.}\n"
        "      - {name: city, data_type: string, description: It.}\n"
        "      - {name: n, data_type: bigint, description: It.}\n",
        f"profiles/{profile}.yml": "engine: duckdb\nwarehouse: warehouse\n",
        "pyproject.toml": f'[tool.sqlrun]\nname = "small"\nprofile = {text(profile)}\n\n[tool.sqlrun.vars]\n'
        f"{text(variable)} = {text(wanted)}\n",
    }


def sent(names: Names, number: int) -> str:
    """Return a line of the source."""
    shop = ("ada", "bob")[number % 2]
    line = {"id": str(number), names.of("field", "shop"): shop, "place": {names.of("struct field", "city"): "rome"}}
    return json.dumps(line) + "\n"


def write(root: Path, names: Names) -> bool:
    """Write the project and its first lines; return whether the file system takes the names."""
    try:
        for name, content in files(names).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, "utf-8", newline="")
        deliver(root, names, 0)
    except (OSError, ValueError):
        return False
    return True


def deliver(root: Path, names: Names, number: int) -> None:
    """Write a source's file with two more lines."""
    folder = root / "data" / "orders"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{names.of('source file', 'f')}{number}.jsonl"
    if os.sep in name:
        raise ValueError(name)
    (folder / name).write_text(sent(names, 2 * number) + sent(names, 2 * number + 1), "utf-8")
