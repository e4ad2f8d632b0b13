{#- The tests of dbt_expectations that compare a model's own rows. Each is a query of the wrong rows. -#}

{#- ` and` with a condition; "" for none. -#}
{%- macro also(row_condition) -%}{% if row_condition %} and ({{ row_condition }}){% endif %}{%- endmacro -%}
{%- macro only(row_condition) -%}{% if row_condition %} where {{ row_condition }}{% endif %}{%- endmacro -%}

{%- macro outside(expression, min_value, max_value, strictly=false) -%}
{%- if min_value is none and max_value is none -%}
{{ exceptions.raise_compiler_error("the test needs min_value or max_value") }}
{%- endif -%}
({% if min_value is not none %}{{ expression }} {{ '<=' if strictly else '<' }} {{ min_value }}{% endif %}
{%- if min_value is not none and max_value is not none %} or {% endif %}
{%- if max_value is not none %}{{ expression }} {{ '>=' if strictly else '>' }} {{ max_value }}{% endif %})
{%- endmacro -%}

{%- macro values_list(value_set, quote_values=true) -%}
{% for value in value_set %}{% if quote_values and value is string %}'{{ dbt.escape_single_quotes(value) }}'{% else %}{{ value }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %}
{%- endmacro -%}

{%- macro test_expression_is_true(model, expression, row_condition=none) -%}
select * from {{ model }} where not ({{ expression }}){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_distinct_count_to_equal(model, column_name, value, row_condition=none) -%}
select count(distinct {{ column_name }}) as n from {{ model }}{{ dbt_expectations.only(row_condition) }}
having count(distinct {{ column_name }}) <> {{ value }}
{%- endmacro -%}

{%- macro test_expect_column_distinct_values_to_be_in_set(model, column_name, value_set, quote_values=true, row_condition=none) -%}
{{ dbt_expectations.test_expect_column_values_to_be_in_set(model, column_name, value_set, quote_values, row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_max_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select max({{ column_name }}) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('max(' ~ column_name ~ ')', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_column_mean_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select avg({{ column_name }}) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('avg(' ~ column_name ~ ')', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_column_min_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select min({{ column_name }}) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('min(' ~ column_name ~ ')', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_column_sum_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select sum({{ column_name }}) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('sum(' ~ column_name ~ ')', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_column_pair_values_A_to_be_greater_than_B(model, column_A, column_B, or_equal=false, row_condition=none) -%}
select * from {{ model }} where not ({{ column_A }} {{ '>=' if or_equal else '>' }} {{ column_B }}){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_pair_values_to_be_equal(model, column_A, column_B, row_condition=none) -%}
select * from {{ model }} where not ({{ column_A }} = {{ column_B }}){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_unique_value_count_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select count(distinct {{ column_name }}) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('count(distinct ' ~ column_name ~ ')', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_column_value_lengths_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select * from {{ model }} where {{ dbt_expectations.outside('length(' ~ column_name ~ ')', min_value, max_value, strictly) }}{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_value_lengths_to_equal(model, column_name, value, row_condition=none) -%}
select * from {{ model }} where length({{ column_name }}) <> {{ value }}{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_be_between(model, column_name, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select * from {{ model }} where {{ dbt_expectations.outside(column_name, min_value, max_value, strictly) }}{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_be_in_set(model, column_name, value_set, quote_values=true, row_condition=none) -%}
select * from {{ model }} where {{ column_name }} not in ({{ dbt_expectations.values_list(value_set, quote_values) }}){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_be_null(model, column_name, row_condition=none) -%}
select * from {{ model }} where {{ column_name }} is not null{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_be_unique(model, column_name, row_condition=none) -%}
select {{ column_name }}, count(*) as n_rows from {{ model }} where {{ column_name }} is not null{{ dbt_expectations.also(row_condition) }}
group by {{ column_name }} having count(*) > 1
{%- endmacro -%}

{%- macro test_expect_column_values_to_match_regex(model, column_name, regex, row_condition=none, is_raw=false, flags="") -%}
{%- if flags %}{{ exceptions.raise_compiler_error("write the flags into the expression, as in (?i)") }}{% endif -%}
select * from {{ model }} where not ({{ column_name }} rlike '{{ regex if is_raw else dbt.escape_single_quotes(regex) }}'){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_not_be_in_set(model, column_name, value_set, quote_values=true, row_condition=none) -%}
select * from {{ model }} where {{ column_name }} in ({{ dbt_expectations.values_list(value_set, quote_values) }}){{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_not_be_null(model, column_name, row_condition=none) -%}
select * from {{ model }} where {{ column_name }} is null{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_column_values_to_not_match_regex(model, column_name, regex, row_condition=none, is_raw=false, flags="") -%}
{%- if flags %}{{ exceptions.raise_compiler_error("write the flags into the expression, as in (?i)") }}{% endif -%}
select * from {{ model }} where {{ column_name }} rlike '{{ regex if is_raw else dbt.escape_single_quotes(regex) }}'{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_compound_columns_to_be_unique(model, column_list, quote_columns=false, ignore_row_if="all_values_are_missing", row_condition=none) -%}
{%- set joined = ' and ' if ignore_row_if == 'all_values_are_missing' else ' or ' -%}
select {{ column_list | join(', ') }}, count(*) as n_rows from {{ model }}
where not ({{ column_list | join(' is null' ~ joined) }} is null){{ dbt_expectations.also(row_condition) }}
group by {{ column_list | join(', ') }} having count(*) > 1
{%- endmacro -%}

{%- macro test_expect_multicolumn_sum_to_equal(model, column_list, sum_total, row_condition=none) -%}
select * from {{ model }} where {{ column_list | join(' + ') }} <> {{ sum_total }}{{ dbt_expectations.also(row_condition) }}
{%- endmacro -%}

{%- macro test_expect_row_values_to_have_recent_data(model, column_name, datepart, interval, row_condition=none) -%}
select max({{ column_name }}) as newest from {{ model }}{{ dbt_expectations.only(row_condition) }}
having max(cast({{ column_name }} as timestamp)) < {{ dbt.dateadd(datepart, -1 * interval, 'current_timestamp()') }}
{%- endmacro -%}

{%- macro test_expect_table_row_count_to_be_between(model, min_value=none, max_value=none, row_condition=none, strictly=false) -%}
select count(*) as found from {{ model }}{{ dbt_expectations.only(row_condition) }}
having {{ dbt_expectations.outside('count(*)', min_value, max_value, strictly) }}
{%- endmacro -%}

{%- macro test_expect_table_row_count_to_equal(model, value, row_condition=none) -%}
select count(*) as found from {{ model }}{{ dbt_expectations.only(row_condition) }} having count(*) <> {{ value }}
{%- endmacro -%}

{%- macro test_expect_table_row_count_to_equal_other_table(model, compare_model, row_condition=none, compare_row_condition=none) -%}
select a.n, b.n as other
from (select count(*) as n from {{ model }}{{ dbt_expectations.only(row_condition) }}) as a
cross join (select count(*) as n from {{ compare_model }}{{ dbt_expectations.only(compare_row_condition) }}) as b
where a.n <> b.n
{%- endmacro -%}
