"""The extras of sqlrun, the packages that each installs, and which of these are missing. Shell: the environment."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Literal

from sqlrun.errors import UsageError

Extra = Literal["spark", "gx", "serve", "kafka", "formats", "store", "connect", "lsp", "format"]
# For each extra of pyproject.toml, its packages: the module that Python imports, and the name that pip installs.
EXTRAS: Mapping[Extra, Mapping[str, str]] = MappingProxyType(
    {
        "spark": {"pyspark": "pyspark", "delta": "delta-spark", "pandas": "pandas"},
        "gx": {"great_expectations": "great-expectations", "pandas": "pandas"},
        "serve": {
            "starlette": "starlette",
            "uvicorn": "uvicorn",
            "httptools": "httptools",
            "uvloop": "uvloop",
            "jwt": "pyjwt",
            "prometheus_client": "prometheus-client",
            "brotli": "brotli",
        },
        "kafka": {"confluent_kafka": "confluent-kafka"},
        "formats": {"fastavro": "fastavro", "google.protobuf": "protobuf"},
        "store": {"obstore": "obstore", "fsspec": "fsspec"},
        "connect": {"grpc": "grpcio", "grpc_status": "grpcio-status", "zstandard": "zstandard"},
        "lsp": {"pygls": "pygls", "lsprotocol": "lsprotocol"},
        "format": {"sqlfmt": "shandy-sqlfmt"},
    }
)


@functools.cache  # each tick asks
def missing(extra: Extra) -> tuple[str, ...]:
    """Return the packages of an extra that aren't installed; nothing is imported to find out."""
    return tuple(package for module, package in EXTRAS[extra].items() if not _is_there(module))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # the package around it is missing
        return False


def install(extra: Extra) -> str:
    """Return the sentence with the command that installs an extra."""
    return f"Install it: pip install 'sqlrun[{extra}]'"


def needs(what: str, extra: Extra) -> str:
    """Return a sentence without its full stop: what needs which missing package; "" if none is missing."""
    packages = missing(extra)
    return f"{what} needs the package {packages[0]}, which isn't installed" if packages else ""


def require(what: str, extra: Extra) -> None:
    """Check that the packages of an extra are installed; `what` needs them.

    Raises: UsageError (SR133) with the command that installs them.
    """
    if problem := needs(what, extra):
        raise UsageError(f"SR133 {problem}. {install(extra)}")
