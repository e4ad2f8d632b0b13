{#- The generic tests of dbt_utils. Each is a query of the wrong rows; one of single rows reads changed rows alone. -#}

{%- macro test_accepted_range(model, column_name, min_value=none, max_value=none, inclusive=true) -%}
{%- if min_value is none and max_value is none -%}
{{ exceptions.raise_compiler_error("dbt_utils.accepted_range needs min_value or max_value") }}
{%- endif -%}
select * from {{ model }} where
{%- if min_value is not none %} {{ column_name }} {{ '<' if inclusive else '<=' }} {{ min_value }}{% endif %}
{%- if min_value is not none and max_value is not none %} or{% endif %}
{%- if max_value is not none %} {{ column_name }} {{ '>' if inclusive else '>=' }} {{ max_value }}{% endif %}
{%- endmacro -%}

{%- macro test_at_least_one(model, column_name) -%}
select count(*) as n_rows from {{ model }} having count({{ column_name }}) = 0
{%- endmacro -%}

{%- macro test_cardinality_equality(model, column_name, to, field) -%}
select * from (
select a.value, coalesce(a.n, 0) as n, coalesce(b.n, 0) as other
from (select {{ column_name }} as value, count(*) as n from {{ model }} group by 1) as a
full join (select {{ field }} as value, count(*) as n from {{ to }} group by 1) as b on a.value = b.value
) as compared where n <> other
{%- endmacro -%}

{#- Without compare_columns, the columns of both must be the same, in one order. -#}
{%- macro test_equality(model, compare_model, compare_columns=none) -%}
{%- set columns = compare_columns | join(', ') if compare_columns else '*' -%}
select * from (select {{ columns }} from {{ model }} except select {{ columns }} from {{ compare_model }}) as missing
union all
select * from (select {{ columns }} from {{ compare_model }} except select {{ columns }} from {{ model }}) as surplus
{%- endmacro -%}

{%- macro test_equal_rowcount(model, compare_model) -%}
select a.n, b.n as other
from (select count(*) as n from {{ model }}) as a cross join (select count(*) as n from {{ compare_model }}) as b
where a.n <> b.n
{%- endmacro -%}

{%- macro test_expression_is_true(model, expression, column_name=none) -%}
select * from {{ model }} where not ({% if column_name %}{{ column_name }} {% endif %}{{ expression }})
{%- endmacro -%}

{%- macro test_fewer_rows_than(model, compare_model) -%}
select a.n, b.n as other
from (select count(*) as n from {{ model }}) as a cross join (select count(*) as n from {{ compare_model }}) as b
where a.n >= b.n
{%- endmacro -%}

{%- macro test_mutually_exclusive_ranges(model, lower_bound_column, upper_bound_column, partition_by=none, gaps='allowed', zero_length_range_allowed=false) -%}
{%- if gaps not in ('allowed', 'not_allowed', 'required') -%}
{{ exceptions.raise_compiler_error("dbt_utils.mutually_exclusive_ranges has `gaps` allowed, not_allowed and required, not " ~ gaps) }}
{%- endif -%}
select * from (
select {% if partition_by %}{{ partition_by }} as part, {% endif %}{{ lower_bound_column }} as lower_bound, {{ upper_bound_column }} as upper_bound,
lead({{ lower_bound_column }}) over ({% if partition_by %}partition by {{ partition_by }} {% endif %}order by {{ lower_bound_column }}, {{ upper_bound_column }}) as next_lower_bound
from {{ model }}
) as ranges
where not (coalesce(lower_bound {{ '<=' if zero_length_range_allowed else '<' }} upper_bound, false)
and coalesce(upper_bound {{ {'allowed': '<=', 'not_allowed': '=', 'required': '<'}[gaps] }} next_lower_bound, true))
{%- endmacro -%}

{%- macro test_not_accepted_values(model, column_name, values, quote=true) -%}
select * from {{ model }}
where {{ column_name }} in ({% for value in values %}{% if quote and value is string %}'{{ dbt.escape_single_quotes(value) }}'{% else %}{{ value }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %})
{%- endmacro -%}

{%- macro test_not_constant(model, column_name) -%}
select count(*) as n_rows from {{ model }} having count(distinct {{ column_name }}) = 1
{%- endmacro -%}

{%- macro test_not_empty_string(model, column_name, trim_whitespace=true) -%}
select * from {{ model }} where {% if trim_whitespace %}trim({{ column_name }}){% else %}{{ column_name }}{% endif %} = ''
{%- endmacro -%}

{%- macro test_not_null_proportion(model, column_name, at_least, at_most=1.0) -%}
select count(*) as n_rows, count({{ column_name }}) as n_filled from {{ model }}
having count({{ column_name }}) < {{ at_least }} * count(*) or count({{ column_name }}) > {{ at_most }} * count(*)
{%- endmacro -%}

{%- macro test_recency(model, field, datepart, interval, ignore_time_component=false) -%}
{%- set limit = dbt.dateadd(datepart, -1 * interval, 'current_timestamp()') -%}
select max({{ field }}) as newest from {{ model }}
having max(cast({{ field }} as {{ 'date' if ignore_time_component else 'timestamp' }})) < {% if ignore_time_component %}cast({{ limit }} as date){% else %}{{ limit }}{% endif %}
{%- endmacro -%}

{%- macro test_relationships_where(model, column_name, to, field, from_condition='1 = 1', to_condition='1 = 1') -%}
select * from {{ model }} where ({{ from_condition }}) and {{ column_name }} is not null
and {{ column_name }} not in (select {{ field }} from {{ to }} where ({{ to_condition }}) and {{ field }} is not null)
{%- endmacro -%}

{%- macro test_sequential_values(model, column_name, interval=1, datepart=none) -%}
select * from (
select {{ column_name }} as value, lag({{ column_name }}) over (order by {{ column_name }}) as previous from {{ model }}
) as steps
where not (value = {% if datepart %}{{ dbt.dateadd(datepart, interval, 'previous') }}{% else %}previous + {{ interval }}{% endif %})
{%- endmacro -%}

{%- macro test_unique_combination_of_columns(model, combination_of_columns, quote_columns=false) -%}
{%- set columns = [] -%}
{%- for column in combination_of_columns %}{% do columns.append(adapter.quote(column) if quote_columns else column) %}{% endfor -%}
select {{ columns | join(', ') }}, count(*) as n_rows from {{ model }} group by {{ columns | join(', ') }} having count(*) > 1
{%- endmacro -%}
