"""Preparing with the cache equals preparing without it, whatever was edited and whatever the file has."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.errors import ProjectError
from sqlrun.incremental.compile import Compiled
from sqlrun.incremental.stages import Stage
from sqlrun.parse.parse import Query
from sqlrun.pipeline import Prepared, prepare
from sqlrun.runtime import disk_cache as caching
from sqlrun.runtime.disk_cache import FILE, Cache
from sqlrun.runtime.serialize import NotStored, form, nothing
from tests.load.test_broken_files import copied, mutated
from tests.support.marks import rest_slow

# A small project with every kind of dependency: macro, var, source, seed, view, landing, unit test.
SMALL = {
    "pyproject.toml": '[tool.sqlrun]\nname = "shop"\n\n[tool.sqlrun.vars]\nleast = 3\n',
    "macros/cents.sql": "{% macro cents(x) %}cast({{ x }} * 100 as bigint){% endmacro %}\n",
    "seeds/dishes.csv": "dish,price\npizza,9.50\n",
    "seeds/dishes.yml": """seeds:
  - {name: dishes, description: d, grain: [dish], columns: [
      {name: dish, data_type: string, description: d, nulls: false},
      {name: price, data_type: "decimal(10,2)", description: d}]}
""",
    "models/_sources.yml": """sources:
  - {name: shop, description: d, tables: [{name: sold, description: d, format: json, path: data, columns: [
      {name: id, data_type: string, description: d, nulls: false},
      {name: dish, data_type: string, description: d, nulls: false},
      {name: n, data_type: int, description: d, nulls: false}]}]}
""",
    "models/landed.sql": "select id, dish, n from {{ source('shop', 'sold') }}\n",
    "models/landed.yml": """models:
  - {name: landed, description: d, grain: [id], columns: [
      {name: id, data_type: string, description: d, nulls: false},
      {name: dish, data_type: string, description: d, nulls: false},
      {name: n, data_type: int, description: d, nulls: false}]}
""",
    "models/many.sql": "select * from {{ ref('landed') }} where n >= {{ var('least') }}\n",
    "models/many.yml": """models:
  - {name: many, description: d, config: {materialized: view}, columns: [
      {name: id, data_type: string, description: d},
      {name: dish, data_type: string, description: d},
      {name: n, data_type: int, description: d}]}
unit_tests:
  - name: few_are_left_out
    model: many
    given: [{input: ref('landed'), rows: [{id: a, n: 2}]}]
    expect: {rows: []}
""",
    "models/sums.sql": """select many.dish, {{ cents('sum(many.n * dishes.price)') }} as cents
from {{ ref('many') }} inner join {{ ref('dishes') }} on many.dish = dishes.dish
group by many.dish
""",
    "models/sums.yml": """models:
  - {name: sums, description: d, grain: [dish], columns: [
      {name: dish, data_type: string, description: d, nulls: false},
      {name: cents, data_type: bigint, description: d}]}
""",
    "models/best.sql": "select dish, cents from {{ ref('sums') }} where cents > 1000\n",
    "models/best.yml": """models:
  - {name: best, description: d, grain: [dish], columns: [
      {name: dish, data_type: string, description: d, nulls: false},
      {name: cents, data_type: bigint, description: d}]}
""",
    "expectations/landed.yml": """expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: n, min_value: 1}
    severity: critical
    on_fail: quarantine
    description: Nobody orders nothing.
""",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name, text in SMALL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def outcome(make: Callable[[], Prepared]) -> Any:
    """Return everything that was prepared as comparable values, or the errors."""
    try:
        prepared = make()
    except ProjectError as error:
        return str(error)
    stages = [
        [repr(getattr(stage, field.name)) for field in fields(stage)] + [repr(stage.public), repr(stage.is_hidden)]
        for model in prepared.workspace.models
        for stage in model.stages
    ]
    queries = [(q.rendered, q.columns, q.canonical, q.tree.sql("databricks", pretty=True)) for q in prepared.queries]
    models = [(m.name, m.is_view, m.source, m.query.name) for m in prepared.workspace.models]
    workspace = prepared.workspace
    return (
        prepared.project,
        prepared.graph,
        queries,
        models,
        stages,
        workspace.rules,
        workspace.suites,
        workspace.prints,
    )


def checked(root: Path) -> dict[str, int]:
    """Prepare with and without the cache; return the number of misses by kind."""
    cache = Cache.of(root)
    assert cache is not None
    found = outcome(lambda: prepare(root, cache))

    assert found == outcome(lambda: prepare(root))
    return cache.made


def edit(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


@pytest.mark.slow
def test_nothing_is_done_twice(shop: Path) -> None:
    """The first run makes everything, the second one nothing."""
    assert checked(shop)["model"] == 4
    assert checked(shop) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new", "compiled"),
    [
        ("models/best.sql", "1000", "2000", 1),  # it has no readers
        ("models/sums.sql", "select many", "-- why\nselect many", 1),
        ("models/landed.sql", "id, dish", "id,  dish", 1),  # maintained as before: its readers aren't compiled again
        ("models/landed.yml", "description: d, grain", "description: e, grain", 0),
        ("models/landed.yml", "models:\n", "# why\nmodels:\n", 0),  # places move
        ("models/many.sql", ">= ", "> ", 2),  # a view is inlined into its readers
        ("models/many.yml", "materialized: view", "materialized: table", 3),
        ("models/sums.yml", "{name: cents, data_type: bigint", "{name: cents, nulls: false, data_type: bigint", 2),
        ("models/sums.yml", "data_type: bigint", 'data_type: "decimal(20,0)"', 2),
        ("seeds/dishes.csv", "9.50", "9.00", 0),
        ("seeds/dishes.yml", "{name: price,", "{name: price, nulls: false,", 2),
        ("models/_sources.yml", "path: data", "path: other", 1),
        ("models/_sources.yml", "{name: n, data_type: int, description: d, nulls: false}",
         "{name: n, data_type: int, description: d}", 1),
        ("expectations/landed.yml", "min_value: 1", "min_value: 2", 0),
        ("pyproject.toml", "least = 3", "least = 4", 4),
        ("macros/cents.sql", "100", "1000", 1),
    ],
)  # fmt: skip
def test_only_what_depends_on_an_edit_is_compiled_again(
    shop: Path, name: str, old: str, new: str, compiled: int
) -> None:
    """The model of the edited file, and those affected by the difference."""
    checked(shop)
    edit(shop, name, old, new)

    assert checked(shop).get("model", 0) == compiled
    assert checked(shop) == {}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    rest_slow(
        [
            ("models/landed.yml", "{name: n, data_type: int", "{name: number, data_type: int"),
            ("models/landed.sql", "n from", "m from"),
            ("models/many.yml", "model: many", "model: meny"),
            ("models/many.yml", "id: a", "ident: a"),
            ("models/many.sql", "landed", "lended"),
            ("macros/cents.sql", "endmacro", "endmicro"),
            ("pyproject.toml", "least", "most"),
            ("expectations/landed.yml", "column: n", "column: m"),
            ("models/_sources.yml", "name: sold", "name: bought"),
            ("seeds/dishes.yml", "name: price", "name: cost"),
        ],
        fast=2,
    ),
)
@pytest.mark.slow
def test_mistakes_are_reported_as_without_a_cache(shop: Path, name: str, old: str, new: str) -> None:
    """A mistake that an edit causes elsewhere is found too; after an undo, nothing of it is left."""
    checked(shop)
    edit(shop, name, old, new)

    assert isinstance(outcome(lambda: prepare(shop, Cache.of(shop))), str)
    checked(shop)
    (shop / name).write_text(SMALL[name])
    assert checked(shop) == {}


@pytest.mark.slow
def test_readers_notice_a_deleted_or_restored_model(shop: Path) -> None:
    """Readers of a deleted model are wrong, and right again when it is back."""
    checked(shop)
    moved = shop / "landed.sql"
    (shop / "models" / "landed.sql").rename(moved)
    assert "SR105" in outcome(lambda: prepare(shop, Cache.of(shop)))
    checked(shop)
    moved.rename(shop / "models" / "landed.sql")
    assert checked(shop) == {}

    (shop / "models" / "new.sql").write_text("select dish from {{ ref('sums') }}\n")
    contract = "models: [{name: new, description: d, grain: [dish], columns: [{name: dish, data_type: string, "
    (shop / "models" / "new.yml").write_text(contract + "description: d, nulls: false}]}]\n")
    assert checked(shop)["model"] == 1


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_scrambled_projects_give_the_same_result_with_the_cache(tmp_path: Path, seed: int) -> None:
    """Files of the reference project truncated, swapped and scrambled, one after the other, with one cache for all."""
    dice = random.Random(seed)
    files = copied(tmp_path)
    texts = {file: file.read_text() for file in files}
    checked(tmp_path)
    for _ in range(8):
        chosen = dice.sample(files, dice.randint(1, 2))
        for file in chosen:
            file.write_text(mutated(texts[file], dice), encoding="utf-8")
        checked(tmp_path)
        for file in dice.sample(chosen, dice.randint(0, len(chosen))):
            file.write_text(texts[file])
    for file, text in texts.items():
        file.write_text(text)
    checked(tmp_path)


def forged(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the entries and sign them as sqlrun would."""
    data = file.read_bytes()
    body = change(data[data.index(b"\n") + 1 :])
    file.write_bytes(caching._head(body) + body)


@pytest.mark.slow
def test_a_corrupt_file_is_ignored(shop: Path) -> None:
    """Truncated, with a changed byte, empty, of another program: everything is made again."""
    checked(shop)
    whole = (shop / FILE).read_bytes()
    dice = random.Random(1)
    for _ in range(30):
        at = dice.randrange(len(whole))
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[at:], whole + b"x\n"):
            (shop / FILE).write_bytes(data)
            assert Cache(shop / FILE)._known == {}
    for data in (b"", b"\n", b"\x80\x04\x95", b"{}", b"[" * 100_000):
        (shop / FILE).write_bytes(data)
        assert checked(shop)["model"] == 4


@pytest.mark.slow
def test_entries_of_another_shape_are_ignored(shop: Path) -> None:
    """Signed nonsense may cause a wrong result, like an edited model, but no crash, and none of it is executed."""
    checked(shop)
    whole = (shop / FILE).read_bytes()
    nonsense = [b"", b"null", b"1", b'"x"', b"[]", b"{}", b"[1,2,3,4]", b"[[],[],[],[]]", b"{", b"[" * 100_000,
                b'["x","y",[["z"]],"w"]', b"\xff", b"NaN", b"[null,null,null,null,null]"]  # fmt: skip
    for junk in nonsense:
        (shop / FILE).write_bytes(whole)
        forged(shop / FILE, lambda body, junk=junk: b"".join(  # type: ignore[misc]
            line.split(b" ")[0] + b" " + junk + b"\n" for line in body.splitlines()))  # fmt: skip
        outcome(lambda: prepare(shop, Cache.of(shop)))


def scrambled(value: Any, dice: random.Random) -> Any:
    """Put a value of another kind somewhere into a JSON value."""
    if isinstance(value, list) and value and dice.random() < 0.9:
        at = dice.randrange(len(value))
        return [*value[:at], scrambled(value[at], dice), *value[at + 1 :]]
    return dice.choice([kind for kind in (None, 1, "x", [], {}, 1.5, True, [[]]) if type(kind) is not type(value)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_values_of_another_kind_are_ignored(shop: Path, seed: int) -> None:
    """One value of each entry has another kind, deep inside."""
    checked(shop)
    dice = random.Random(seed)

    def change(body: bytes) -> bytes:
        lines = []
        for line in body.splitlines():
            key, _, text = line.partition(b" ")
            lines.append(key + b" " + json.dumps(scrambled(json.loads(text), dice)).encode() + b"\n")
        return b"".join(lines)

    forged(shop / FILE, change)
    outcome(lambda: prepare(shop, Cache.of(shop)))


@pytest.mark.slow
def test_another_program_starts_from_scratch(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries by another sqlrun, sqlglot or Python are ignored."""
    checked(shop)
    monkeypatch.setattr(caching, "_version", lambda name: f"another {name}")

    assert checked(shop)["model"] == 4


@pytest.mark.slow
def test_without_a_writable_folder_nothing_is_cached(shop: Path) -> None:
    """Without a folder for it: slower, nothing else."""
    (shop / "target").write_text("in the way")

    assert checked(shop)["model"] == 4
    assert checked(shop)["model"] == 4


@pytest.mark.slow
def test_no_cache_skips_the_file_and_clean_deletes_it(shop: Path) -> None:
    """`--no-cache` neither reads nor writes the file; `clean` deletes it."""
    runner = CliRunner()
    assert runner.invoke(main, ["--project-dir", str(shop), "--no-cache", "ls"]).exit_code == 0
    assert not (shop / FILE).exists()
    assert runner.invoke(main, ["--project-dir", str(shop), "ls"]).exit_code == 0
    assert (shop / FILE).exists()
    assert runner.invoke(main, ["--project-dir", str(shop), "clean"]).exit_code == 0
    assert not (shop / FILE).exists()


@pytest.mark.slow
def test_a_stored_value_can_be_replaced(shop: Path) -> None:
    """`replace` makes a whole value of one whose parts were not read yet."""
    checked(shop)
    prepared = prepare(shop, Cache.of(shop))
    plain = prepare(shop)
    for stored, made in zip(prepared.workspace.models, plain.workspace.models, strict=True):
        for kept, stage in zip(stored.stages, made.stages, strict=True):
            assert repr(replace(kept, name="x").node) == repr(stage.node)
            assert replace(kept, name="x").is_hidden
            with pytest.raises(AttributeError):
                kept.nothing  # noqa: B018


@pytest.mark.slow
def test_a_stored_value_has_its_own_class(shop: Path) -> None:
    """A field is unset until its first access; stored properties need no fields."""
    checked(shop)
    prepared, plain = prepare(shop, Cache.of(shop)), prepare(shop)
    for stored, made in zip(prepared.workspace.models, plain.workspace.models, strict=True):
        assert (type(stored), type(stored.query)) == (Compiled, Query)
        assert [type(stage) for stage in stored.stages] == [Stage] * len(made.stages)
        assert (stored.query.kept("canonical"), made.query.kept("canonical")) == (made.query.canonical, None)
        assert [stage.public for stage in stored.stages] == [stage.public for stage in made.stages]
        with pytest.raises(AttributeError):
            object.__getattribute__(stored.query, "tree")
        assert stored.query.tree == made.query.tree == object.__getattribute__(stored.query, "tree")
        with pytest.raises(AttributeError):
            made.query.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_forms_reject_other_types() -> None:
    """A form reads what it wrote, and nothing else."""
    pairs: list[tuple[Any, Any, list[Any]]] = [
        (int, 1, [True, "1", None, 1.0]),
        (tuple[str, ...], ("a", "b"), ["ab", [1], {}, None]),
        (tuple[str, int], ("a", 1), [["a"], ["a", 1, 2], [1, "a"]]),
        (str | None, None, ["a", [1], []]),
        (str | None, "a", []),
        (dict[str, object], {"a": [1, (2.5, None)]}, [[], {"a": {"b": 1}}, {"a": {"decimal": 1}}]),
    ]
    for hint, value, others in pairs:
        shape = form(hint)
        assert shape is not None
        assert shape.read(json.loads(json.dumps(shape.write(value))), nothing) == value
        for other in others:
            with pytest.raises(NotStored):
                shape.read(other, nothing)
    assert form(set[int]) is None


@pytest.mark.slow
def test_the_folder_is_left_as_it_was(shop: Path) -> None:
    """No temporary file stays behind."""
    checked(shop)

    assert [file.name for file in (shop / "target").iterdir()] == [Path(FILE).name]
    shutil.rmtree(shop / "target")
