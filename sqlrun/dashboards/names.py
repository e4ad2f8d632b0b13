"""Default names of a dashboard's parts, used where its YAML has none. Pure."""

from __future__ import annotations

from sqlrun.dashboards.nouns import Words


def entity_name(column: str) -> str:
    """Return the entity's name from its key column: the part before `_id`, `_key` or `_code`.

    >>> entity_name("site_id"), entity_name("SKU")
    ('site', 'sku')
    """
    small = column.lower()
    stem = next((small.removesuffix(end) for end in ("_id", "_key", "_code") if small.endswith(end)), small)
    return stem or "entity"


def titled(name: str) -> str:
    """Return a label made from a column's name.

    >>> titled("n_orders"), titled("total_sales")
    ('Orders', 'Total sales')
    """
    return name.removeprefix("n_").replace("_", " ").strip().capitalize()


def in_english(words: Words) -> str:
    """Return a text in English, else in its first language; "" if it has none."""
    texts = dict(words)
    return texts.get("en") or texts.get("") or next(iter(texts.values()), "")
