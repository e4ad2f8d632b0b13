{% macro listed(columns, table) -%}
    {% for column in columns %}
    {{ table }}.{{ column }}{{ ',' if not loop.last }}
    {% endfor %}
{%- endmacro %}
