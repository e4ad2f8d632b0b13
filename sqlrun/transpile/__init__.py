"""Spark SQL to DuckDB's SQL with the same results, and the dialect that models are read in.

Entry points: `writer.expression`, `writer.identifier`.
"""
