"""A command behaves the same in the daemon; in any doubt it runs without it."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sqlrun.cli.main import main
from sqlrun.daemon import compatibility, entry, protocol
from tests.support.projects import ROOT

pytestmark = pytest.mark.skipif(not protocol.is_supported(), reason="needs Linux")
ALONE = 99


@dataclass
class Place:
    """A project's folder, a folder for sockets, and daemons and clients in them."""

    root: Path
    runtime: Path
    servers: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self, **more: str) -> dict[str, str]:
        own = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "LANG": "C.UTF-8",
        }
        return {**own, **more}

    def serve(self, idle: float = 60, **more: str) -> subprocess.Popen[str]:
        given = json.dumps({"root": os.path.realpath(self.root), "idle": idle})
        made = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_fake", "server", given],
            cwd=self.root, env=self.environment(**more),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.servers.append(made)
        assert made.stdin and made.stdout
        with made.stdin, made.stdout:
            made.stdin.write("null")
            made.stdin.close()
            assert json.loads(made.stdout.readline())["pid"] == made.pid
        return made

    def begin(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_fake", "client", *arguments], cwd=self.root, text=True,
            env=self.environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str, given: str = "", **more: str) -> tuple[int, str, str]:
        process = self.begin(*arguments, **more)
        out, err = process.communicate(given, timeout=30)
        return process.returncode, out, err

    def probe(self, *arguments: str, **more: Any) -> dict[str, Any]:
        code, out, err = self.run("tell", *arguments, **more)
        assert (code, err) == (0, "on stderr\n")
        found: dict[str, Any] = json.loads(out)
        return found

    @property
    def sockets(self) -> Path:
        return self.runtime / f"sqlrun-{os.geteuid()}"

    @property
    def socket(self) -> Path:
        (found,) = self.sockets.glob("*.socket")
        return found


@pytest.fixture(autouse=True)
def as_a_shell_gives_them() -> Iterator[None]:
    """Reset signals that a test run in the background may have inherited as ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Yield a place without a daemon, for tests that damage one."""
    yield from placed(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Yield a place with a daemon that keeps running."""
    for made in placed(tmp_path_factory.mktemp("served")):
        made.serve(CANARY_OF_THE_SERVER="1")
        yield made


def placed(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "project", tmp_path / "run")
    for folder in (made.root, made.runtime):
        folder.mkdir()
    yield made
    for server in made.servers:
        server.kill()
        server.wait()


def until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_command_has_its_clients_attributes(served: Place) -> None:
    server = served.servers[0]
    seen = served.probe("a word", "ünï", given="from stdin", CANARY="a secret")

    assert seen["argv"] == ["sqlrun", "tell", "a word", "ünï"]
    assert seen["program"] == "sqlrun"
    assert seen["folder"] == str(served.root)
    assert seen["variables"] == {"CANARY": "a secret"}
    assert seen["input"] == "from stdin"
    assert seen["terminals"] == [False, False, False]
    assert seen["umask"] == os.umask(os.umask(0o022))
    assert seen["pid"] != server.pid


@pytest.mark.slow
def test_nothing_is_left_for_the_next_command(served: Place) -> None:
    assert served.run("leave")[0] == 0

    seen = served.probe()

    assert seen["variables"] == {}
    assert seen["folder"] == str(served.root)
    assert seen["umask"] != 0o077
    assert not seen["left"]


@pytest.mark.slow
def test_no_secret_is_written_anywhere(served: Place) -> None:
    served.probe("x", CANARY="hunter2-hunter2")

    files = [file for folder in (served.root, served.runtime) for file in folder.rglob("*") if file.is_file()]
    assert files  # the lock
    assert not any(b"hunter2" in file.read_bytes() for file in files)


@pytest.mark.slow
def test_exit_codes_are_passed_on(served: Place) -> None:
    for code in (0, 1, 75):
        assert served.run("exit", str(code)) == (code, "", "")


@pytest.mark.slow
def test_an_unexpected_failure_ends_as_in_any_process(served: Place) -> None:
    code, _, err = served.run("raise")

    assert code == 1
    assert err.splitlines()[-1] == "ValueError: as it comes"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.slow
def test_signals_reach_the_command(served: Place, number: int) -> None:
    """Each of the three ends a command with 130, as without a daemon."""
    with served.begin("wait") as client:
        assert client.stdout is not None
        command = int(client.stdout.readline())
        client.send_signal(number)

        assert client.wait(10) == 130
        assert client.stdout.read() == "interrupted\n"
    assert not is_alive(command)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("where", ["sleep", "linger"])
@pytest.mark.slow
def test_a_signal_outside_of_a_command_prints_one_line(served: Place, where: str, number: int) -> None:
    """While click parses arguments, and while exit functions run: as without a daemon."""
    with served.begin(where) as client:
        assert client.stdout is not None and client.stderr is not None
        client.stdout.readline()
        client.send_signal(number)

        assert client.wait(10) == 130
        assert client.stderr.read() == "sqlrun: interrupted\n"


@pytest.mark.slow
def test_a_signal_is_passed_on_though_it_interrupts_no_call(served: Place) -> None:
    """As when it arrives just before the client begins to wait for the daemon: Python runs no handler until then."""
    with served.begin("sleep", SIGNAL_ELSEWHERE="1") as client:
        assert client.stdin is not None and client.stdout is not None
        client.stdout.readline()
        client.stdin.write("x")
        client.stdin.flush()
        try:
            assert client.wait(10) == 130
        finally:
            client.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.slow
def test_an_early_signal_waits_for_the_forks_handlers(place: Place, number: int) -> None:
    server = place.serve(SLOW_FORKS="0.5")
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    with place.begin("wait") as client:
        assert client.stdout is not None and client.stderr is not None
        until(lambda: children.read_text().split())
        client.send_signal(number)

        assert client.wait(10) == 130
        assert client.stdout.read() == ""
        assert client.stderr.read() == "sqlrun: interrupted\n"
    assert server.poll() is None


@pytest.mark.slow
def test_the_command_ignores_its_clients_ignored_signals(served: Place) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert served.probe()["ignores"]
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not served.probe()["ignores"]


@pytest.mark.slow
def test_a_stopped_client_stops_its_command(served: Place) -> None:
    """As with Ctrl-Z, followed by `fg`."""
    with served.begin("wait") as client:
        assert client.stdout is not None
        command = int(client.stdout.readline())

        def state() -> str:
            return Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0]

        client.send_signal(signal.SIGTSTP)
        until(lambda: state() == "T")
        client.send_signal(signal.SIGCONT)
        until(lambda: state() != "T")
        client.send_signal(signal.SIGINT)
        assert client.wait(10) == 130


@pytest.mark.slow
def test_a_command_dies_with_its_client(served: Place) -> None:
    server = served.servers[0]
    with served.begin("wait") as client:
        assert client.stdout is not None
        command = int(client.stdout.readline())
        client.kill()
    until(lambda: not is_alive(command))

    assert server.poll() is None
    assert served.run("exit", "0")[0] == 0


@pytest.mark.slow
def test_a_command_dies_with_the_daemon_and_its_client_reports_it(place: Place) -> None:
    server = place.serve()
    with place.begin("wait") as client:
        assert client.stdout is not None and client.stderr is not None
        command = int(client.stdout.readline())
        server.kill()

        assert client.wait(10) == 1
        assert "the daemon ended while it ran this command" in client.stderr.read()
    assert not is_alive(command)
    assert place.run("exit", "0") == (
        ALONE,
        "",
        "sqlrun: without the daemon: it is gone; `sqlrun up` restarts it\n",
    )


@pytest.mark.slow
def test_commands_run_in_parallel(served: Place) -> None:
    with served.begin("wait") as first:
        assert first.stdout is not None
        first.stdout.readline()
        assert served.run("exit", "3")[0] == 3
        first.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("more", "differs"),
    [({"TZ": "Asia/Tokyo"}, "locale, time zone or libraries' variables"), ({"PYTHONWARNINGS": "error"}, "Python")],
)
@pytest.mark.slow
def test_an_incompatible_daemon_is_not_used(served: Place, more: dict[str, str], differs: str) -> None:
    code, out, err = served.run("tell", **more)

    assert (code, out) == (ALONE, "")
    assert err.startswith("sqlrun: without the daemon: it was started with other ")
    assert differs in err
    assert err.count("\n") == 1


def test_changed_code_is_another_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "PACKAGE", str(tmp_path))
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "rule.py"
    file.write_text("a = 1")
    before = compatibility.identity()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "rule.pyc").write_text("compiled")
    assert compatibility.differing(before, compatibility.identity()) == []

    file.write_text("a = 12")

    assert compatibility.differing(before, compatibility.identity()) == ["sqlrun's code"]


@pytest.mark.parametrize(
    ("what", "mode", "why"),
    [
        ("folder", 0o755, "is open to other users"),
        ("socket", 0o666, "is open to other users"),
        ("file", 0, "is not a socket"),
    ],
)
@pytest.mark.slow
def test_files_open_to_other_users_are_not_used(place: Place, what: str, mode: int, why: str) -> None:
    place.serve()
    if what == "file":
        path = place.socket
        path.unlink()
        path.write_text("")
    else:
        (place.sockets if what == "folder" else place.socket).chmod(mode)
    code, _, err = place.run("tell")

    assert code == ALONE
    assert why in err


def test_sockets_are_in_a_private_folder(served: Place) -> None:
    assert stat.S_IMODE(served.sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(served.socket.stat().st_mode) == 0o600


def test_no_daemon_starts_in_a_folder_open_to_others(place: Place) -> None:
    place.sockets.mkdir(mode=0o755)
    with pytest.raises(json.JSONDecodeError):
        place.serve()


def test_another_user_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        protocol.require_same_user(ours)
        protocol.require_private(str(_private(tmp_path)), kind=stat.S_IFDIR)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(protocol.WireError, match="the peer is another user"):
            protocol.require_same_user(ours)
        with pytest.raises(protocol.WireError, match="belongs to another user"):
            protocol.require_private(str(_private(tmp_path)), kind=stat.S_IFDIR)


def _private(folder: Path) -> Path:
    made = folder / "private"
    made.mkdir(mode=0o700, exist_ok=True)
    return made


@pytest.mark.parametrize(
    "says", [b"", struct.pack(">I", 1 << 31), struct.pack(">I", 3) + b"{]}", struct.pack(">I", 2) + b"{}"]
)
@pytest.mark.slow
def test_a_broken_daemon_delays_a_command_only_briefly(place: Place, says: bytes) -> None:
    place.sockets.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)
        listener.bind(f"{place.sockets}/{Path(_address(place)).name}")
        os.umask(before)
        listener.listen()
        client = place.begin("tell", PATIENCE="0.3")
        connection, _ = listener.accept()
        with connection:
            connection.sendall(says)
            _, err = client.communicate(timeout=10)

    assert client.returncode == ALONE
    assert err.startswith("sqlrun: without the daemon: it ")


def _address(place: Place) -> str:
    found = place.root.stat()
    return f"{place.sockets}/{found.st_dev:x}-{found.st_ino:x}.socket"


@pytest.mark.parametrize(
    "says", [b"", b"\0", struct.pack(">I", 1 << 31), struct.pack(">I", 2) + b"[]", struct.pack(">I", 2) + b"{}"]
)
@pytest.mark.slow
def test_a_broken_client_delays_no_other(place: Place, says: bytes) -> None:
    place.serve(PATIENCE="0.2")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place.socket))
        client.sendall(says)

        assert place.run("exit", "0")[0] == 0


@pytest.mark.slow
def test_an_idle_daemon_ends(place: Place) -> None:
    server = place.serve(idle=0.3)

    assert server.wait(10) == 0
    assert not list(place.sockets.glob("*.socket"))
    assert place.run("tell")[::2] == (ALONE, "")


@pytest.mark.slow
def test_a_stopped_daemon_lets_its_commands_finish(place: Place) -> None:
    server = place.serve()
    with place.begin("wait") as client:
        assert client.stdout is not None
        client.stdout.readline()
        with protocol.connect(str(place.socket)) as connection:
            protocol.send(connection, {"stop": True, "identity": {}})
            assert protocol.receive(connection)[0]["stopping"]
        code, _, err = place.run("tell")
        assert (code, "about to end" in err) == (ALONE, True)
        assert server.poll() is None
        client.send_signal(signal.SIGINT)
        assert client.wait(10) == 130
    assert server.wait(10) == 0


@pytest.mark.slow
def test_a_daemon_without_its_socket_ends(place: Place) -> None:
    server = place.serve(idle=1000)
    place.socket.unlink()
    with place.begin("wait"):
        os.kill(server.pid, signal.SIGCHLD)  # any event makes it look for its socket

        assert server.wait(10) == 0


@pytest.mark.slow
def test_a_command_has_its_clients_terminal(served: Place) -> None:
    ours, theirs = pty.openpty()
    import fcntl
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 30, 123, 0, 0))
    command = [sys.executable, "-m", "tests.support.warm_fake", "client", "width"]
    subprocess.run(command, cwd=served.root, env=served.environment(), stdout=theirs, check=True, timeout=30)
    os.close(theirs)
    assert os.read(ours, 100) == b"123\r\n"
    os.close(ours)


@pytest.mark.slow
def test_the_client_imports_little(served: Place) -> None:
    command = [sys.executable, "-m", "tests.support.warm_fake", "light", "exit", "0"]
    shown = subprocess.run(
        command, cwd=served.root, env=served.environment(), capture_output=True, text=True, check=True, timeout=30
    )

    assert set(json.loads(shown.stdout.replace("'", '"'))) <= {"pathlib"}  # the fake's own


def test_every_command_is_listed_as_served_or_not() -> None:
    alone = {
        "clean",
        "completion",
        "debug",
        "deps",
        "down",
        "error",
        "format",
        "lint",
        "import-dbt",
        "init",
        "lsp",
        "new",
        "schema",
        "serve",
        "simulate",
        "up",
    }

    assert alone | entry.SERVED == set(main.commands)
    assert not alone & entry.SERVED


@pytest.mark.parametrize(
    ("line", "root"),
    [("build", "."), ("--no-cache build -s x", "."), ("--project-dir a/b build", "a/b"), ("--project-dir=c ls", "c"),
     ("build --every 5m", None), ("test --watch", None), ("build --help", None), ("--no-server build", None),
     ("--no-cache --no-server build", None), ("serve", None), ("", None), ("--version", None), ("--project-dir", None),
     ("bild", None)],
)  # fmt: skip
def test_the_project_is_found_on_the_command_line(line: str, root: str | None) -> None:
    assert entry.project_of(line.split()) == root
    assert entry.project_of(line.split(), "1") is None
