"""The drawing of a mistake: carets under the word, for letters of any width, and the page of its code."""

from __future__ import annotations

import re
import unicodedata

import pytest
from click.testing import CliRunner

from sqlrun.cli.main import main
from sqlrun.commands.error_page import PAGE
from sqlrun.engines.delta.table import explained
from sqlrun.errors import WIDEST_LINE, EngineError, Place, Problem, drawn, first_line


@pytest.mark.parametrize(
    ("line", "column", "text", "marks"),
    [
        ("select prize", 8, "select prize", "       ^^^^^"),
        ("a.`two words`", 3, "a.`two words`", "  ^^^^^^^^^^^"),
        ("x + ) y", 5, "x + ) y", "    ^"),
        ("short", 6, "short", "     ^"),
        ("", 1, "", "^"),
        ("\tid\tfrom", 5, "    id    from", "          ^^^^"),
        ("'価格' as prize", 9, "'価格' as prize", "          ^^^^^"),
        ("価格 x", 1, "価格 x", "^^^^"),
        ("cafe\u0301 x", 7, "cafe\u0301 x", "     ^"),
        ("a\u200bb c", 5, "a\\u200bb c", "         ^"),
        ("a\x1bb c", 5, "a\\x1bb c", "       ^"),
    ],
)
def test_carets_are_under_the_word(line: str, column: int, text: str, marks: str) -> None:
    """Tabs, wide and combining letters, and invisible characters."""
    assert drawn(line, column) == (text, marks)


@pytest.mark.parametrize("column", [1, 500, 997, 1993])
def test_a_long_line_is_cut_around_the_place(column: int) -> None:
    """The word and its carets stay; the line is as long as a terminal is wide."""
    words = " ".join(f"w{number:02d}" for number in range(100)) + " "
    line = words * 5
    start = column - (column - 1) % 4

    text, marks = drawn(line, start)

    shown = unicodedata.normalize("NFC", text)
    assert shown[marks.index("^") : len(marks)] == line[start - 1 : start + 2]
    assert len(text) <= WIDEST_LINE + 2


def test_no_caret_where_the_column_is_not_known() -> None:
    """The line without carets."""
    text = str(Problem("SR301", Place("models/m.sql", 3, 1, exact=False), "deep", "Flatten it.", "select 1"))

    assert "^" not in text
    assert "  3 | select 1" in text


def test_each_code_has_its_page_offline() -> None:
    """`sqlrun error` shows the text of docs/errors.md for every code in it; other codes are refused."""
    listed = main.commands["error"]
    codes = re.findall(r"^\| \[(SR\d{3})\]", PAGE.read_text(), re.MULTILINE)
    for code in codes:
        done = CliRunner().invoke(listed, [code.lower()])
        assert done.exit_code == 0
        assert done.output.startswith(f"{code}  ")
        assert "what happened" in done.output and "how to fix" in done.output
    assert len(codes) > 80

    assert CliRunner().invoke(listed, ["SR999"]).exit_code == 2
    every = CliRunner().invoke(listed, []).output
    assert re.findall(r"^  (SR\d{3})  \S", every, re.MULTILINE) == codes


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("SR999", ""),
        ("SR309x", "`SR309`"),
        ("SR340", "`SR304`"),
        ("RS304", "`SR304`"),
        ("304", "`SR304`"),
        ("SR-304", "`SR304`"),
        ("SR3O4", "`SR304`"),
        ("SR3044", "`SR304`"),
        ("SR516", ""),
        ("SR", ""),
        ("nonsense", ""),
    ],
)
def test_an_unknown_code_names_the_codes_that_a_slip_makes_it(code: str, meant: str) -> None:
    """No other code: the number of a code says nothing about the numbers beside it."""
    done = CliRunner().invoke(main.commands["error"], [code])

    asked = f" Did you mean {meant}?" if meant else ""
    assert done.output == f"Error: there is no code `{code}`.{asked} `sqlrun error` without a code lists all codes.\n"
    assert done.exit_code == 2


def test_the_cause_of_a_delta_rs_error_is_on_its_line() -> None:
    """The error of delta-rs on a full disk, where a commit's file finds no space."""
    caused = "Generic error\n  \x1b[31m↳\x1b[0m Unable to copy data\n   \x1b[31m↳\x1b[0m No space left\n"

    with pytest.raises(EngineError) as caught, explained("the ledger can't be written"):
        raise OSError(caused)

    assert str(caught.value) == "the ledger can't be written: Generic error: Unable to copy data: No space left"
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(ValueError(" ")) == "ValueError"
