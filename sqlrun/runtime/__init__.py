"""Files, processes and rows in memory: everything that knows nothing of sqlrun.

Modules here import the standard library, PyArrow and `sqlrun.errors` alone.
"""
