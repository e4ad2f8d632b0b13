{% macro forget() %}
{% do run_query("delete from " ~ ref('orders') ~ " where id = 1") %}
{% endmacro %}
