{% set highest = 30 %}
select
    {{ listed(['dish_id', 'prize']) }},
    price
from {{ ref('dishes') }}
where cost < {{ highest }}
