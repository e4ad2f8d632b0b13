{#- The rows of a CTE once for each window that they are in: the last 1, 24, ... hours up to as_of.

`hours` is a list of whole hours, `columns` what to keep of the CTE. A window is half-open, (as_of - N hours, as_of].

    {{ rolling_windows('slots', 'slot_at', ['restaurant_id', 'quantity'], [1, 24]) }}

gives

    select
        1 as window_hours,
        restaurant_id,
        quantity
    from slots
    where slot_at > current_timestamp() - interval 1 hours
        and slot_at <= current_timestamp()
    union all
    select
        24 as window_hours,
        restaurant_id,
        quantity
    from slots
    where slot_at > current_timestamp() - interval 24 hours
        and slot_at <= current_timestamp()
-#}
{%- macro rolling_windows(cte, time, columns, hours) -%}
    {%- for number in hours %}
    {%- if not loop.first %}
    union all
    {%- endif %}
    select
        {{ number }} as window_hours,
        {%- for column in columns %}
        {{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    from {{ cte }}
    where {{ time }} > current_timestamp() - interval {{ number }} hours
        and {{ time }} <= current_timestamp()
    {%- endfor %}
{%- endmacro -%}
