"""The help of commands and options: an imperative or a noun, short, in the words of docs/contributing/style.md."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from sqlrun.cli.main import main
from tests.repository.readability import BANNED

LONGEST = 80  # characters of a first sentence
# How many characters `sqlrun --help` has for a command on a terminal of 80.
LISTED = 62


def commands(group: click.Group = main, path: str = "sqlrun") -> Iterator[tuple[str, click.Command]]:
    """Return all commands that help lists, groups included."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def first(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0]


def test_every_command_has_a_short_first_sentence() -> None:
    found = {path: first(command) for path, command in commands()}

    assert len(found) > 30
    assert {path for path, text in found.items() if not text.endswith(".") or len(text) > LONGEST} == set()
    assert {path for path, text in found.items() if path.count(" ") == 1 and len(text) > LISTED} == set()


def test_the_list_of_commands_cuts_no_sentence() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output.partition("Commands:")[2]

    assert listed.count("\n") > 25 and "..." not in listed


def test_every_option_has_help_without_words_of_the_list() -> None:
    texts = {path: command.help or "" for path, command in commands()}
    for path, command in [("sqlrun", main), *commands()]:
        texts |= {f"{path} {p.name}": p.help or "" for p in command.params if isinstance(p, click.Option)}

    assert [path for path, text in texts.items() if not text] == []
    assert [(path, found[0]) for path, text in texts.items() if (found := BANNED.search(text))] == []
