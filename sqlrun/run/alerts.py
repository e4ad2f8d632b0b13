"""Alerts about ticks that aren't published, or are again: when to send one, and its text. Pure.

An unpublished tick breaks a project. A published one heals it if it updated everything that was broken. Each state is
sent once. The text names models, checks and numbers of rows. It has no values of rows, and no engine messages, which
could quote some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlrun.events import CheckResult, NodeResult, TickResult
from sqlrun.report.findings import LONGEST_SAMPLE, About, clean, headline, held_back

State = Literal["broken", "healed"]
# Maximum number of findings: people read messages on a phone, and the report has all of them.
MOST = 50


class UnsentError(Exception):
    """A failed try, with a reason free of secrets; `again` is False if another try can't succeed."""

    def __init__(self, why: str, *, again: bool = True) -> None:
        self.again = again
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Broken:
    """State of a project at its alert: the first broken tick, and what is broken as (model, check or "")."""

    tick: int
    as_of: str
    what: tuple[tuple[str, str], ...]


def change(result: TickResult, sent: Broken | None, there: Sequence[str]) -> State | None:
    """Return whether a tick breaks or heals a project; `sent` is the state last sent, None for an intact project.

    `there` are the models, seeds and landings of the project: one that was deleted can't stay broken.
    """
    if not result.published:
        return "broken" if sent is None else None
    if sent is None:
        return None
    done = {node.name for node in result.nodes if node.status in ("success", "no-op")}
    waiting = {model for model, _ in sent.what} & set(there) - done
    return None if waiting else "healed"


def broken(result: TickResult) -> Broken:
    """Return the failed steps and checks of a tick."""
    what = [(node.name, "") for node in result.nodes if node.status == "error"]
    what += [(check.model, _named(check)) for check in result.checks if check.status.blocks]
    return Broken(result.tick, result.as_of.isoformat(), tuple(what))


def still_broken(sent: Broken, result: TickResult) -> Broken:
    """Return the state with the failures of a later tick added; they have to heal too before the next alert."""
    return replace(sent, what=tuple(dict.fromkeys([*sent.what, *broken(result).what])))


def _named(check: CheckResult) -> str:
    return f"{check.type}({', '.join(check.columns)})" if check.columns else check.type


def payload(state: State, result: TickResult, about: About, sent: Broken | None) -> str:
    """Return the alert as JSON; `text` is the sentence that chats show."""
    now = broken(result)
    found = [_step(node) for node in result.nodes if node.status == "error"]
    found += [_check(check) for check in result.checks if check.status.blocks]
    skipped = {name for model, _ in now.what for name in held_back(model, result, about)}
    said = {
        "text": f"{clean(about.project)}: {headline(result, about)}",
        "state": state,
        "project": clean(about.project),
        "environment": clean(about.env),
        "profile": clean(about.profile),
        "tick": result.tick or None,
        "as_of": result.as_of.isoformat(),
        "published": result.published,
        "readers_see_tick": (result.tick if result.published else about.before) or None,
        "findings": found[:MOST],
        "findings_left_out": max(0, len(found) - MOST),
        "not_up_to_date": sorted(skipped)[:MOST],
        "broke": [_pair(*pair) for pair in now.what[:MOST]] if state == "broken" else [],
        "healed": [_pair(*pair) for pair in sent.what[:MOST]] if state == "healed" and sent else [],
        "broken_since": {"tick": sent.tick or None, "as_of": sent.as_of} if sent else None,
    }
    return json.dumps(said)


def _pair(model: str, check: str) -> dict[str, str]:
    return {"model": clean(model), "check": clean(check)}


def _step(node: NodeResult) -> dict[str, object]:
    return {"kind": "step", "model": clean(node.name), "step": clean(node.kind), "status": "error"}


def _check(check: CheckResult) -> dict[str, object]:
    return {
        "kind": "check",
        "model": clean(check.model),
        "check": clean(check.type),
        "columns": [clean(name) for name in check.columns],
        "severity": check.severity,
        "status": check.status.stored,
        "rows": check.unexpected,
        "of_rows": check.evaluated,
        "description": clean(check.description, LONGEST_SAMPLE),
        "place": clean(str(check.place)),
        "check_id": check.check_id,
    }


def to_json(states: Mapping[str, Broken]) -> str:
    """Return the delivered alerts by receiver as JSON."""
    kept = {way: {"tick": b.tick, "as_of": b.as_of, "what": [list(p) for p in b.what]} for way, b in states.items()}
    return json.dumps({"broken": kept}, indent=1) + "\n"


def from_json(text: str) -> dict[str, Broken]:
    """Return the delivered alerts that `to_json` wrote.

    Raises: ValueError, KeyError or TypeError if it is something else.

    >>> from_json(to_json({"webhook": Broken(3, "", (("orders", ""),))}))["webhook"].what
    (('orders', ''),)
    """
    found = json.loads(text)["broken"]
    return {
        str(way): Broken(int(b["tick"]), str(b["as_of"]), tuple((str(m), str(c)) for m, c in b["what"]))
        for way, b in found.items()
    }
