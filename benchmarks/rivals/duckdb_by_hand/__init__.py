"""DuckDB with an incremental job written by hand."""
