// Written by `SQLRUN_WRITE=1 python -m pytest tests/report/test_outcomes.py`, from sqlrun/outcome.py.

// The class of a check's outcome on the page.
export const LEVELS = { pass: "good", warn: "warn", info: "info", fail: "bad", error: "bad", unjudged: "info" };

// The outcomes of which nothing has to be seen.
export const GOOD = ["pass"];
