{#- All versions of a table's rows, from the changes that a database sent, each with the time in which it was valid.

The arguments are as in `current_rows`, and `changes` has `committed_at`, too. A version is valid in the half-open span
[valid_from, valid_to); `valid_to` is NULL and `is_current` true if it still is. A change that was committed at an
earlier time than the one before it, by the database's clock, is valid from the same time as that one. Of changes of a
row that are valid from the same time, the last one is a version. So each version lasts, and no two of a row overlap. A
deletion or a TRUNCATE ends a version and begins none; so does a complete snapshot that lacks the row, with
`snapshots=true`. Without it a row of a snapshot is older than every change of its key, as in `current_rows`: it is a
version if it was read before the first of them. With `track`, a list of columns, a change begins a version only if one
of them differs; the other columns have their newest value in the version. The grain is the key and `position`, that of
the change that began the version. It is a whole query: the text of a model, or a query in FROM.

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
    -- a snapshot's row is older than each change of its key: it says what was before them, or nothing new
    select
        {{ (key + columns) | join(', ') }}, op, position, committed_at, case when op = 'r' then '' else position end as log_place
    from (
        select *, min(case when op <> 'r' then committed_at end) over (partition by {{ keys }}) as log_first_changed_at
        from once
    ) as known
    where op <> 'r' or log_first_changed_at is null or committed_at < log_first_changed_at
),
{%- endif %}

versions as (
    -- what another change replaced at the same time was never valid
    select *, case when next_position is not null then greatest(valid_from, next_committed_at) end as next_valid_from
    from (
        select
            *,
            -- the database's clock may go back, its positions don't
            max(committed_at) over (partition by {{ keys }} order by {{ place }}) as valid_from,
            lead(position) over (partition by {{ keys }} order by {{ place }}) as next_position,
            lead(committed_at) over (partition by {{ keys }} order by {{ place }}) as next_committed_at
        from {{ 'once' if snapshots else 'placed' }}
    ) as timed
    where next_position is null or valid_from is null or greatest(valid_from, next_committed_at) <> valid_from
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
{%- set ended = ["moved.ended_at", "truncated.ended_at"] if old_key else ["truncated.ended_at"] %},

steps as (
    select
        {%- for column in key + columns %}
        versions.{{ column }},
        {%- endfor %}
        versions.position,
        {%- if track is not none and not snapshots %}
        versions.log_place,
        {%- endif %}
        versions.valid_from,
        -- versions of a row don't overlap, whatever the times of changes that end them
        case
            when coalesce({{ ended | join(', ') }}, versions.next_valid_from) is not null
                then greatest(versions.valid_from, least({{ ended | join(', ') }}, versions.next_valid_from))
        end as valid_to,
        versions.next_position is null and {{ ended | join(' is null and ') }} is null as is_current
        {%- if track is not none %},
        {{ ended | join(' is not null or ') }} is not null as track_was_ended
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
)
{%- if track is none %}

select *
from steps
where valid_to is null or valid_to is distinct from valid_from
{%- else %},

marked as (
    -- a step goes on if the one before it ends where it begins, with the same values of the tracked columns
    select
        *,
        lag(valid_to) over (partition by {{ keys }} order by {{ place }}) = valid_from
        and not lag(track_was_ended) over (partition by {{ keys }} order by {{ place }})
        {%- for column in track %}
        and lag({{ column }}) over (partition by {{ keys }} order by {{ place }}) is not distinct from {{ column }}
        {%- endfor %} as track_goes_on
    from (select * from steps where valid_to is null or valid_to is distinct from valid_from) as steps
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
