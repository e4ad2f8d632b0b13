"""The command line: options, arguments and help.

Entry point: `main.main`. Each command imports what it runs when it is run, so that `sqlrun --help` loads nothing.
"""
