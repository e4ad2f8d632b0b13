"""Running, reporting, recording and scaffolding of unit tests.

Entry point: `command.run_unit_tests`. `run/` runs tests, `output/` prints differences, `author/` writes new tests.
"""
