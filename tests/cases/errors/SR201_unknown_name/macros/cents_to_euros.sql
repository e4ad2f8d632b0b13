{% macro cents_to_euros(cents) %}{{ cents }} / 100{% endmacro %}
