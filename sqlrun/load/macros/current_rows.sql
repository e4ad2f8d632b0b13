{#- The current rows of a table, from the changes that a database sent: the newest change of each key, unless it deletes.

`changes` is the model that lands the changes, with the columns `op` and `position`, and `unavailable` if that is used.
Its rows may have been sent twice, late, or in another order. `key` and `columns` are lists of its columns. A column in
`unavailable` keeps its last known value while changes leave it alone; `is_resolved` is false if no change of the key
has had one. A row older than the newest TRUNCATE is gone. A row of a snapshot is older than every change of its key,
whatever its position: a transaction that was open when the snapshot was taken may have written its changes to the log
before that. With `snapshots=true`, `changes` has the column `snapshot`, too, and each snapshot is the table at its
position: it replaces older changes, and a row that the newest complete one lacks is gone. `old_key` lists columns
with the key that a change replaced, NULL for any other change: the row of that key is gone. The grain is the key. It
is a whole query: the text of a model, or a query in FROM.

    {{ current_rows(ref('customer_changes'), key=['id'], columns=['name', 'balance']) }}
-#}
{%- macro current_rows(changes, key, columns, unavailable=[], snapshots=false, old_key=[]) -%}
{%- set key = [key] if key is string else key -%}
{%- set keys = key | join(', ') -%}
{%- set old_key = [old_key] if old_key is string else old_key -%}
{%- set is_change = "" if snapshots else ", op <> 'r' as is_log_change" -%}
{%- set newest = "position desc" if snapshots else "is_log_change desc, position desc" -%}
with

latest as (
    -- the hidden table of the newest changes has these columns alone
    select *
    from (select {{ (key + columns) | join(', ') }}, op, position{{ is_change }} from {{ changes }} where op <> 't') as changes
    qualify row_number() over (partition by {{ keys }} order by {{ newest }}) = 1
)
{%- for column in unavailable %},

known_{{ loop.index }} as (
    -- an insert without the value moved the row from another key, whose values aren't this key's
    select *
    from (
        select {{ keys }}, {{ column }}, not array_contains(unavailable, '{{ column }}') as is_known, position{{ is_change }}
        from {{ changes }}
        where op <> 't' and (op = 'c' or not array_contains(unavailable, '{{ column }}'))
    ) as changes
    qualify row_number() over (partition by {{ keys }} order by {{ newest }}) = 1
)
{%- endfor %}
{%- if old_key %},

moved as (
    -- when a key's row got another key
    select
        {%- for column in key %}
        {{ old_key[loop.index0] }} as {{ column }},
        {%- endfor %}
        max(position) as position
    from {{ changes }}
    where {{ old_key[0] }} is not null
    group by {{ old_key | join(', ') }}
)
{%- endif %}

select
    {%- for column in key + columns %}
    latest.{{ column }},
    {%- endfor %}
    {%- for column in unavailable %}
    known_{{ loop.index }}.{{ column }},
    {%- endfor %}
    {%- if unavailable %}
    {% for column in unavailable %}{{ " and " if not loop.first }}coalesce(known_{{ loop.index }}.is_known, false){% endfor %} as is_resolved,
    {%- endif %}
    latest.position
from latest
{%- for column in unavailable %}
{%- set known = "known_" ~ loop.index %}
left join {{ known }}
    on {% for name in key %}{{ " and " if not loop.first }}latest.{{ name }} = {{ known }}.{{ name }}{% endfor %}
{%- endfor %}
{%- if old_key %}
left join moved
    on {% for name in key %}{{ " and " if not loop.first }}latest.{{ name }} = moved.{{ name }}{% endfor %}
{%- endif %}
where latest.op <> 'd'
    {%- if old_key %}
    and (moved.position is null or latest.position >= moved.position)
    {%- endif %}
    and latest.position > coalesce((select max(position) from {{ changes }} where op = 't'), '')
    {%- if snapshots %}
    -- all rows of a snapshot have one position, and the last one that is sent says so
    and latest.position >= coalesce(
        (select max(position) from {{ changes }} where snapshot in ('last', 'last_in_data_collection')), ''
    )
    {%- endif %}
{%- endmacro -%}
