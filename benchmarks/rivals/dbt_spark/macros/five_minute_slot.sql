{#- The end of the five minutes that hold a time: (slot_at - 5 minutes, slot_at]. -#}
{%- macro five_minute_slot(time) -%}
    timestamp_seconds((unix_micros({{ time }}) + 299999999) div 300000000 * 300)
{%- endmacro -%}
