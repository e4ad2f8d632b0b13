"""One module per command: what it does, without the command line.

It imports everything below, and no click.
"""
