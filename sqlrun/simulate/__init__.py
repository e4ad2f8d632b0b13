"""Sample orders of the reference project.

Entry point: `simulate.simulate`. Nothing else imports it but the command line.
"""
