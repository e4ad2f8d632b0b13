"""Running of unit tests on DuckDB or Spark.

Entry point: `run.run`.
"""
