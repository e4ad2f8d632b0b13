"""New projects: a starter project, or one over a user's own files.

Entry point: `command.init`.
"""
