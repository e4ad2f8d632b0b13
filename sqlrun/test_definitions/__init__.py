"""Parsing of unit tests: YAML and SQL as typed rows, steps and expected rows.

Entry points: `files.attach`, `declared.unit_tests`.
"""
