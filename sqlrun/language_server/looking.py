"""One look at a project with the texts of an editor: problems, nouns and strategies. Shell: the project, its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlrun import pipeline, project_files
from sqlrun.errors import Place, Problem, ProjectError, SqlrunError, first_line
from sqlrun.language_server.findings import Finding, all_of, turned
from sqlrun.language_server.index import Noun, Origins, Template, nouns_of, templates_of
from sqlrun.language_server.origins import Traced
from sqlrun.language_server.refusal import RefusedError
from sqlrun.language_server.remembered import Memory
from sqlrun.language_server.rename import Renames, renamed
from sqlrun.language_server.rename_changes import Cursor
from sqlrun.load import folder, profile, settings
from sqlrun.pipeline import Prepared
from sqlrun.runtime.disk_cache import Cache


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after a look: findings, nouns by key, macros, and what columns of open models are made of."""

    findings: tuple[Finding, ...]
    nouns: Mapping[str, Noun]
    templates: tuple[Template, ...]
    origins: Origins = field(default_factory=dict)


@dataclass(slots=True)
class Looker:
    """A project that is looked at again after each edit. It writes its cache only for a project as it is on disk."""

    root: Path
    memory: Memory = field(default_factory=Memory)
    nouns: Mapping[str, Noun] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()
    saved: Mapping[str, Noun] = field(default_factory=dict)
    cache: Cache | None = None
    origins: Traced = field(default_factory=Traced)

    def look(self, texts: Mapping[str, str]) -> Look:
        """Return what is known of the project with some texts, by their names in it, instead of its files."""
        unsaved = {name: text for name, text in texts.items() if not _is_saved(self.root / name, text)}
        if unsaved and not self.saved:
            self._look({})
        return self._look(unsaved, list(texts))

    def rename(self, texts: Mapping[str, str], cursor: Cursor, new: str) -> Renames:
        """Return the changes of files that rename the column at a cursor.

        Raises: RefusedError, with one sentence that says why it can't be renamed.
        """
        unsaved = {name: text for name, text in texts.items() if not _is_saved(self.root / name, text)}

        def again(new_texts: Mapping[str, str]) -> Prepared:
            with folder.unsaved(self.root, {**unsaved, **new_texts}):
                return self._prepared()

        with folder.unsaved(self.root, unsaved):
            try:
                prepared = self._prepared()
            except ProjectError as error:
                problem = error.problems[0]
                message = f"the project has a problem, which has to be fixed first: {problem.place}: {problem.message}"
                raise RefusedError(message) from error
            return renamed(prepared, cursor, new, again)

    def _prepared(self) -> Prepared:
        cache = self._opened(is_saved=False)
        return pipeline.of_loaded(project_files.read(self.root, cache), cache, self.memory.attempts)

    def _look(self, unsaved: Mapping[str, str], opened: Sequence[str] = ()) -> Look:
        try:
            with folder.unsaved(self.root, unsaved):
                findings = self._read(opened, is_saved=not unsaved)
        except ProjectError as error:
            findings = all_of(error.problems, error.following)
        except (SqlrunError, OSError) as error:
            findings = all_of([Problem("", Place(settings.FILE), first_line(error))], 0)
        return Look((*findings, *turned(self.saved, self.nouns)), self.nouns, self.templates, self.origins.texts)

    def _read(self, opened: Sequence[str], *, is_saved: bool) -> list[Finding]:
        cache = self._opened(is_saved=is_saved)
        loaded = project_files.read(self.root, cache)
        prepared: Prepared | None = None
        findings: list[Finding] = []
        try:
            prepared = pipeline.of_loaded(loaded, cache, self.memory.attempts)
            self.memory.learn(loaded, prepared.queries)
            self.origins.trace(prepared, opened)
            target = profile.load(self.root, loaded.project.profile)
            # To bind 1,000 models takes a minute, so only models that are open are bound.
            if names := [model.name for model in loaded.project.models if model.file in opened]:
                pipeline.require_engine(prepared, target, cache, names)
        except ProjectError as error:
            findings = all_of(error.problems, error.following)
        self.nouns = nouns_of(loaded.project, None if prepared is None else prepared.workspace.models, self.nouns)
        self.templates = templates_of((*loaded.project.macros, *loaded.project.built_in))
        if is_saved:
            self.saved = self.nouns
        return findings

    def _opened(self, *, is_saved: bool) -> Cache:
        """Return the cache for a look; only that of saved files may be written."""
        if self.cache is None:
            self.cache = Cache.of(self.root) or Cache(None)
        if is_saved:
            return self.cache.again()
        return self.cache.unwritten()


def _is_saved(file: Path, text: str) -> bool:
    try:
        return file.read_bytes() == text.encode("utf-8", "replace")
    except OSError:
        return False
