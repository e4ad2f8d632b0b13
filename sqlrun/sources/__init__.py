"""Kinds of sources behind `source_api.SourceReader`, and the checkpoints of landed parts.

Entry points: `factory.reader_of`, `checkpoint.landed`. A folder of JSON lines is the only kind; nothing above this
package knows that it consists of files. Doesn't import an engine, `load`, or anything that knows of models.
"""
