{{ history_rows(ref('order_changes'), key=['order_id'], columns=['status', 'total']) }}
