"""A table of `show` fits the terminal, and says what it cut and left out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sqlrun.runtime.fitted_table import cut, fitted
from sqlrun.runtime.text_table import table, width

NAMES = ("window_hours", "restaurant_id", "restaurant_name", "n_orders", "total_sales", "top_dishes")
DISHES = [{"dish_rank": n, "dish_id": f"d{n:03}", "dish_name": "Spaghetti 寿司"} for n in range(9)]
ROWS = [(24, f"r{n:04}", "Golden Lantern" * n, 405, Decimal("12743.90"), DISHES) for n in range(1, 4)]


@pytest.mark.parametrize("columns", [40, 41, 60, 79, 80, 100, 120, 160, 239, 240])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    found = fitted(NAMES, ROWS, columns)

    assert max(map(width, found.lines)) <= columns
    assert len(found.lines) == len(ROWS) + 2
    # What isn't whole is named, in order.
    whole = [name for name in NAMES if name not in (*found.cut, *found.left_out)]
    assert all(name in found.lines[0] for name in whole)
    assert NAMES[len(NAMES) - len(found.left_out) :] == found.left_out
    assert bool(found.notes(columns)) is bool(found.cut or found.left_out)


def test_without_a_terminal_nothing_is_cut() -> None:
    found = fitted(NAMES, ROWS)

    assert found.lines == table(NAMES, ROWS) and not found.notes(0)
    assert fitted(NAMES, ROWS, 2_000).lines == found.lines


def test_what_is_cut_and_left_out_is_said() -> None:
    assert fitted(NAMES, ROWS, 40).notes(40) == [
        "Cut at … to fit 40 characters: restaurant_id, restaurant_name.",
        "Left out to fit 40 characters: n_orders, total_sales, top_dishes.",
        "`--output json` prints everything.",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_number_is_never_cut(columns: int) -> None:
    names = ("id", "text", "number")
    rows = [("a" * 50, "b" * 50, 123456789012345678901234567)]
    found = fitted(names, rows, columns)

    assert "number" in found.left_out or "123456789012345678901234567" in found.lines[2]


def test_a_column_that_people_copy_is_never_cut() -> None:
    found = fitted(("id", "text"), [("0123456789abcdef", "x" * 99)], 40, whole=("id",))

    assert found.lines[2].startswith("0123456789abcdef  xxx") and found.cut == ("text",)


def test_one_wide_column_is_cut_to_the_terminal() -> None:
    found = fitted(("payload",), [("x" * 500,)], 40)

    assert found.lines[2] == "x" * 39 + "…" and found.cut == ("payload",)
    assert fitted(("n",), [(10**60,)], 40).cut == ("n",)


def test_an_encoding_without_the_sign_gets_dots() -> None:
    assert cut("restaurant", 6, "...") == "res..."
    assert fitted(("payload",), [("x" * 500,)], 40, "...").lines[2] == "x" * 37 + "..."


def test_no_rows_and_no_columns() -> None:
    assert fitted(("id",), [], 40).lines == ["id", "--"]
    assert fitted(NAMES, [], 40).left_out == ("n_orders", "total_sales", "top_dishes")
