"""Read a project's files: models, sources, seeds, contracts, suites and profiles.

Entry points: `load.read` for a project, `profile.load` for a profile. It imports no package of the later stages.
"""
