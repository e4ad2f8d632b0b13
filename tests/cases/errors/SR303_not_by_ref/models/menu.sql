select dish_id, price
from dishes
