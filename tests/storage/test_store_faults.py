"""What a store refuses, and what a build says about it: a code, what is wrong and what to do, before it writes."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any
from unittest import mock

import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from sqlrun.errors import UsageError
from sqlrun.storage import lock, object_store, store_errors
from sqlrun.storage.factory import address_of, register, storage_of
from sqlrun.storage.store_errors import StoreError
from tests.support.script import START
from tests.support.servers.gcs import Gcs
from tests.support.servers.object_stores import S3
from tests.support.servers.unreliable import Unreliable


@pytest.fixture
def warehouse(s3: S3, tmp_path: Path) -> str:
    return s3.warehouse(tmp_path)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is repeated more than once."""
    monkeypatch.setattr(object_store, "TRIES", 2)
    monkeypatch.setattr(object_store, "RETRIES", {"max_retries": 0, "retry_timeout": object_store.LONGEST})


def begin(warehouse: str) -> None:
    """Do what a build does first."""
    with lock.hold(warehouse, START):
        pass


@pytest.mark.usefixtures("s3")
def test_a_bucket_that_is_missing() -> None:
    with pytest.raises(StoreError, match=r"SR791 s3://nowhere/w.*Create the bucket nowhere"):
        storage_of("s3://nowhere/w").text("s3://nowhere/w/_sqlrun/format")
    with pytest.raises(StoreError, match="SR791"):
        begin("s3://nowhere/w")


def test_wrong_credentials(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreError, match=r"SR792 .*SignatureDoesNotMatch.*credentials in the environment"):
        begin(warehouse)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "RequestTimeTooSkewed", "SR793"), (400, "ExpiredToken", "SR792"), (403, "AccessDenied", "SR792"),
        (400, "AuthorizationHeaderMalformed", "SR792"), (500, "InternalError", "SR794"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_code(warehouse: str, through: Unreliable, status: int, code: str, expected: str) -> None:
    through.refusal = lambda method, path: (status, code)
    with pytest.raises(StoreError, match=expected):
        begin(warehouse)
    for ask in (storage_of(warehouse).read, storage_of(warehouse).names):
        with pytest.raises(StoreError, match=expected):
            ask(f"{warehouse}/a")


@pytest.mark.usefixtures("hasty")
def test_a_store_that_does_not_answer(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="SR794"):
        begin(warehouse)


@pytest.mark.usefixtures("hasty")
def test_an_endpoint_without_tls(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(StoreError, match=r"SR794 .*Add `allow_http: true`"):
        begin(warehouse)


def test_a_store_without_conditional_writes_is_refused_before_anything_is_written(warehouse: str) -> None:
    real = obstore.put

    def careless(store: Any, path: str, data: bytes, **_: Any) -> Any:
        return real(store, path, data)

    with mock.patch("obstore.put", careless), pytest.raises(UsageError, match=r"SR795 s3://lake .*If-None-Match"):
        begin(warehouse)
    assert storage_of(warehouse).names(warehouse) == []
    begin(warehouse)


def test_the_package_is_missing(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("obstore"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"SR796 .*pip install 'sqlrun\[store\]'"):
        begin(warehouse)


def test_options_of_a_profile_reach_the_store(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They apply to all paths of the warehouse, and to no other warehouse of the bucket."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP", "AWS_REGION"):
        monkeypatch.delenv(name)
    warehouse = s3.warehouse(tmp_path)
    register(warehouse, {"endpoint": s3.endpoint, "allow_http": "true", "region": "us-east-1"})
    storage_of(f"{warehouse}/a").put(f"{warehouse}/a/b", b"1", synced=True)
    assert storage_of(f"{warehouse}/x/y").names(f"{warehouse}/a") == ["b"]
    assert storage_of(f"{warehouse}2") is not storage_of(warehouse)


def test_options_of_a_profile_reach_googles_store(gcs: Gcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both libraries take them; requests that aren't signed read."""
    monkeypatch.delenv("GOOGLE_BASE_URL")
    warehouse, options = gcs.warehouse(tmp_path), {"endpoint": gcs.endpoint, "allow_http": "true"}
    register(warehouse, options)
    storage_of(warehouse).put(f"{warehouse}/a/b", b"1", synced=True)
    path, known = address_of(f"{warehouse}/table")
    write_deltalake(path, pa.table({"a": [1]}), storage_options=known)

    monkeypatch.delenv("GOOGLE_SERVICE_ACCOUNT_KEY")
    register(warehouse, {**options, "skip_signature": "true"})
    assert storage_of(warehouse).read(f"{warehouse}/a/b") == b"1"
    path, known = address_of(f"{warehouse}/table")
    assert DeltaTable(path, storage_options=known).to_pyarrow_table().num_rows == 1


def test_a_bucket_that_is_missing_at_google(gcs: Gcs) -> None:
    with pytest.raises(StoreError, match=r"SR791 gs://nowhere/w.*Create the bucket nowhere"):
        begin("gs://nowhere/w")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("text", [None, "", "{}", '{"type": "external_account"}', "no JSON"])
def test_credentials_of_google_that_cannot_be_read(
    gcs: Gcs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """None: there is no such file."""
    monkeypatch.delenv("GOOGLE_SERVICE_ACCOUNT_KEY")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    if text is not None:
        (tmp_path / "key.json").write_text(text)
    with pytest.raises(StoreError, match=r"SR792 gs://lake.*Set GOOGLE_APPLICATION_CREDENTIALS"):
        begin(gcs.warehouse(tmp_path))


@pytest.mark.parametrize(
    "message",
    [
        "Generic GCS error: Error performing token request: Error performing GET http://metadata.google.internal/token "
        "in 2s, after 8 retries - HTTP error: error sending request",
        "Error performing token request: Error performing POST https://oauth2.googleapis.com/token in 3ms - Server "
        'returned non-2xx status code: 400 Bad Request: {"error":"invalid_grant"}',
    ],
)
def test_no_token_from_google(message: str) -> None:
    assert str(store_errors.explained("gs://lake/a", OSError(message))).startswith("SR792 gs://lake/a")


@pytest.mark.parametrize(
    ("url", "message", "variable"),
    [
        (
            "s3://lake/a",
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2s, after 2 retries - "
            "HTTP error: error sending request",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "s3://lake/a",
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1ms - Server returned "
            "non-2xx status code: 403 Forbidden: denied",
            "AWS_ACCESS_KEY_ID",
        ),
        ("az://lake/a", "Generic MicrosoftAzure error: Account must be specified", "AZURE_STORAGE_ACCOUNT_NAME"),
    ],
)
def test_an_environment_without_credentials(url: str, message: str, variable: str) -> None:
    """The library then asks the service that a cloud's own machines have, and reports that one's answer."""
    error = str(store_errors.explained(url, OSError(message)))

    assert error.startswith(f"SR792 {url}: there are no valid credentials")
    assert f"Set {variable}" in error
