{#- dbt's own generic tests, for the uses that a contract has no key for. Each is a query of the wrong rows. -#}

{%- macro test_accepted_values(model, column_name, values, quote=true) -%}
select * from {{ model }}
where {{ column_name }} not in ({% for value in values %}{% if quote and value is string %}'{{ dbt.escape_single_quotes(value) }}'{% else %}{{ value }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %})
{%- endmacro -%}

{%- macro test_not_null(model, column_name) -%} select * from {{ model }} where {{ column_name }} is null {%- endmacro -%}

{%- macro test_relationships(model, column_name, to, field) -%}
select * from {{ model }} where {{ column_name }} is not null and {{ column_name }} not in (select {{ field }} from {{ to }} where {{ field }} is not null)
{%- endmacro -%}

{%- macro test_unique(model, column_name) -%}
select {{ column_name }}, count(*) as n_rows from {{ model }} where {{ column_name }} is not null group by {{ column_name }} having count(*) > 1
{%- endmacro -%}
