"""Files, processes and rows in memory: modules that don't depend on sqlrun's concepts.

They import only the standard library, PyArrow and `sqlrun.errors`.
"""
