"""Spark SQL as DuckDB's SQL with the same answers, and the dialect both are written in.

Entry points: `writer.expression`, `writer.identifier`.
"""
