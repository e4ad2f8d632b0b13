"""Names of types in dbt's files that Spark SQL has under another name. Pure."""

from __future__ import annotations

from collections.abc import Mapping

TYPES: Mapping[str, str] = {
    "varchar": "string", "text": "string", "character varying": "string", "char": "string", "integer": "int",
    "int64": "bigint", "int8": "bigint", "int4": "int", "number": "decimal(38,0)", "numeric": "decimal(18,2)",
    "float": "double", "float64": "double", "float8": "double", "double precision": "double", "bool": "boolean",
    "datetime": "timestamp", "timestamp with time zone": "timestamp", "timestamptz": "timestamp",
}  # fmt: skip
