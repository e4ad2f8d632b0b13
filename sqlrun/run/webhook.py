"""Delivery of a text to a webhook. Shell: the network."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO

from sqlrun.run.alerts import UnsentError
from sqlrun.version import __version__


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Reject redirects: the text is meant for the configured address only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def post(address: str, text: str, seconds: float) -> None:
    """Send a text to a webhook; a response of 2xx is a success, its body isn't read.

    Raises: UnsentError.
    """
    sent = urllib.request.Request(address, text.encode(), method="POST")
    sent.add_header("Content-Type", "application/json")
    sent.add_header("User-Agent", f"sqlrun/{__version__}")
    try:
        with urllib.request.build_opener(_NoRedirects).open(sent, timeout=seconds):
            return
    except urllib.error.HTTPError as error:
        error.close()
        if 300 <= error.code < 400:
            raise UnsentError(
                f"it answered {error.code}, a redirect, which sqlrun doesn't follow", again=False
            ) from None
        raise UnsentError(f"it answered {error.code}", again=error.code >= 500 or error.code in (408, 429)) from None
    except TimeoutError:
        raise UnsentError(f"no answer within {seconds:.0f} s") from None
    except urllib.error.URLError as error:
        raise UnsentError(_reason(error.reason, seconds)) from None
    except (OSError, HTTPException) as error:
        raise UnsentError(_reason(error, seconds)) from None


def _reason(error: object, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:.0f} s"
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__
