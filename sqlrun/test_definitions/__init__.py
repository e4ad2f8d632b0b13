"""Unit tests of models as they are written: YAML and SQL as typed rows, steps and expected rows.

Entry points: `files.attach`, `declared.unit_tests`.
"""
