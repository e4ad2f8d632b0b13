"""A fork of the daemon that starts and hosts Spark, for commands to borrow. Shell: Spark, processes.

A process that talks to a JVM has threads. The daemon must have none to be able to fork, so this is a separate process.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from types import FrameType
from typing import Any

from sqlrun.daemon import protocol
from sqlrun.daemon.command import die_with
from sqlrun.runtime.text_lines import text_lines


def keep(channel: socket.socket, settings: dict[str, str], server: int) -> int:
    """Start Spark, run a first statement of each kind, send its address and wait for its end; return the exit code.

    SIGTERM, which also arrives when the daemon ends, kills the JVM: its running job crashes.
    """
    jvm: Any = None

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        if jvm is not None:
            jvm.kill()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(server, signal.SIGTERM)
    from sqlrun.engines.spark.session import keep_classes, key_of, session_of

    try:
        session = session_of(settings, record=True)
        gateway: Any = session.sparkContext._gateway
        jvm = gateway.proc
        _try(session)
        keep_classes(session)
    except Exception as error:  # in any case the daemon continues without Spark
        protocol.send(channel, {"failed": text_lines(str(error))[0] if str(error) else type(error).__name__})
        if jvm is not None:
            jvm.kill()
        return 1
    where = {"port": gateway.gateway_parameters.port, "secret": gateway.gateway_parameters.auth_token}
    protocol.send(channel, {"key": key_of(settings), "jvm": jvm.pid, **where})
    return int(jvm.wait())


def _try(session: Any) -> None:
    """Write, merge and read a small Delta table, because the first run of each loads thousands of classes."""
    folder = tempfile.mkdtemp(prefix="sqlrun-warm-")
    table = f"delta.`{folder}/table`"
    try:
        own = session.newSession()
        own.sql(f"create table {table} (id bigint, n bigint) using delta")
        own.sql(f"insert into {table} select id, id from range(8)")
        own.range(4, 12).createOrReplaceTempView("news")
        own.sql(
            f"merge into {table} as t using news as s on t.id = s.id "
            "when matched then update set n = t.n + 1 when not matched then insert (id, n) values (s.id, 0)"
        )
        own.sql(f"select n, count(*) from {table} version as of 1 group by n").toArrow()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()
