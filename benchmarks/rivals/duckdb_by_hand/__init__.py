"""DuckDB with a hand-written incremental job."""
