{#- The start of the hour (UTC) that holds a time.

    {{ hour_of('slot_at') }}

gives

    date_trunc('hour', slot_at)
-#}
{%- macro hour_of(time) -%}
    date_trunc('hour', {{ time }})
{%- endmacro -%}
