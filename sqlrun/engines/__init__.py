"""The engines: DuckDB with delta-rs, Spark with Delta Lake, and the choice between them.

Entry point: `factory.engine_of`, which returns what `sqlrun.engine_api.Engine` declares.
"""
