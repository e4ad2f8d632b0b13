"""Spark that recomputes everything at each tick, from events parsed once into a Delta table."""
