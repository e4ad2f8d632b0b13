select
    dish_id,
{% for name in ['price'] %}
    {{ name }}
from {{ ref('dishes') }}
