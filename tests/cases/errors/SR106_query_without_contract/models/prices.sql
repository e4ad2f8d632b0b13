select price from {{ ref('menu') }}
