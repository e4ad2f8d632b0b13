"""DuckDB that recomputes everything at each tick, from events parsed once into its file."""
