"""Spark that computes everything anew at each tick, from events that it has parsed once and keeps in a Delta table."""
