select dish_id, price
from {{ ref('dishes') }}
{% for number in range(10 ** 9) %}
union all select {{ number }}, 0
{% endfor %}
