select * from {{ ref('menu') }} where price < 0
