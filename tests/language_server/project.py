"""A small project for the tests of the language server."""

from __future__ import annotations

from pathlib import Path

ORDERS = "select id, cast(total as decimal(9, 2)) as total from {{ ref('raw_orders') }}\n"
DAYS = """with orders as (
    select * from {{ ref('orders') }}
)

select o.id, count(*) as n
from orders as o
group by o.id
"""
FILES = {
    "pyproject.toml": '[tool.sqlrun]\nname = "shop"\nprofile = "local"\n',
    "profiles/local.yml": "engine: spark\nwarehouse: warehouse\n",
    "seeds/raw_orders.csv": "id,total\na,1\nb,2\n",
    "seeds/raw_orders.yml": (
        "seeds:\n  - name: raw_orders\n    description: Raw.\n    grain: [id]\n    columns:\n"
        "      - {name: id, data_type: string, description: The number.}\n"
        "      - {name: total, data_type: int, description: The total.}\n"
    ),
    "models/orders.sql": ORDERS,
    "models/orders.yml": (
        "models:\n  - name: orders\n    description: All orders.\n    grain: [id]\n    columns:\n"
        "      - {name: id, data_type: string, description: The number.}\n"
        "      - {name: total, data_type: 'decimal(9,2)', description: What is paid., unit: euro}\n"
    ),
    "models/days.sql": DAYS,
    "macros/doubled.sql": "{% macro doubled(x) %}2 * {{ x }}{% endmacro %}\n",
}


def written(root: Path) -> Path:
    """Write the project into a folder and return the folder."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
