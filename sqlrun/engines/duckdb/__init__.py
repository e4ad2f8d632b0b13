"""The DuckDB engine: scans of Delta tables, writes, merges and landings.

Entry point: `engine.DuckDBEngine`.
"""
