{#- All versions of a table's rows, from the changes that a database sent, each with the time in which it was valid.

The arguments are as in `current_rows`, and `changes` has `committed_at`, too. A version is valid in the half-open span
[valid_from, valid_to); `valid_to` is NULL and `is_current` true if it still is. A change that was committed at an
earlier time than the one before it, by the database's clock, is valid from the same time as that one. A deletion or a
TRUNCATE ends a version and begins none; so does a complete snapshot that lacks the row, with `snapshots=true`. Without
it a row of a snapshot is older than every change of its key, as in `current_rows`. With `track`, a list of columns,
a change begins a version only if one of them differs; the other columns have their newest value in the version. The
grain is the key and `position`, that of the change that began the version. It is a whole query: the text of a model,
or a query in FROM.

    {{ history_rows(ref('customer_changes'), key=['id'], columns=['name', 'balance'], track=['name']) }}
-#}
{%- macro history_rows(changes, key, columns, snapshots=false, old_key=[], track=none) -%}
{%- set key = [key] if key is string else key -%}
{%- set keys = key | join(', ') -%}
{%- set old_key = [old_key] if old_key is string else old_key -%}
{%- set track = [track] if track is string else track -%}
{%- set place = "position" if snapshots else "log_place, position" -%}
with

once as (
    -- a change that was sent twice is one change; the hidden table of them has these columns alone
    select *
    from (
        select {{ (key + columns) | join(', ') }}, op, position, committed_at
        from {{ changes }}
        where op <> 't'
    ) as changes
    qualify row_number() over (partition by {{ keys }}, position order by committed_at) = 1
),
{%- if not snapshots %}

placed as (
    -- a transaction that was open when a snapshot was taken is newer, but may have an earlier position and time
    select
        {{ (key + columns) | join(', ') }},
        op,
        position,
        case when op = 'r' and log_first_changed_at < committed_at then log_first_changed_at else committed_at end as committed_at,
        case when op = 'r' then '' else position end as log_place
    from (
        select
            *,
            min(case when op = 'r' then position end) over (partition by {{ keys }}) as log_first_read,
            min(case when op <> 'r' then committed_at end) over (partition by {{ keys }}) as log_first_changed_at
        from once
    ) as known
    where op <> 'r' or position = log_first_read or log_first_changed_at is null
),
{%- endif %}

versions as (
    select
        {{ (key + columns) | join(', ') }},
        op,
        position,
        {%- if not snapshots %}
        log_place,
        {%- endif %}
        -- the database's clock may go back, its positions don't
        max(committed_at) over (partition by {{ keys }} order by {{ place }}) as valid_from,
        lead(position) over (partition by {{ keys }} order by {{ place }}) as next_position,
        lead(committed_at) over (partition by {{ keys }} order by {{ place }}) as next_committed_at
    from {{ 'once' if snapshots else 'placed' }}
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
{%- if track is not none %},

steps as (
{%- else %}
{% endif %}
select
    {%- for column in key + columns %}
    versions.{{ column }},
    {%- endfor %}
    versions.position,
    {%- if track is not none and not snapshots %}
    versions.log_place,
    {%- endif %}
    versions.valid_from,
    case
        when coalesce({{ ended | join(', ') }}, versions.next_committed_at) is not null
            then greatest(versions.valid_from, coalesce({{ ended | join(', ') }}, versions.next_committed_at))
    end as valid_to,
    versions.next_position is null and {{ ended | join(' is null and ') }} is null as is_current
    {%- if track is not none %},
    case when {{ ended | join(' is null and ') }} is null then versions.next_position end as next_position
    {%- endif %}
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
{%- if track is not none %}
),

marked as (
    -- a step goes on if the one before it ends where it begins, with the same values of the tracked columns
    select
        *,
        lag(next_position) over (partition by {{ keys }} order by {{ place }}) = position
        {%- for column in track %}
        and lag({{ column }}) over (partition by {{ keys }} order by {{ place }}) is not distinct from {{ column }}
        {%- endfor %} as track_goes_on
    from steps
),

numbered as (
    select
        *,
        sum(case when track_goes_on then 0 else 1 end) over (partition by {{ keys }} order by {{ place }}) as track_version
    from marked
),

spanned as (
    select
        *,
        first_value(position) over (partition by {{ keys }}, track_version order by {{ place }}) as track_first_position,
        first_value(valid_from) over (partition by {{ keys }}, track_version order by {{ place }}) as track_first_from,
        row_number() over (partition by {{ keys }}, track_version order by {{ 'position desc' if snapshots else 'log_place desc, position desc' }}) as track_from_the_end
    from numbered
)

select
    {{ (key + columns) | join(',\n    ') }},
    track_first_position as position,
    track_first_from as valid_from,
    valid_to,
    is_current
from spanned
where track_from_the_end = 1
{%- endif %}
{%- endmacro -%}
