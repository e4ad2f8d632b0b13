{{ current_rows(ref('order_item_changes'), key=['order_id', 'line'], columns=['dish_id', 'quantity', 'unit_price']) }}
