select dish_id, price
from read_files('/etc')
