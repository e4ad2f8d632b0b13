"""A page's template is compiled once; what is kept of it is used only where it is that template's, whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

from sqlrun.report import html_report, template_cache

TEXT = "<p>{{ name }}</p>\n"


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    made = tmp_path / "page.html.j2"
    made.write_text(TEXT)
    return made


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that are compiled."""
    done: list[str] = []
    real = html_report.code

    def code(text: str) -> CodeType:
        done.append(text)
        return real(text)

    monkeypatch.setattr(html_report, "code", code)
    return done


def filled(template: Path) -> str:
    return str(html_report.compiled(template_cache.of(template)).render(name="<a>"))


def kept(template: Path) -> list[Path]:
    return sorted((template.parent / "__pycache__").iterdir())


def test_a_template_is_compiled_once(template: Path, count: list[str]) -> None:
    assert filled(template) == filled(template) == "<p>&lt;a&gt;</p>"
    assert count == [TEXT]
    assert len(kept(template)) == 1


def test_another_text_is_another_template(template: Path, count: list[str]) -> None:
    filled(template)
    template.write_text("<b>{{ name }}</b>")
    assert filled(template) == "<b>&lt;a&gt;</b>"
    assert len(count) == 2


def test_another_jinja_compiles_anew(template: Path, count: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    filled(template)
    monkeypatch.setattr(html_report, "compiler", lambda: "jinja2 0.0")
    filled(template)
    assert len(count) == 2


@pytest.mark.parametrize(
    "tear", [lambda data: data[:-5], lambda data: b"", lambda data: b"x" * 40], ids=["cut", "empty", "foreign"]
)
def test_torn_code_is_no_code(template: Path, count: list[str], tear: Callable[[bytes], bytes]) -> None:
    filled(template)
    (file,) = kept(template)
    file.write_bytes(tear(file.read_bytes()))
    assert filled(template) == "<p>&lt;a&gt;</p>"
    assert len(count) == 2
    filled(template)
    assert len(count) == 2


def test_nothing_is_kept_where_python_keeps_nothing(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    filled(template)
    assert not (template.parent / "__pycache__").exists()


def test_a_folder_that_cannot_be_written_costs_nothing_else(template: Path, count: list[str]) -> None:
    (template.parent / "__pycache__").write_text("a file is in its place")
    assert filled(template) == filled(template)
    assert len(count) == 2
