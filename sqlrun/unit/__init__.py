"""Unit tests of models: read, run, watched, recorded. Shell: DuckDB, in memory and cut off from files."""
