"""Stops of a command: signals, and time limits of statements. Shell: signals, threads, processes.

A signal ends a command within two seconds, whatever it does. Python runs signal handlers only between two bytecodes,
and a library call may take hours. Therefore a thread of sqlrun's own also receives signals, interrupts running
statements, and kills the process as a last resort; the state left behind is then no worse than after a crash.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sqlrun.runtime.limits import STATEMENT_TIMEOUT

INTERRUPTED = 130
STOPPED = "sqlrun: interrupted"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds from the stop until the process is killed.
PATIENCE = 0.7
# Seconds between two interrupts: one that arrives between two statements, or in certain callbacks, is lost.
AGAIN = 0.05
# Seconds by which a statement that ignores interrupts may exceed twice its limit.
OVERDUE = 60.0


class Limited:
    """A running statement; `over` means that its time limit has passed."""

    __slots__ = ("end", "interrupt", "over", "seconds")

    def __init__(self, interrupt: Callable[[], object], seconds: float) -> None:
        self.interrupt, self.seconds = interrupt, seconds
        self.end = time.monotonic() + seconds
        self.over = False


class _Watch:
    """Running statements and received signals of this process. The first statement or signal starts the thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.running: set[Limited] = set()
        self.ours = self.theirs = -1
        self.started = False
        self.longest = float(STATEMENT_TIMEOUT)
        self._forget()

    def reset(self) -> None:
        """Forget received signals, those in the pipe too, and graceful stops."""
        with self.lock:
            self._read()
            self._forget()

    def _forget(self) -> None:
        self.handled = self.heard = 0
        self.raised = False
        self.last = signal.SIGINT
        self.grace: float | None = None
        self.stop_at = self.end_at = self.again_at = float("inf")
        self.at_once = False
        self.words = STOPPED

    def listen(self) -> int:
        """Make Python write signal numbers to the thread's pipe; return the previous pipe."""
        self._open()
        return signal.set_wakeup_fd(self.theirs, warn_on_full_buffer=False)

    def _open(self) -> None:
        """Open the pipe on demand: in a starting process a file may take the number of a standard stream."""
        with self.lock:
            if self.ours < 0:
                self.ours, self.theirs = os.pipe()
                for end in (self.ours, self.theirs):
                    os.set_blocking(end, False)

    def start(self) -> None:
        """Start the thread. It is not one of `threading`'s: exit doesn't wait for it, and a fork stays intact."""
        self._open()
        with self.lock:
            if not self.started:
                self.started = True
                _thread.start_new_thread(self._run, ())

    def wake(self) -> None:
        """Make the thread compute its next wake-up again."""
        with suppress(OSError):
            os.write(self.theirs, b"\0")

    def _run(self) -> None:
        while True:
            wait = self._next()
            select.select([self.ours], [], [], wait if wait is None else max(wait, 0.001))
            with self.lock:
                self.heard += self._read()
            self.look()

    def _read(self) -> int:
        """Return the number of signals in the pipe, and empty it. The lock is held, so `reset` misses none."""
        numbers = b""
        with suppress(OSError):  # it is empty, or not open yet
            numbers = os.read(self.ours, 4096)
        return sum(1 for number in numbers if number in SIGNALS)

    def _next(self) -> float | None:
        """Return the seconds until the next action; None for never."""
        now = time.monotonic()
        with self.lock:
            ends = [max(each.end, now + AGAIN) if each.over else each.end for each in self.running]
        soonest = min([self.stop_at, self.end_at, self.again_at, *ends], default=float("inf"))
        if self.at_once:
            soonest = min(soonest, now + AGAIN)
        return None if soonest == float("inf") else soonest - now

    def look(self) -> None:
        """Run the actions that are due."""
        now = time.monotonic()
        came = max(self.handled, self.heard)
        if came and not self.at_once:
            if self.stop_at == float("inf"):
                self.stop_at = now + (self.grace or 0.0)
            if came > 1 or now >= self.stop_at:
                self.stop(now)
                if came == 1 and self.grace is not None:
                    _thread.interrupt_main(signal.SIGTERM)
        if now >= self.again_at:
            self.again_at = float("inf")
            _thread.interrupt_main(self.last)
        if self.at_once and now >= self.end_at:
            leave(INTERRUPTED, self.words)
        self._interrupt(now)

    def stop(self, now: float) -> None:
        """Stop everything: statements by interrupts, and the process after a delay."""
        self.at_once, self.stop_at, self.end_at = True, float("inf"), now + PATIENCE

    def interrupt_main(self, number: int) -> None:
        """Interrupt the main thread, once: a second exception would hit its cleanup."""
        if not self.raised:
            self.raised, self.last = True, signal.Signals(number)
            raise KeyboardInterrupt

    def interrupt_again(self) -> None:
        """Make the thread interrupt the main thread once more, because the exception was lost.

        At once it would be lost, too: the main thread is still in the same callback.
        """
        self.raised, self.again_at = False, time.monotonic() + AGAIN
        self.wake()

    def _interrupt(self, now: float) -> None:
        # The lock is held meanwhile: a late interrupt would hit the session's next statement.
        with self.lock:
            due = [each for each in self.running if self.at_once or now >= each.end]
            for each in due:
                each.over = each.over or now >= each.end
                with suppress(Exception):
                    each.interrupt()
        for each in due:
            if now >= each.end + each.seconds + OVERDUE:
                text = (
                    f"A statement ran longer than {each.seconds:g} s and ignored the interrupt, so "
                    "sqlrun ended the process (SR746). "
                )
                leave(1, text + "This tick isn't published. The next build rolls it back.")


_watch = _Watch()
_print_unraisable = sys.unraisablehook


def _forked() -> None:
    """Limit a fork to its own signals."""
    global _watch
    before, _watch = _watch, _Watch()
    _watch.longest = before.longest
    if before.ours < 0:
        return
    with suppress(ValueError):
        previous = signal.set_wakeup_fd(-1)
        if previous == before.theirs:
            _watch.listen()
        else:
            signal.set_wakeup_fd(previous, warn_on_full_buffer=False)
    for end in (before.ours, before.theirs):
        os.close(end)


os.register_at_fork(after_in_child=_forked)


@contextmanager
def limited(interrupt: Callable[[], object], seconds: float | None = None) -> Iterator[Limited]:
    """Interrupt a statement at its time limit (the profile's by default) or when the process is to stop.

    `interrupt` is called repeatedly and must not block.
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
    """Set the time limit of statements in this process, in seconds."""
    _watch.longest = statement_timeout


def out_of_time(one: Limited) -> str:
    """Return the error message for a statement over its time limit."""
    return (
        f"SR745 the statement ran longer than the profile's `statement_timeout` of {one.seconds:g} s, "
        "and sqlrun stopped it"
    )


def is_stopping() -> bool:
    """Return whether the process is to stop at once."""
    return _watch.at_once


def was_interrupted() -> bool:
    """Return whether a signal has raised KeyboardInterrupt, which a library may have turned into another error."""
    return _watch.raised


def install() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end this command with 130; a signal ignored by the parent (nohup) stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)
    sys.unraisablehook = _lost
    _watch.listen()


def end_at_once() -> None:
    """Make signals end a command that exits without an exception: exit functions would print it and continue."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        leave(INTERRUPTED, STOPPED)

    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, end)


def _stop(number: int, frame: FrameType | None) -> None:
    """Handle a signal in the main thread."""
    del frame
    watch = _watch
    watch.handled += 1
    watch.start()
    watch.wake()
    watch.interrupt_main(number)


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt again after Python has lost the exception: in a `__del__` or a callback of a weak reference.

    Each import has such callbacks. Python would print a traceback and continue.
    """
    if unraisable.exc_type is KeyboardInterrupt and _watch.raised:
        _watch.interrupt_again()
    else:
        _print_unraisable(unraisable)


@contextmanager
def graceful(event: threading.Event, grace: float, notify: Callable[[str], None], words: str) -> Iterator[None]:
    """Set the event on the first signal and stop after `grace` seconds; a second signal stops at once.

    `notify` gets the signal's name. `words` is the message printed if the process has to be killed.
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
            watch.interrupt_main(number)
            return
        event.set()
        notify(signal.Signals(number).name)

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
    """Print the words and kill this process and its children, whatever they do."""
    with suppress(OSError):
        os.write(2, f"{words}\n".encode() if words else b"")
    for task in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ():  # noqa: PTH112, PTH208
        with suppress(OSError), open(f"/proc/self/task/{task}/children") as children:  # noqa: PTH123
            for process in children.read().split():
                os.kill(int(process), signal.SIGKILL)
    os._exit(code)
