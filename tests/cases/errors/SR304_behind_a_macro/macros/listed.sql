{% macro listed(columns) -%}
    {% for column in columns %}
    {{ column }}{{ ',' if not loop.last }}
    {% endfor %}
{%- endmacro %}
