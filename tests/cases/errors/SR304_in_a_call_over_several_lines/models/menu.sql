select
    {{ listed(
        ['dish_id', 'prize'],
        'dishes'
    ) }}
from {{ ref('dishes') }} as dishes
