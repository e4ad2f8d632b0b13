"""`_exposures.yml`, and every way in which it can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlrun import project_files
from sqlrun.errors import ProjectError
from sqlrun.load import load
from sqlrun.project import Serve
from sqlrun.serve.offer import offer
from tests.support import broken

MODELS = broken.models({"orders": "select 1 as id, 'a' as owner", "menu": "select 1 as dish"})
MODELS["models/orders.yml"] = broken.contract("orders", "id", "owner string", extra="    grain: [id]")
MODELS["models/menu.yml"] = broken.contract("menu", "dish")


def exposure(name: str = "page", serve: str = "", **other: str) -> str:
    values = {
        "type": "dashboard",
        "description": "It.",
        "owner": "{name: We}",
        "depends_on": "[\"ref('orders')\", \"ref('menu')\"]",
        **other,
    }
    lines = [f"  - name: {name}", *(f"    {key}: {value}" for key, value in values.items() if value)]
    return "\n".join([*lines, f"    config: {{serve: {serve}}}" if serve else ""]) + "\n"


def project(folder: Path, *listed: str) -> load.Loaded:
    files = {**MODELS, "models/_exposures.yml": "exposures:\n" + "".join(listed)}
    return project_files.read(broken.write(folder, files))


def problems(folder: Path, *listed: str) -> list[str]:
    return [f"{p.code} {p.place.line}: {p.message}" for p in project(folder, *listed).problems]


def test_an_exposure_is_read(tmp_path: Path) -> None:
    found = project(tmp_path, exposure(serve="{owned_by: owner, keys: [id, dish]}"))

    assert not found.problems
    (one,) = found.project.exposures
    assert (one.name, one.type, one.owner, one.depends_on) == ("page", "dashboard", "We", ("orders", "menu"))
    assert one.serve == Serve("owner", ("id", "dish"))


def test_an_exposure_that_serves_nothing_is_read(tmp_path: Path) -> None:
    (one,) = project(tmp_path, exposure()).project.exposures

    assert one.serve is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (exposure(depends_on="[\"ref('order')\"]"), "SR202 6: unknown model `order`"),
        (exposure(depends_on="[\"source('a', 'b')\"]"), "SR203 6: unknown source `a.b`"),
        (exposure(depends_on="[orders]"), "SR110 6: invalid `depends_on`: `orders`"),
        (exposure(type="screen"), "SR110 3: invalid `type`: `screen`"),
        (exposure(owner=""), "SR104 2: an exposure lacks `owner`"),
        (exposure(owner="We"), "SR103 5: `owner` must be a mapping"),
        (exposure(name="a-b"), "SR116 2: invalid name `a-b` for an exposure"),
        (exposure(serve="{keys: [x]}"), "SR108 7: unknown column `x` in `keys`: no table of the exposure has it"),
        (exposure(serve="{owned_by: x}"), "SR108 7: unknown column `x` in `owned_by`: no table of the exposure has it"),
        (exposure(serve="{key: id}"), "SR102 7: unknown key `key` of `serve`"),
        (exposure() + exposure(), "SR111 8: duplicate exposure `page`"),
    ],
)
def test_a_mistake_is_reported_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert problems(tmp_path, text) == [expected]


def test_exposures_make_no_model_and_no_query(tmp_path: Path) -> None:
    """The file beside models isn't read as the contract of a model `_exposures`."""
    found = project(tmp_path, exposure())

    assert sorted(model.name for model in found.project.models) == ["menu", "orders"]


def test_a_table_without_the_owners_column_is_for_operators(tmp_path: Path) -> None:
    offered = offer(project(tmp_path, exposure(serve="{owned_by: owner, keys: [id, dish]}")).project)

    assert (offered.marts["orders"].owned_by, offered.marts["orders"].keys) == ("owner", ("id",))
    assert (offered.marts["menu"].owned_by, offered.marts["menu"].keys) == ("", ("dish",))


def test_two_exposures_can_not_give_a_table_to_different_owners(tmp_path: Path) -> None:
    loaded = project(tmp_path, exposure(serve="{owned_by: owner}"), exposure("other", serve="{owned_by: id}")).project

    with pytest.raises(Exception, match="two exposures serve orders"):
        offer(loaded)


def test_a_project_without_exposures_serves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no exposure says what may be served"):
        offer(project_files.project(broken.write(tmp_path, MODELS)))


def test_a_corrupt_file_is_a_problem_without_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(ProjectError):
        project_files.project(broken.write(tmp_path, {**MODELS, "models/_exposures.yml": "exposures: [{"}))
