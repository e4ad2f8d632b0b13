{#-
    The menu,
    without what is too dear.
-#}
{{ config(
    tags=['menu']
) }}
{% set highest = 30 %}

select
    dish_id,
    {% for name in ['price'] %}
    {{ name }}
    {% endfor %}
from {{ ref('dishes') }}
where price < {{ highest }} )
