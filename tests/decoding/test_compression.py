"""Compressed files are read as a whole, within a limit, or not at all."""

from __future__ import annotations

import gzip
import pickle

import pytest
import zstandard

from sqlrun.decoding.compression import TooLarge, decompress
from sqlrun.decoding.undecodable import Undecodable

TEXT = b'{"a": 1}\n' * 20
LIMIT = 10_000
PACKED = {"a.jsonl.gz": gzip.compress(TEXT), "a.csv.ZST": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)}


def test_other_files_stay_as_they_are() -> None:
    assert decompress(PACKED["a.jsonl.gz"], "a.jsonl", 1) == PACKED["a.jsonl.gz"]


@pytest.mark.parametrize("name", PACKED)
def test_several_members_are_one_file(name: str) -> None:
    assert decompress(PACKED[name], name, LIMIT) == TEXT
    assert decompress(3 * PACKED[name], name, LIMIT) == 3 * TEXT


@pytest.mark.parametrize("name", PACKED)
def test_the_limit_is_exact(name: str) -> None:
    assert decompress(PACKED[name], name, len(TEXT)) == TEXT
    with pytest.raises(TooLarge, match="more than 179 bytes when it is decompressed"):
        decompress(PACKED[name], name, len(TEXT) - 1)


@pytest.mark.parametrize("name", PACKED)
def test_half_a_file_is_an_error_at_each_length(name: str) -> None:
    for length in range(len(PACKED[name])):
        with pytest.raises(Undecodable, match=r"ends too early|is empty"):
            decompress(PACKED[name][:length], name, LIMIT)


@pytest.mark.parametrize("name", PACKED)
def test_a_changed_byte_is_an_error_or_changes_nothing(name: str) -> None:
    """A gzip's header has a time and a system, which mean nothing for its content."""
    errors = 0
    for at in range(len(PACKED[name])):
        data = bytearray(PACKED[name])
        data[at] ^= 0xFF
        try:
            assert decompress(bytes(data), name, LIMIT) == TEXT
        except Undecodable:
            errors += 1
    assert errors > len(PACKED[name]) - 8


@pytest.mark.parametrize("name", PACKED)
def test_text_after_the_end_is_an_error(name: str) -> None:
    with pytest.raises(Undecodable, match="is corrupt"):
        decompress(PACKED[name] + b"some more text", name, LIMIT)


@pytest.mark.slow
def test_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(gzip.compress(bytes(300_000_000)))
    assert len(bomb) < 2_000
    with pytest.raises(TooLarge):
        decompress(decompress(bomb, "a.gz", 1_000_000), "a.gz", 1_000_000)


def test_an_error_is_sent_between_processes() -> None:
    again = pickle.loads(pickle.dumps(TooLarge("too large")))
    assert (type(again), again.reason) == (TooLarge, "too large")
