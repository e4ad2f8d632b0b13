select *
from {{ ref('menu') }}
where hash(price) = 0
