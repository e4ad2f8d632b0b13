"""Sample orders of the reference project.

Entry point: `simulate.run`. Nothing else imports it but the command line.
"""
