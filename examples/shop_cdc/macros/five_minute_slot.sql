{#- The end of the five-minute slot that holds a time.

A slot is half-open, (slot_at - 5 minutes, slot_at]: a time on the boundary belongs to the slot that ends there. That
is why a window of whole slots, (as_of - N hours, as_of], holds exactly the orders of those hours.

    {{ five_minute_slot('orders.ordered_at') }}

gives

    timestamp_seconds((unix_micros(orders.ordered_at) + 299999999) div 300000000 * 300)
-#}
{%- macro five_minute_slot(time) -%}
    timestamp_seconds((unix_micros({{ time }}) + 299999999) div 300000000 * 300)
{%- endmacro -%}
