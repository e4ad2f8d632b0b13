"""Jinja templates to SQL, with a map from the lines of the SQL to those of the file.

Entry point: `render.attempt`. It runs templates in a sandbox and reads only files that `sqlrun.load` has read.
"""
