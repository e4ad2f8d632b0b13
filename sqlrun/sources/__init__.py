"""Kinds of sources behind `source_api.SourceReader`, and the checkpoints of landed parts.

Entry points: `factory.reader_of`, `checkpoint.landed`. The kinds are folders of JSON lines, files of other formats, and
topics of Kafka; nothing above this package knows files or topics. Doesn't import an engine, `load`, or anything that
knows of models.
"""
