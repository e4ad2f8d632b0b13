"""Unit tests run, shown, recorded and written.

Entry point: `command.run_unit_tests`. `run/` runs them, `output/` shows what differs, `author/` writes new ones.
"""
