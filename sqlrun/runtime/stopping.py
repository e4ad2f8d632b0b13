"""Stops that come: signals, and statements that take too long. Shell: signals, threads, processes.

A signal ends a command within two seconds, wherever it is. Python's handler runs between two of its steps; a library
may be in the middle of one for hours. So a thread of our own hears of signals too, interrupts what can be interrupted,
and ends the process where even that doesn't help: what a command leaves behind then is no worse than after a crash.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sqlrun.runtime.limits import STATEMENT_TIMEOUT

INTERRUPTED = 130
STOPPED = "sqlrun: interrupted"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# From the moment on that all has to stop: seconds until the process ends, whatever it does.
PATIENCE = 0.7
# Seconds between two interrupts: one that comes between two statements is lost.
AGAIN = 0.05
# How long a statement that doesn't heed interrupts may go on, beyond as long again as its limit.
OVERDUE = 60.0


class Limited:
    """A statement that runs; `over`: its time is."""

    __slots__ = ("end", "interrupt", "over", "seconds")

    def __init__(self, interrupt: Callable[[], object], seconds: float) -> None:
        self.interrupt, self.seconds = interrupt, seconds
        self.end = time.monotonic() + seconds
        self.over = False


class _Watch:
    """What this process waits for and has been told. The thread is made with the first statement or signal."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running: set[Limited] = set()
        self.ours = self.theirs = -1
        self.started = False
        self.longest = float(STATEMENT_TIMEOUT)
        self.reset()

    def reset(self) -> None:
        """Forget signals that came, and how a first one is taken."""
        self.handled = self.heard = 0
        self.raised = False
        self.grace: float | None = None
        self.stop_at = self.end_at = float("inf")
        self.at_once = False
        self.words = STOPPED

    def listen(self) -> int:
        """Have Python write the numbers of signals where the thread reads them; give what it wrote to before."""
        self._open()
        return signal.set_wakeup_fd(self.theirs, warn_on_full_buffer=False)

    def _open(self) -> None:
        """Open the pipe, when it is needed: a file of a process that begins may take a standard stream's number."""
        with self.lock:
            if self.ours < 0:
                self.ours, self.theirs = os.pipe()
                os.set_blocking(self.theirs, False)

    def start(self) -> None:
        """Start the thread. It isn't one of `threading`: nobody waits for it, and a fork is whole without it."""
        self._open()
        with self.lock:
            if not self.started:
                self.started = True
                _thread.start_new_thread(self._run, ())

    def wake(self) -> None:
        """Have the thread look anew when it has to wake up next."""
        with suppress(OSError):
            os.write(self.theirs, b"\0")

    def _run(self) -> None:
        while True:
            wait = self._next()
            ready, _, _ = select.select([self.ours], [], [], wait if wait is None else max(wait, 0.001))
            told = os.read(self.ours, 4096) if ready else b""
            self.heard += sum(1 for number in told if number in SIGNALS)
            self.look()

    def _next(self) -> float | None:
        """Return in how many seconds there is something to do; None for never."""
        now = time.monotonic()
        with self.lock:
            ends = [max(each.end, now + AGAIN) if each.over else each.end for each in self.running]
        soonest = min([self.stop_at, self.end_at, *ends], default=float("inf"))
        if self.at_once:
            soonest = min(soonest, now + AGAIN)
        return None if soonest == float("inf") else soonest - now

    def look(self) -> None:
        """Do what it is time for."""
        now = time.monotonic()
        came = max(self.handled, self.heard)
        if came and not self.at_once:
            if self.stop_at == float("inf"):
                self.stop_at = now + (self.grace or 0.0)
            if came > 1 or now >= self.stop_at:
                self.stop(now)
                if came == 1 and self.grace is not None:
                    _thread.interrupt_main(signal.SIGTERM)
        if self.at_once and now >= self.end_at:
            leave(INTERRUPTED, self.words)
        self._interrupt(now)

    def stop(self, now: float) -> None:
        """Let all end: statements by interrupts, and the process after a while."""
        self.at_once, self.stop_at, self.end_at = True, float("inf"), now + PATIENCE

    def interrupt_main(self) -> None:
        """End what the main thread does, once: a second exception would hit whoever clears up."""
        if not self.raised:
            self.raised = True
            raise KeyboardInterrupt

    def _interrupt(self, now: float) -> None:
        # The lock is held meanwhile: an interrupt that comes late would hit what the session does next.
        with self.lock:
            due = [each for each in self.running if self.at_once or now >= each.end]
            for each in due:
                each.over = each.over or now >= each.end
                with suppress(Exception):
                    each.interrupt()
        for each in due:
            if now >= each.end + each.seconds + OVERDUE:
                text = f"A statement ran longer than {each.seconds:g} s and can't be interrupted (SR746). "
                leave(1, text + "Nothing of this tick is published; the next build takes it back.")


_watch = _Watch()


def _forked() -> None:
    """Have a fork hear of its own signals alone."""
    global _watch
    before, _watch = _watch, _Watch()
    _watch.longest = before.longest
    if before.ours < 0:
        return
    with suppress(ValueError):
        told = signal.set_wakeup_fd(-1)
        if told == before.theirs:
            _watch.listen()
        else:
            signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for end in (before.ours, before.theirs):
        os.close(end)


os.register_at_fork(after_in_child=_forked)


@contextmanager
def limited(interrupt: Callable[[], object], seconds: float | None = None) -> Iterator[Limited]:
    """Have a statement interrupted when its time is over (the profile's, unless given), or the process is to stop.

    `interrupt` is called again and again, and must not block.
    """
    watch = _watch
    one = Limited(interrupt, watch.longest if seconds is None else max(0.0, seconds))
    watch.start()
    with watch.lock:
        watch.running.add(one)
        first = min(each.end for each in watch.running) == one.end or watch.at_once
    if first:
        watch.wake()
    try:
        yield one
    finally:
        with watch.lock:
            watch.running.discard(one)


def limit_statements(statement_timeout: float) -> None:
    """Set how long a statement may take in this process."""
    _watch.longest = statement_timeout


def out_of_time(one: Limited) -> str:
    """Return the message that a statement ran into its time limit."""
    return f"SR745 the statement ran longer than {one.seconds:g} s, the profile's `statement_timeout`, and was stopped"


def is_stopping() -> bool:
    """Return whether everything is to end at once."""
    return _watch.at_once


def was_interrupted() -> bool:
    """Return whether a signal has raised KeyboardInterrupt: a library may have made another error of it."""
    return _watch.raised


def install() -> None:
    """Have SIGINT, SIGTERM and SIGHUP end this command with 130; what is ignored, as by nohup, stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    _watch.listen()


def end_at_once() -> None:
    """Have a signal end a command that leaves without an exception: exit functions would print it and go on."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        leave(INTERRUPTED, STOPPED)

    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, end)


def _stop(number: int, frame: FrameType | None) -> None:
    """Take a signal in the main thread."""
    del number, frame
    watch = _watch
    watch.handled += 1
    watch.start()
    watch.wake()
    watch.interrupt_main()


@contextmanager
def graceful(event: threading.Event, grace: float, told: Callable[[str], None], words: str) -> Iterator[None]:
    """Let a first signal set the event, and end what runs only `grace` seconds later; a second one ends it at once.

    `told` is given the signal's name. `words` are the last ones where the process has to be ended from outside.
    """
    watch = _watch
    watch.reset()
    watch.grace, watch.words = grace, words
    watch.start()

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        watch.handled += not watch.at_once
        if event.is_set() and not watch.at_once:
            watch.stop(time.monotonic())
        watch.wake()
        if watch.at_once:
            watch.interrupt_main()
            return
        event.set()
        told(signal.Signals(number).name)

    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS} if here else {}
    before = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    descriptor = watch.listen() if here else -1
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if here:
            signal.set_wakeup_fd(descriptor)
        watch.reset()


def leave(code: int, words: str) -> None:
    """End this process and those that it has started, whatever they do."""
    with suppress(OSError):
        os.write(2, f"{words}\n".encode() if words else b"")
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():  # noqa: PTH112, PTH208
        with suppress(OSError), open(f"/proc/self/task/{task}/children") as children:  # noqa: PTH123
            for process in children.read().split():
                os.kill(int(process), signal.SIGKILL)
    os._exit(code)
