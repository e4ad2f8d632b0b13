"""Delta tables by their log: read, commit, vacuum, and the commits of other writers.

Nothing here runs SQL or knows of models.
"""
