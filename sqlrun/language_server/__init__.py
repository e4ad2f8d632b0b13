"""The language server for editors.

Entry point: `command.serve`. The server answers from an index in memory; a process of its own, `worker`, reads and
checks the project with the texts that aren't saved, and sends the server what changed.
"""
