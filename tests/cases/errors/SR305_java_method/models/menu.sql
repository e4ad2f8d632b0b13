select
    dish_id,
    cast(java_method('java.lang.System', 'getenv', 'HOME') as decimal(10, 2)) as price
from {{ ref('dishes') }}
