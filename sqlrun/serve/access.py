"""Authentication by signed tokens, and the rows that a caller may see. Pure.

A token is valid if a current key has signed it with that key's algorithm, and it hasn't expired.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlrun.serve.keys import Key

AUDIENCE = "sqlrun"
# Tokens for ingest have an audience of their own: they read nothing, and no other token writes.
INGEST = "sqlrun-ingest"
# The claim of an ingest token that lists its sources, each as `group.name`.
SOURCES = "sources"
# The one route that they open.
INGEST_ROUTE = "/api/v1/ingest/{group}/{name}"
OPERATOR = "operator"
LONGEST_TOKEN = 8192
MOST_OWNERS = 1000
LONGEST_ID = 1000
# The largest time in a claim: the year 33658.
LAST_TIME = 10**12
# Maximum number of cached tokens: a page sends the same token every few minutes.
REMEMBERED = 20_000
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller and the rows that they may see: rows of `owns`, ids by claim, or all rows for an operator.

    `until` is the token's expiry as Unix time. `id` distinguishes callers in logs and limits without revealing the
    token.
    """

    id: str
    owns: Mapping[str, frozenset[str]]
    operator: bool = False
    until: float = float("inf")

    def may_see(self, claim: str, owner: str) -> bool:
        """Return whether the caller may see rows of an owner."""
        return self.operator or owner in self.owned(claim)

    def owned(self, claim: str) -> frozenset[str]:
        """Return the ids that a claim lists."""
        return self.owns.get(claim, NOTHING)


# Without a key the server listens on loopback only, where a process that can open a socket can read the files too.
ANYBODY_HERE = Caller("local", {}, True)


class Refused(Exception):
    """The token is invalid; the text is the reason, without any part of the token."""


class Gatekeeper:
    """Validates tokens for an audience, and caches valid ones. `claims` are the claims that list owners' ids."""

    def __init__(self, keys: Mapping[str, Key], claims: Collection[str], audience: str = AUDIENCE) -> None:
        self._keys, self._claims, self._audience = keys, claims, audience
        self._known: OrderedDict[str, Caller] = OrderedDict()

    def use(self, keys: Mapping[str, Key]) -> None:
        """Replace the keys, and forget all cached tokens."""
        self._keys, self._known = keys, OrderedDict()

    def caller(self, token: str, now: float) -> Caller:
        """Return the caller of a token. `now` is Unix time.

        Raises: Refused if the token is invalid or has expired.
        """
        known = self._known.get(token)
        if known is None:
            known = self._read(token, now)
            self._known[token] = known
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        if known.until <= now:
            raise Refused("the token has expired")
        return known

    def _read(self, token: str, now: float) -> Caller:
        import jwt

        if len(token) > LONGEST_TOKEN:
            raise Refused("the token is too long")
        try:
            kid = jwt.get_unverified_header(token).get("kid", "")
            key = self._keys.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise Refused("no valid key has signed the token")
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=self._audience,
                # A token with both audiences reads, and doesn't ingest.
                options={"require": ["exp", "aud"], "verify_exp": False, "strict_aud": self._audience == INGEST},
            )
        except Refused:
            raise
        except Exception as error:  # of any kind: a stranger's token may be nested, huge or of a wrong type
            raise Refused(_why(error, self._audience)) from None
        return _caller(claims, self._claims, sha256(token.encode()).hexdigest()[:12])


def _why(error: Exception, audience: str) -> str:
    import jwt

    match error:
        case jwt.MissingRequiredClaimError():
            return f"the token has no `{error.claim}`"
        case jwt.InvalidAudienceError():
            return f"the token isn't for `{audience}`"
        case jwt.ImmatureSignatureError():
            return "the token isn't valid yet"
        case _:
            return "the token has no valid signature"


def _caller(claims: Mapping[str, Any], named: Collection[str], name: str) -> Caller:
    until, scope = claims["exp"], claims.get("scope", "")
    for claim in ("exp", "iat", "nbf"):
        if claim in claims and not _is_time(claims[claim]):
            raise Refused(f"the token's `{claim}` is not a time")
    owns = {claim: frozenset(_ids(claim, claims[claim])) for claim in named if claim in claims}
    if not isinstance(scope, str):
        raise Refused("the token's `scope` is not a text")
    operator = OPERATOR in scope.split()
    if not any(owns.values()) and not operator:
        raise Refused("the token has neither a key of an entity served here nor a scope")
    return Caller(name, owns, operator, float(until))


def _ids(claim: str, listed: Any) -> list[str]:
    if not isinstance(listed, list) or len(listed) > MOST_OWNERS or not all(_is_id(one) for one in listed):
        raise Refused(f"the token's `{claim}` is not a list of ids")
    return listed


def _is_time(value: Any) -> bool:
    """Return whether a claim is a time in seconds: a finite number in range. JSON also parses NaN and Infinity."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LAST_TIME < value < LAST_TIME


def _is_id(value: Any) -> bool:
    """Return whether a claim may be an id: a text that UTF-8 can encode, so without a lone surrogate."""
    return isinstance(value, str) and len(value) <= LONGEST_ID and not any("\ud800" <= c <= "\udfff" for c in value)


def token(key: Key, owns: Mapping[str, list[str]], operator: bool, now: float, seconds: float) -> str:
    """Return a signed token for an owner's ids, by claim, or for an operator. `now` is Unix time."""
    claims: dict[str, Any] = {"aud": AUDIENCE, "iat": int(now), "exp": int(now + seconds)}
    claims |= {claim: ids for claim, ids in owns.items() if ids}
    if operator:
        claims["scope"] = OPERATOR
    return _signed(key, claims)


def ingest_token(key: Key, sources: Sequence[str], now: float, seconds: float) -> str:
    """Return a signed token to send lines to sources, each given as `group.name`. `now` is Unix time."""
    return _signed(key, {"aud": INGEST, "iat": int(now), "exp": int(now + seconds), SOURCES: list(sources)})


def _signed(key: Key, claims: dict[str, Any]) -> str:
    import jwt

    return jwt.encode(claims, key.key, algorithm=key.algorithm, headers={"kid": key.kid} if key.kid else None)
