{#- All versions of a table's rows, from the changes that a database sent, each with the time in which it was valid.

The arguments are as in `current_rows`, and `changes` has `committed_at`, too. A version is valid in the half-open span
[valid_from, valid_to); `valid_to` is NULL and `is_current` true if it still is. A deletion or a TRUNCATE ends a version
and begins none; so does a complete snapshot that lacks the row, with `snapshots=true`. The grain is the key and
`position`. It is a whole query: the text of a model, or a query in FROM.

    {{ history_rows(ref('customer_changes'), key=['id'], columns=['name', 'balance']) }}
-#}
{%- macro history_rows(changes, key, columns, snapshots=false, old_key=[]) -%}
{%- set key = [key] if key is string else key -%}
{%- set keys = key | join(', ') -%}
{%- set old_key = [old_key] if old_key is string else old_key -%}
with

once as (
    -- a change that was sent twice is one change
    select {{ (key + columns) | join(', ') }}, op, position, committed_at
    from {{ changes }}
    where op <> 't'
    qualify row_number() over (partition by {{ keys }}, position order by committed_at) = 1
),

versions as (
    select
        {{ (key + columns) | join(', ') }},
        op,
        position,
        committed_at as valid_from,
        lead(position) over (partition by {{ keys }} order by position) as next_position,
        lead(committed_at) over (partition by {{ keys }} order by position) as next_from
    from once
),

truncates as (
    {%- if snapshots %}
    -- a snapshot begins a version of each of its rows: for any other it is a truncate
    {%- endif %}
    select position, min(committed_at) as committed_at
    from {{ changes }}
    where op = 't'{{ " or snapshot in ('last', 'last_in_data_collection')" if snapshots }}
    group by position
),

truncated as (
    select
        {%- for column in key %}
        versions.{{ column }},
        {%- endfor %}
        versions.position,
        min(truncates.committed_at) as ended_at
    from versions
    inner join truncates
        on truncates.position > versions.position
        and (versions.next_position is null or truncates.position < versions.next_position)
    group by {% for column in key %}versions.{{ column }}, {% endfor %}versions.position
)
{%- if old_key %},

moves as (
    -- a change that was sent twice is one change
    select
        {%- for column in key %}
        {{ old_key[loop.index0] }} as {{ column }},
        {%- endfor %}
        position,
        min(committed_at) as committed_at
    from {{ changes }}
    where {{ old_key[0] }} is not null
    group by {{ old_key | join(', ') }}, position
),

moved as (
    select
        {%- for column in key %}
        versions.{{ column }},
        {%- endfor %}
        versions.position,
        min(moves.committed_at) as ended_at
    from versions
    inner join moves
        on {% for column in key %}versions.{{ column }} = moves.{{ column }} and {% endfor -%}
        moves.position > versions.position
        and (versions.next_position is null or moves.position < versions.next_position)
    group by {% for column in key %}versions.{{ column }}, {% endfor %}versions.position
)
{%- endif %}
{%- set ended = ["moved.ended_at", "truncated.ended_at"] if old_key else ["truncated.ended_at"] %}

select
    {%- for column in key + columns %}
    versions.{{ column }},
    {%- endfor %}
    versions.position,
    versions.valid_from,
    coalesce({{ ended | join(', ') }}, versions.next_from) as valid_to,
    versions.next_from is null and {{ ended | join(' is null and ') }} is null as is_current
from versions
left join truncated
    on {% for column in key %}versions.{{ column }} = truncated.{{ column }} and {% endfor -%}
    versions.position = truncated.position
{%- if old_key %}
left join moved
    on {% for column in key %}versions.{{ column }} = moved.{{ column }} and {% endfor -%}
    versions.position = moved.position
{%- endif %}
where versions.op <> 'd'
{%- endmacro -%}
