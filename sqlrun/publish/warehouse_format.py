"""The warehouse's owner and format version: `<warehouse>/_sqlrun/format`. Shell: a file.

Every command checks them before it does anything, and again when it has locked the warehouse.
"""

from __future__ import annotations

import json

from sqlrun.errors import UsageError
from sqlrun.storage.factory import storage_of
from sqlrun.version import __version__

FORMAT = 1


def file_of(warehouse: str) -> str:
    """Return the path of a warehouse's format file."""
    return f"{warehouse}/_sqlrun/format"


def require(warehouse: str, project: str) -> bool:
    """Reject a warehouse of a newer format or of another project; one without a format file has no owner yet.

    Return whether there is a format file. `project` "": a command that only reads published ticks needs no project.
    Raises: UsageError with a way out.
    """
    file = file_of(warehouse)
    try:
        text = storage_of(warehouse).text(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        mark = json.loads(text)
        form, owner, made = int(mark["format"]), str(mark["project"]), str(mark["sqlrun"])
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{file}, with this warehouse's format and project, can't be read. Restore it from a backup. "
            "If the warehouse belongs to this project and has this version, delete the file: a build writes it again."
        ) from None
    if form > FORMAT:
        raise UsageError(
            f"a newer sqlrun wrote the warehouse {warehouse} ({made}, format {form}). This one is "
            f"{__version__} and reads format {FORMAT}. Upgrade sqlrun, or set another `warehouse` in the profile."
        )
    if form < FORMAT:
        raise UsageError(
            f"the warehouse {warehouse} has format {form}, which this sqlrun, {__version__}, no longer reads. "
            f"Build into another warehouse, or use sqlrun {made}."
        )
    if project and owner != project:
        raise UsageError(
            f"the warehouse {warehouse} belongs to the project {owner}, but this project is {project}. "
            "Set another `warehouse` in the profile."
        )
    return True


def owner(warehouse: str) -> str:
    """Return the name of the project that a warehouse belongs to; "" before the first build. `require` has read it."""
    try:
        return str(json.loads(storage_of(warehouse).text(file_of(warehouse)))["project"])
    except FileNotFoundError:
        return ""


def put(warehouse: str, project: str) -> None:
    """Write the format file, durably."""
    mark = json.dumps({"format": FORMAT, "project": project, "sqlrun": __version__})
    storage_of(warehouse).put(file_of(warehouse), f"{mark}\n".encode(), synced=True)
