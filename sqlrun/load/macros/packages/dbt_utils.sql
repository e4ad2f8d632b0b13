{#- Macros of dbt_utils that need no database, as Spark SQL. Tests are in dbt_utils_tests.sql. -#}

{%- macro date_spine(datepart, start_date, end_date) -%}
{#- The times from the start, included, to the end, excluded; a whole query with the column date_<part>. -#}
{%- set first, last = "to_timestamp(" ~ start_date ~ ")", "to_timestamp(" ~ end_date ~ ")" -%}
{%- set at, n = dbt.dateadd(datepart, "n", first), dbt.datediff(first, last, datepart) -%}
select {{ at }} as date_{{ datepart }}
from (select explode(sequence(0, greatest(cast({{ n }} as int), 0))) as n) as numbers
where {{ at }} < {{ last }}
{%- endmacro -%}

{%- macro deduplicate(relation, partition_by, order_by) -%}
select * from {{ relation }}
qualify row_number() over (partition by {{ partition_by }} order by {{ order_by }}) = 1
{%- endmacro -%}

{#- dbt's own separator and its own text for NULL: the keys are those that dbt computed. -#}
{%- macro generate_surrogate_key(field_list) -%}
{%- set fields = [field_list] if field_list is string else field_list -%}
{%- set null_text = "" if var('surrogate_key_treat_nulls_as_empty_strings', false) else "_dbt_utils_surrogate_key_null_" -%}
md5(concat(
{%- for field in fields -%}
coalesce(cast({{ field }} as string), '{{ null_text }}'){% if not loop.last %}, '-', {% endif %}
{%- endfor -%}
))
{%- endmacro -%}

{%- macro surrogate_key(field_list) -%} {{ dbt_utils.generate_surrogate_key(field_list) }} {%- endmacro -%}

{%- macro generate_series(upper_bound) -%}
select cast(n as int) as generated_number from (select explode(sequence(1, {{ upper_bound }})) as n) as numbers
{%- endmacro -%}

{%- macro get_url_host(field) -%}
split_part(split_part(replace(replace(replace({{ field }}, 'android-app://', ''), 'http://', ''), 'https://', ''), '/', 1), '?', 1)
{%- endmacro -%}

{%- macro get_url_parameter(field, url_parameter) -%}
nullif(split_part(split_part({{ field }}, '{{ url_parameter }}=', 2), '&', 1), '')
{%- endmacro -%}

{%- macro get_url_path(field) -%}
{%- set bare = "replace(replace(" ~ field ~ ", 'http://', ''), 'https://', '')" -%}
split_part(right({{ bare }}, length({{ bare }}) - coalesce(nullif(locate('/', {{ bare }}), 0), locate('?', {{ bare }}) - 1)), '?', 1)
{%- endmacro -%}

{%- macro group_by(n) -%} group by {% for i in range(1, n + 1) %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %} {%- endmacro -%}

{%- macro haversine_distance(lat1, lon1, lat2, lon2, unit='mi') -%}
{%- if unit not in ('mi', 'km') -%}
{{ exceptions.raise_compiler_error("dbt_utils.haversine_distance() has the units mi and km, not " ~ unit) }}
{%- endif -%}
(2 * 3961 * asin(sqrt(
power(sin(radians(({{ lat2 }} - {{ lat1 }}) / 2)), 2)
+ cos(radians({{ lat1 }})) * cos(radians({{ lat2 }})) * power(sin(radians(({{ lon2 }} - {{ lon1 }}) / 2)), 2)
)){% if unit == 'km' %} * 1.60934{% endif %})
{%- endmacro -%}

{%- macro log_info(message) -%} {%- endmacro -%}

{%- macro pivot(column, values, alias=true, agg='sum', cmp='=', prefix='', suffix='', then_value=1, else_value=0, quote_identifiers=true, distinct=false) -%}
{%- for value in values -%}
{{ agg }}({% if distinct %}distinct {% endif %}case when {{ column }} {{ cmp }} '{{ dbt.escape_single_quotes(value) }}' then {{ then_value }} else {{ else_value }} end)
{%- if alias %} as {% if quote_identifiers %}{{ adapter.quote(prefix ~ value ~ suffix) }}{% else %}{{ dbt_utils.slugify(prefix ~ value ~ suffix) }}{% endif %}{% endif %}
{%- if not loop.last %},
{% endif %}
{%- endfor -%}
{%- endmacro -%}

{%- macro safe_add(field_list) -%}
{% for field in field_list %}coalesce({{ field }}, 0){% if not loop.last %} + {% endif %}{% endfor %}
{%- endmacro -%}

{%- macro safe_divide(numerator, denominator) -%} ({{ numerator }}) / nullif(({{ denominator }}), 0) {%- endmacro -%}

{%- macro safe_subtract(field_list) -%}
{% for field in field_list %}coalesce({{ field }}, 0){% if not loop.last %} - {% endif %}{% endfor %}
{%- endmacro -%}

{%- macro slugify(string) -%}
{%- set found = namespace(text='') -%}
{%- for sign in (string | string | lower) -%}
{%- set sign = '_' if sign in ' -' else sign -%}
{%- if sign in 'abcdefghijklmnopqrstuvwxyz0123456789_' and not (sign == '_' and found.text.endswith('_') and string) -%}
{%- set found.text = found.text ~ sign -%}
{%- endif -%}
{%- endfor -%}
{{ return(('_' if found.text[:1].isdigit() else '') ~ found.text) }}
{%- endmacro -%}

{#- All columns but some: Spark names them when it reads the model, so no database is asked. -#}
{%- macro star(from, relation_alias=false, except=[], prefix='', suffix='', quote_identifiers=true) -%}
{%- if prefix or suffix -%}
{{ exceptions.raise_compiler_error("dbt_utils.star() with a prefix or a suffix needs the columns of a table: list them, each with its alias") }}
{%- endif -%}
{% if relation_alias %}{{ relation_alias }}.{% endif %}*{% if except %} except ({{ except | join(', ') }}){% endif %}
{%- endmacro -%}

{%- macro width_bucket(expr, min_value, max_value, num_buckets) -%}
case
when {{ expr }} < {{ min_value }} then 0
when {{ expr }} >= {{ max_value }} then {{ num_buckets }} + 1
else cast(floor(({{ expr }} - {{ min_value }}) * {{ num_buckets }} / ({{ max_value }} - {{ min_value }})) as int) + 1
end
{%- endmacro -%}
