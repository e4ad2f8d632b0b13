"""Pages' templates as compiled code, kept beside Python's own: compiling takes longer than filling. Shell: files.

The code lies where Python keeps that of the package (`__pycache__`, or what PYTHONPYCACHEPREFIX says), under the same
settings: who may write there may write the package.
"""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import CodeType

from sqlrun.report import html_report

DIGEST = 16


def of(template: Path) -> CodeType:
    """Give the code of a page's template, compiled before or now."""
    text = template.read_text(encoding="utf-8")
    file = _file(template, text)
    known = _read(file)
    if known is None:
        known = html_report.code(text)
        if not sys.dont_write_bytecode:
            _keep(file, known)
    return known


def _file(template: Path, text: str) -> Path:
    """Name the file by all that the code comes from: the template's text, Jinja and Python."""
    made = b"\n".join((text.encode(), html_report.compiler().encode(), importlib.util.MAGIC_NUMBER))
    beside = Path(importlib.util.cache_from_source(str(template)))
    return beside.with_name(f"{template.name}.{hashlib.blake2b(made, digest_size=8).hexdigest()}.code")


def _read(file: Path) -> CodeType | None:
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if data[:DIGEST] != _digest(data[DIGEST:]):
        return None  # torn
    found = marshal.loads(data[DIGEST:])
    return found if isinstance(found, CodeType) else None


def _keep(file: Path, code: CodeType) -> None:
    """Write the code, whole; where that can't be done, the next page takes longer and nothing else."""
    data = marshal.dumps(code)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(_digest(data) + data)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST).digest()
