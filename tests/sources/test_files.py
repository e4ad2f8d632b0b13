"""Files of every format land exactly once, a broken one stops no other, and every record is accounted for."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from sqlrun.engines.duckdb.engine import DuckDBEngine
from tests.support import file_site
from tests.support.file_site import Folder
from tests.support.orders_in_formats import FORMATS, parquet

ENGINE = DuckDBEngine()
ORDERS = [{"id": "o1", "shop": "s", "n": 1}, {"id": "o2", "shop": "s", "n": 2}, {"id": "ö3", "shop": "t", "n": None}]
HEADER = "id,shop,n\n"


def made(tmp_path: Path, declared: str, **more: str) -> Folder:
    return file_site.made(tmp_path / "project", ENGINE, declared, **more)


def test_csv(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a/b/first.csv", HEADER + 'o1,s,1\no2,"s",x\no3,s\n\no4,s,"4"\n')
    one.put("second.csv.gz", gzip.compress((HEADER + "o5,t,5\n").encode()))
    one.lands()

    assert [(row["id"], row["shop"], row["n"]) for row in one.rows()] == [
        ("o1", "s", 1),
        ("o4", "s", 4),
        ("o5", "t", 5),
    ]
    assert one.held() == [
        ("CSV: 2 fields instead of 3", "o3,s"), ("n: not of type int", '{"id":"o2","shop":"s","n":"x"}')
    ]  # fmt: skip
    assert one.counts() == {"read": 5, "landed": 3, "quarantined": 2, "dropped": 0, "unexplained": 0}


def test_a_record_that_cant_be_read_keeps_its_reason_through_a_replay(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a.csv", HEADER + 'o1,s,1\no2,s\no3,s,x\n"{""id"": 1}\n')
    one.lands()
    before = one.held()
    asked = one.command("quarantine", "replay", "stg", "--all")
    assert asked.exit_code == 0, asked.output
    note = one.lands()

    assert one.held() == before
    assert [reason for reason, _ in before] == [
        "CSV: 2 fields instead of 3", "CSV: a quote isn't closed, so the rest of the file is one record",
        "n: not of type int"
    ]  # fmt: skip
    assert "CSV: 2 fields instead of 3 (1)" in note
    assert one.counts()["unexplained"] == 0


def test_a_quarantined_record_has_its_file_and_number(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("day 1/ü#%.csv", HEADER + "o1,s,1\no2,s\no3,s,x\n")
    one.lands()

    listed = json.loads(one.command("quarantine", "show", "stg", "--json").output)
    assert sorted((row["file"], row["line"], row["raw"]) for row in listed) == [
        ("day 1/ü#%.csv", 2, "o2,s"), ("day 1/ü#%.csv", 3, '{"id":"o3","shop":"s","n":"x"}')
    ]  # fmt: skip


def test_half_a_file_stops_no_other_and_lands_once_it_is_replaced(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    whole = gzip.compress((HEADER + "o2,s,2\n").encode())
    one.put("good.csv", HEADER + "o1,s,1\n")
    one.put("half.csv.gz", whole[:-4])
    note = one.lands()
    assert one.landed() == ["o1"]
    assert "half.csv.gz: the gzip file ends too early" in note and "1 file that can't be read" in note
    commits = len(list(one.site.root.glob("warehouse/stg/*/_delta_log/*.json")))

    assert "half.csv.gz" in one.lands()
    assert len(list(one.site.root.glob("warehouse/stg/*/_delta_log/*.json"))) == commits
    one.put("half.csv.gz", whole)
    assert one.lands() == ""
    assert one.landed() == ["o1", "o2"]
    assert one.counts() == {"read": 2, "landed": 2, "quarantined": 0, "dropped": 0, "unexplained": 0}


def test_a_file_that_is_being_written_is_left_to_the_next_tick(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    whole = gzip.compress((HEADER + "o2,s,2\n").encode())
    one.put("half.csv", HEADER + "o1,s,1\no9", age=1)
    one.put("half.csv.gz", whole[:-4], age=1)
    note = one.lands()
    assert "2 files are still being written" in note and one.landed() == []
    one.put("half.csv", HEADER + "o1,s,1\no9,s,9\n", age=1)
    one.put("half.csv.gz", whole, age=1)
    assert one.lands() == ""
    assert one.landed() == ["o1", "o2", "o9"]


def test_the_glob_alone_decides_if_there_is_one(tmp_path: Path) -> None:
    one = made(tmp_path, 'format: csv\n        files: "2026-*/**/*.dat"')
    for number, name in enumerate(
        ("2026-01/a.dat", "2026-01/x/y/b.dat", "2025-01/c.dat", "2026-01/d.csv", "e.dat", "2026-01/_f.dat",
         "2026-01/.g/h.dat"), 1
    ):  # fmt: skip
        one.put(name, f"{HEADER}o{number},s,1\n")
    one.lands()

    assert one.landed() == ["o1", "o2"]


def test_by_default_all_files_of_the_format_land(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    for number, name in enumerate(("a.csv", "b/c.tsv", "b/d/e.txt", "f.dat", ".g.csv", "_h/i.csv", "b/_j.csv"), 1):
        one.put(name, f"{HEADER}o{number},s,1\n")
    one.lands()

    assert one.landed() == ["o1", "o2", "o3"]


PATHS = (
    "          - {name: day, data_type: date, description: It., from: path}\n"
    "          - {name: part, data_type: int, description: It., from: path}\n"
    "          - {name: tag, data_type: string, description: It., from: path}\n"
    "          - {name: origin, data_type: string, description: It., from: file}\n"
)


def test_columns_come_from_the_path(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv", columns=PATHS, select=", day, part, tag, origin")
    one.put("day=2026-01-02/part=07/tag=a%20%22b%5C1/f 1.csv", HEADER + "o1,s,1\n")
    one.put("tag=__HIVE_DEFAULT_PARTITION__/day=x/f.csv", HEADER + "o2,s,1\no3,s\n")
    one.put("f.csv", HEADER + "o4,s,1\n")
    one.lands()

    found = [(row["id"], str(row["day"]), row["part"], row["tag"], row["origin"]) for row in one.rows()]
    assert found == [("o1", "2026-01-02", 7, 'a "b\\1', "f 1.csv"), ("o4", "None", None, None, "f.csv")]
    assert [reason for reason, _ in one.held()] == ["CSV: 2 fields instead of 3", "day: not of type date"]


def test_a_changed_header_and_a_missing_one(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("1.csv", "n,ID,more,shop\n1,o1,x,s\n")
    one.put("2.csv", "a,b\n1,2\n")
    note = one.lands()

    assert [tuple(row.values()) for row in one.rows()] == [("o1", "s", 1)]
    assert "2.csv: the CSV file's header has none of the declared columns: `a, b`" in note


def test_dialects_of_csv(tmp_path: Path) -> None:
    options = 'csv: {delimiter: ";", quote: "\'", header: false, null: "NA", comment: "#", encoding: windows-1252}'
    one = made(tmp_path, f"format: csv\n        {options}")
    one.put("1.txt", "# made by hand\n'o;1''';s;1\nö2;'NA';NA\n".encode("windows-1252"))
    one.lands()

    assert [tuple(row.values()) for row in one.rows()] == [("o;1'", "s", 1), ("ö2", "NA", None)]


def test_json_documents(tmp_path: Path) -> None:
    one = made(tmp_path, "format: json\n        document: auto")
    one.put("1.json", json.dumps(ORDERS, indent=2))
    one.put("2.json", json.dumps({"id": "o4", "shop": "t", "n": 4}, indent=1))
    one.put("3.jsonl", '{"id":"o5"}\n\n{"id":\n')
    one.put("4.json", '[{"id":"o6"},\n {"id": ]')
    one.lands()

    assert one.landed() == ["o1", "o2", "o4", "o5", "ö3"]
    reasons = {text[:14]: reason for reason, text in one.held()}
    assert reasons['[{"id":"o6"},\n'].startswith("not a JSON document: line 2, column ")
    assert reasons['{"id":'] == "not a JSON object"
    assert one.counts() == {"read": 8, "landed": 5, "quarantined": 2, "dropped": 1, "unexplained": 0}


def test_a_document_beyond_the_limit_is_left_out(tmp_path: Path) -> None:
    one = made(tmp_path, "format: json\n        document: array\n        max_document: 1KB")
    one.put("big.json.gz", gzip.compress(json.dumps([{"id": f"o{n}"} for n in range(1000)]).encode()))
    one.put("small.json", '[{"id":"o1"}]')
    note = one.lands()

    assert one.landed() == ["o1"] and "big.json.gz: the JSON document has" in note


def test_a_bomb_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrun.sources.files.LARGEST", 1_000_000)
    one = made(tmp_path, "format: csv")
    one.put("bomb.csv.gz", gzip.compress(HEADER.encode() + b"a" * 1_000_001))
    one.put("good.csv", HEADER + "o1,s,1\n")

    assert "bomb.csv.gz: the gzip file has more than 1,000,000 bytes" in one.lands()
    assert one.landed() == ["o1"]


def test_lines_of_json_in_nested_folders(tmp_path: Path) -> None:
    one = made(tmp_path, 'format: json\n        files: "**/*.jsonl"')
    one.put("a/b/c.jsonl", "".join(json.dumps(row) + "\n" for row in ORDERS) + "\n{x}\n")
    one.lands()

    assert one.landed() == ["o1", "o2", "ö3"]
    assert one.counts() == {"read": 5, "landed": 3, "quarantined": 1, "dropped": 1, "unexplained": 0}


def test_a_change_after_landing_and_a_vanished_file(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a/1.csv", HEADER + "o1,s,1\n")
    one.lands()
    one.put("a/1.csv", HEADER + "o1,s,1\no2,s,2\n")
    assert "1 file was changed after landing" in one.lands()
    (one.data / "a" / "1.csv").unlink()
    (one.data / "a").rmdir()
    assert one.lands() == ""

    assert one.landed() == ["o1"]


def test_links(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a/1.csv", HEADER + "o1,s,1\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "2.csv").write_text(HEADER + "o2,s,1\n")
    (tmp_path / "3.csv").write_text(HEADER + "o3,s,1\n")
    (one.data / "linked.csv").symlink_to(tmp_path / "3.csv")
    (one.data / "folder").symlink_to(outside)
    (one.data / "broken.csv").symlink_to(outside / "nowhere")
    (one.data / "a" / "loop").symlink_to(one.data)
    (outside / "back").symlink_to(outside)
    one.lands()

    assert one.origins() == {"a/1.csv", "linked.csv", "folder/2.csv"}


def test_a_link_to_another_folder_of_the_source_lands_no_file_twice(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("dt=1/1.csv", HEADER + "o1,s,1\n")
    one.put("_work/2.csv", HEADER + "o2,s,1\n")
    (one.data / "latest").symlink_to("dt=1")
    (one.data / "latest.csv").symlink_to("dt=1/1.csv")
    (one.data / "done.csv").symlink_to("_work/2.csv")  # without its link it isn't a file of the source
    assert one.lands() == ""
    assert one.origins() == {"dt=1/1.csv", "done.csv"}

    one.put("dt=2/3.csv", HEADER + "o3,s,1\n")
    (one.data / "latest").unlink()
    (one.data / "latest").symlink_to("dt=2")
    assert one.lands() == ""
    assert one.origins() == {"dt=1/1.csv", "done.csv", "dt=2/3.csv"}


def test_a_link_to_files_that_the_glob_leaves_out_is_read(tmp_path: Path) -> None:
    one = made(tmp_path, 'format: csv\n        files: "current/*.csv"')
    one.put("release-3/1.csv", HEADER + "o1,s,1\n")
    (one.data / "current").symlink_to("release-3")
    one.lands()

    assert one.origins() == {"current/1.csv"}


def test_names_and_headers_cant_write_lines_of_the_report(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a\n12:00:00  Completed.csv", HEADER + "o1,s,1\n")
    one.put("b\nhalf.csv.gz", b"\x1f\x8b")
    one.put("c.csv", '"x\n12:00:00  Completed",y\n')
    planned = one.command("plan").output
    note = one.lands()
    one.put("a\n12:00:00  Completed.csv", HEADER + "o2,s,1\n")
    later = one.lands()
    one.put("d.csv", 'id,shop,n,"y\n12:00:00  Completed"\no4,s,1,x\n')
    drifted = one.lands()

    assert one.landed() == ["o1", "o4"] and "SR601" in drifted
    for text in (planned, note, later, drifted):
        assert "\n12:00:00" not in text and "\nhalf" not in text
        assert "\\n12:00:00  Completed" in text and "\\nhalf" in text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_stops_the_landing(tmp_path: Path) -> None:
    one = made(tmp_path, "format: csv")
    one.put("a/1.csv", HEADER + "o1,s,1\n")
    (one.data / "a").chmod(0)

    assert "can't be read" in one.problem()


@pytest.mark.parametrize("kind", ["csv", "parquet", "avro"])
def test_a_file_without_any_declared_column_is_left_out(tmp_path: Path, kind: str) -> None:
    declared, ending, write = FORMATS[kind]
    one = made(tmp_path, declared)
    one.put(f"1.{ending}", write([{"id": "o1", "shop": "s", "n": 1}]))
    one.put(f"2.{ending}", write([{"tags": ["x"], "wide": 0.5}]))
    note = one.lands()

    assert one.landed() == ["o1"]
    assert f"2.{ending}: the " in note and "has none of the declared columns: `tags, wide`" in note


def test_parquet_of_another_schema(tmp_path: Path) -> None:
    one = made(tmp_path, "format: parquet")
    one.put("1.parquet", parquet([{"id": "o1", "shop": "s", "n": 1}]))
    one.put("2.parquet", parquet([{"n": 2, "more": "x", "id": "o2"}]))
    one.put("3.parquet", parquet([{"id": "o3", "n": 2**40}]))
    one.put("4.parquet", parquet([{"id": "o4"}])[:-10])
    note = one.lands()

    assert [tuple(row.values()) for row in one.rows()] == [("o1", "s", 1), ("o2", None, 2)]
    assert [reason for reason, _ in one.held()] == ["n: not of type int"]
    assert "4.parquet: the file can't be read as Parquet" in note
