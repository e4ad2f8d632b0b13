{#- The end of the five minutes that hold a time: (slot_at - 5 minutes, slot_at]. -#}
{%- macro five_minute_slot(time) -%}
    time_bucket(interval 5 minutes, {{ time }} + interval 299999999 microseconds)
{%- endmacro -%}
