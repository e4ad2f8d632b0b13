{{ current_rows(ref('order_changes'), key=['order_id'], columns=['restaurant_id', 'customer_id', 'status', 'version', 'total', 'ordered_at']) }}
