"""A Hive metastore over Thrift, from the jars that PySpark brings along, with a Derby database. Shell: processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.process import SMALL, Process, free_port, listens


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Start a metastore without schemas; yield the settings by which Spark reaches it."""
    import pyspark

    folder.mkdir(parents=True)
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'db'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.event.db.notification.api.auth": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
    }
    # The logger of the asynchronous log isn't among the jars.
    options = ["-Xmx256m", *SMALL, f"-Dderby.system.home={folder}", "-Dhive.async.log.enabled=false"]
    classes = f"{Path(pyspark.__file__).parent / 'jars'}/*"
    main = ["-cp", classes, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    given = [word for key, value in settings.items() for word in ("--hiveconf", f"{key}={value}")]
    server = Process(["java", *options, *main, *given], folder / "metastore.log")
    server.start(lambda: listens(port))
    try:
        yield {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
            "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        }
    finally:
        server.stop()
