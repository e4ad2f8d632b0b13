{% macro euros(cents) %}{{ cents / }}{% endmacro %}
