"""The Spark engine: the session, views of tables, writes, merges and landings.

Entry point: `engine.SparkEngine`.
"""
