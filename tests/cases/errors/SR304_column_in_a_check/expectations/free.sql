-- No dish is free.
select *
from {{ ref('menu') }}
where prize = 0
