{#- Macros of dbt_date as Spark SQL. The current time is the tick's; `dbt_date:time_zone` is a var, UTC unless set. -#}

{%- macro convert_timezone(column, target_tz=none, source_tz=none) -%}
{%- set target = target_tz or var('dbt_date:time_zone', 'UTC') -%}
from_utc_timestamp({% if source_tz and source_tz != 'UTC' %}to_utc_timestamp({{ column }}, '{{ source_tz }}'){% else %}{{ column }}{% endif %}, '{{ target }}')
{%- endmacro -%}

{%- macro date(year, month, day) -%} make_date({{ year }}, {{ month }}, {{ day }}) {%- endmacro -%}

{%- macro date_part(datepart, date) -%}
{%- set part = datepart | lower -%}
{%- set calls = {'dayofweek': 'dayofweek', 'dow': 'dayofweek', 'dayofyear': 'dayofyear', 'doy': 'dayofyear', 'week': 'weekofyear', 'isoweek': 'weekofyear', 'year': 'year', 'quarter': 'quarter', 'month': 'month', 'day': 'day', 'hour': 'hour', 'minute': 'minute', 'second': 'second'} -%}
{%- if part not in calls -%}
{{ exceptions.raise_compiler_error("dbt_date.date_part() doesn't know the date part `" ~ datepart ~ "`") }}
{%- endif -%}
{{ calls[part] }}({{ date }})
{%- endmacro -%}

{%- macro day_name(date, short=true) -%} date_format({{ date }}, '{{ 'EEE' if short else 'EEEE' }}') {%- endmacro -%}
{%- macro day_of_month(date) -%} day({{ date }}) {%- endmacro -%}
{%- macro day_of_week(date, isoweek=true) -%}
{% if isoweek %}(weekday({{ date }}) + 1){% else %}dayofweek({{ date }}){% endif %}
{%- endmacro -%}
{%- macro day_of_year(date) -%} dayofyear({{ date }}) {%- endmacro -%}

{%- macro from_unixtimestamp(epochs, format='seconds') -%}
{%- if format not in ('seconds', 'milliseconds', 'microseconds') -%}
{{ exceptions.raise_compiler_error("dbt_date.from_unixtimestamp() has the formats seconds, milliseconds and microseconds, not " ~ format) }}
{%- endif -%}
timestamp_{{ {'seconds': 'seconds', 'milliseconds': 'millis', 'microseconds': 'micros'}[format] }}({{ epochs }})
{%- endmacro -%}

{#- Without dates, the last parts until yesterday, or the last whole part: the spine moves with the tick. -#}
{%- macro get_base_dates(start_date=none, end_date=none, n_dateparts=none, datepart="day") -%}
{%- if start_date and end_date -%}
{%- set first, last = "cast('" ~ start_date ~ "' as timestamp)", "cast('" ~ end_date ~ "' as timestamp)" -%}
{%- elif n_dateparts -%}
{%- set first, last = dbt.dateadd(datepart, -1 * n_dateparts, dbt_date.today()), dbt_date.tomorrow() -%}
{%- else -%}
{{ exceptions.raise_compiler_error("dbt_date.get_base_dates() needs start_date and end_date, or n_dateparts") }}
{%- endif -%}
{{ dbt_utils.date_spine(datepart, first, last) }}
{%- endmacro -%}

{%- macro iso_week_end(date=none, tz=none) -%} date_add({{ dbt_date.iso_week_start(date, tz) }}, 6) {%- endmacro -%}
{%- macro iso_week_of_year(date=none, tz=none) -%} weekofyear({{ date or dbt_date.today(tz) }}) {%- endmacro -%}
{%- macro iso_week_start(date=none, tz=none) -%} to_date(date_trunc('week', {{ date or dbt_date.today(tz) }})) {%- endmacro -%}

{%- macro last_month(tz=none) -%} {{ dbt_date.n_months_ago(1, tz) }} {%- endmacro -%}
{%- macro last_month_name(short=true, tz=none) -%} {{ dbt_date.month_name(dbt_date.last_month(tz), short) }} {%- endmacro -%}
{%- macro last_month_number(tz=none) -%} month({{ dbt_date.last_month(tz) }}) {%- endmacro -%}
{%- macro last_week(tz=none) -%} {{ dbt_date.n_weeks_ago(1, tz) }} {%- endmacro -%}
{%- macro month_name(date, short=true) -%} date_format({{ date }}, '{{ 'MMM' if short else 'MMMM' }}') {%- endmacro -%}

{%- macro n_days_ago(n, date=none, tz=none) -%} date_sub({{ date or dbt_date.today(tz) }}, {{ n | int }}) {%- endmacro -%}
{%- macro n_days_away(n, date=none, tz=none) -%} date_add({{ date or dbt_date.today(tz) }}, {{ n | int }}) {%- endmacro -%}
{%- macro n_weeks_ago(n, tz=none) -%} to_date(date_trunc('week', date_sub({{ dbt_date.today(tz) }}, {{ 7 * (n | int) }}))) {%- endmacro -%}
{%- macro n_weeks_away(n, tz=none) -%} to_date(date_trunc('week', date_add({{ dbt_date.today(tz) }}, {{ 7 * (n | int) }}))) {%- endmacro -%}
{%- macro n_months_ago(n, tz=none) -%} to_date(date_trunc('month', add_months({{ dbt_date.today(tz) }}, {{ -1 * (n | int) }}))) {%- endmacro -%}
{%- macro n_months_away(n, tz=none) -%} to_date(date_trunc('month', add_months({{ dbt_date.today(tz) }}, {{ n | int }}))) {%- endmacro -%}
{%- macro next_month(tz=none) -%} {{ dbt_date.n_months_away(1, tz) }} {%- endmacro -%}
{%- macro next_month_name(short=true, tz=none) -%} {{ dbt_date.month_name(dbt_date.next_month(tz), short) }} {%- endmacro -%}
{%- macro next_month_number(tz=none) -%} month({{ dbt_date.next_month(tz) }}) {%- endmacro -%}
{%- macro next_week(tz=none) -%} {{ dbt_date.n_weeks_away(1, tz) }} {%- endmacro -%}

{%- macro now(tz=none) -%}
{%- set zone = tz or var('dbt_date:time_zone', 'UTC') -%}
{% if zone == 'UTC' %}current_timestamp(){% else %}from_utc_timestamp(current_timestamp(), '{{ zone }}'){% endif %}
{%- endmacro -%}

{%- macro periods_since(date_col, period_name='day', tz=none) -%} {{ dbt.datediff(date_col, dbt_date.now(tz), period_name) }} {%- endmacro -%}
{%- macro round_timestamp(timestamp) -%} date_trunc('day', {{ dbt.dateadd('hour', 12, timestamp) }}) {%- endmacro -%}
{%- macro to_unixtimestamp(timestamp) -%} unix_timestamp({{ timestamp }}) {%- endmacro -%}
{#- to_date, not a cast: a cast of constants is an error, because Spark reads some texts by its own clock. -#}
{%- macro today(tz=none) -%}
{%- set zone = tz or var('dbt_date:time_zone', 'UTC') -%}
{% if zone == 'UTC' %}current_date(){% else %}to_date({{ dbt_date.now(tz) }}){% endif %}
{%- endmacro -%}
{%- macro tomorrow(date=none, tz=none) -%} {{ dbt_date.n_days_away(1, date, tz) }} {%- endmacro -%}
{%- macro yesterday(date=none, tz=none) -%} {{ dbt_date.n_days_ago(1, date, tz) }} {%- endmacro -%}

{#- A week begins on Sunday; iso_week_start begins it on Monday. -#}
{%- macro week_start(date=none, tz=none) -%}
date_sub(to_date(date_trunc('week', date_add({{ date or dbt_date.today(tz) }}, 1))), 1)
{%- endmacro -%}
{%- macro week_end(date=none, tz=none) -%} date_add({{ dbt_date.week_start(date, tz) }}, 6) {%- endmacro -%}
{%- macro week_of_year(date=none, tz=none) -%} cast(ceil(dayofyear({{ date or dbt_date.today(tz) }}) / 7) as int) {%- endmacro -%}
