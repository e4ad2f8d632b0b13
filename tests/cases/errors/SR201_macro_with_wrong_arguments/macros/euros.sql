{% macro euros(cents) %}{{ cents }} / 100{% endmacro %}
