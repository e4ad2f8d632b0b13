"""Files of a project as nouns: models, sources, seeds, contracts, suites and profiles, each problem with its place.

Entry points: `load.read` for a project, `profile.load` for a profile. It imports no package of the later stages.
"""
