"""DuckDB that computes everything anew at each tick, from events that it has parsed once and keeps in its file."""
