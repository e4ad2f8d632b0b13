"""Generator of sample orders for the reference project.

Entry point: `simulate.run`. Only the command line imports it.
"""
