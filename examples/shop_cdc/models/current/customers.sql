{{ current_rows(ref('customer_changes'), key=['customer_id'], columns=['city']) }}
