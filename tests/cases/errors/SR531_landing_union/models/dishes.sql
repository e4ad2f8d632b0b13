select order_id
from {{ ref('cheap') }}
