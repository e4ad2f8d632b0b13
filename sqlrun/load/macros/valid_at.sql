{#- The condition of a join to the version of a row that was valid at a time.

`history` is the alias of a table with `valid_from` and `valid_to`, as `history_rows` makes it; `at` is an expression.
The span is half-open: at `valid_from` the version is valid, at `valid_to` the next one is. Join by the key, too:

    left join {{ ref('owner_history') }} as owners
        on orders.owner_id = owners.id and {{ valid_at('owners', 'orders.ordered_at') }}
-#}
{%- macro valid_at(history, at) -%}
{{ history }}.valid_from <= {{ at }} and ({{ history }}.valid_to is null or {{ at }} < {{ history }}.valid_to)
{%- endmacro -%}
