"""Unit tests run on DuckDB or Spark.

Entry point: `run.run`.
"""
