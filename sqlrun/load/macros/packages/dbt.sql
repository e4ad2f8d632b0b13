{#- dbt's cross-database macros as Spark SQL. What has no deterministic equal is missing, or raises an error. -#}

{%- macro any_value(expression) -%}
{{ exceptions.raise_compiler_error("dbt.any_value() depends on the order in which rows are read: write dbt.max() or min(" ~ expression ~ ")") }}
{%- endmacro -%}

{%- macro array_append(array, new_element) -%} array_append({{ array }}, {{ new_element }}) {%- endmacro -%}

{%- macro array_concat(array_1, array_2) -%} concat({{ array_1 }}, {{ array_2 }}) {%- endmacro -%}

{%- macro array_construct(inputs=[], data_type="string") -%}
{%- if inputs -%} array({{ inputs | join(', ') }}) {%- else -%} cast(array() as array<{{ data_type }}>) {%- endif -%}
{%- endmacro -%}

{%- macro bool_or(expression) -%} bool_or({{ expression }}) {%- endmacro -%}

{%- macro cast(expression, data_type) -%} cast({{ expression }} as {{ data_type }}) {%- endmacro -%}

{%- macro cast_bool_to_text(expression) -%} cast({{ expression }} as string) {%- endmacro -%}

{%- macro concat(fields) -%} concat({{ fields | join(', ') }}) {%- endmacro -%}

{%- macro current_timestamp() -%} current_timestamp() {%- endmacro -%}

{%- macro date(year, month, day) -%} make_date({{ year }}, {{ month }}, {{ day }}) {%- endmacro -%}

{%- macro date_trunc(datepart, date) -%} date_trunc('{{ datepart | lower }}', {{ date }}) {%- endmacro -%}

{%- macro dateadd(datepart, interval, from_date_or_timestamp) -%}
timestampadd({{ datepart | lower }}, {{ interval }}, {{ from_date_or_timestamp }})
{%- endmacro -%}

{#- The number of boundaries between two times, as most databases count it: not of whole days or hours that passed. -#}
{%- macro datediff(first_date, second_date, datepart) -%}
{%- set part, a, b = datepart | lower, first_date, second_date -%}
{%- if part == 'year' -%} (year({{ b }}) - year({{ a }}))
{%- elif part == 'quarter' -%} ((year({{ b }}) - year({{ a }})) * 4 + quarter({{ b }}) - quarter({{ a }}))
{%- elif part == 'month' -%} ((year({{ b }}) - year({{ a }})) * 12 + month({{ b }}) - month({{ a }}))
{%- elif part == 'week' -%} cast(datediff(date_trunc('week', {{ b }}), date_trunc('week', {{ a }})) div 7 as int)
{%- elif part == 'day' -%} datediff({{ b }}, {{ a }})
{%- elif part in ('hour', 'minute', 'second') -%}
timestampdiff({{ part }}, date_trunc('{{ part }}', {{ a }}), date_trunc('{{ part }}', {{ b }}))
{%- elif part in ('millisecond', 'microsecond') -%} timestampdiff({{ part }}, {{ a }}, {{ b }})
{%- else -%} {{ exceptions.raise_compiler_error("dbt.datediff() doesn't know the date part `" ~ datepart ~ "`") }}
{%- endif -%}
{%- endmacro -%}

{%- macro escape_single_quotes(expression) -%}
{{ return(expression | replace('\\', '\\\\') | replace("'", "\\'")) }}
{%- endmacro -%}

{%- macro except() -%} except distinct {%- endmacro -%}

{#- Spark's own hash() isn't dbt's: dbt's is the MD5 of the text. -#}
{%- macro hash(field) -%} md5(cast({{ field }} as string)) {%- endmacro -%}

{%- macro intersect() -%} intersect distinct {%- endmacro -%}

{%- macro last_day(date, datepart) -%}
{%- if datepart | lower == 'month' -%} last_day({{ date }})
{%- elif datepart | lower == 'quarter' -%} last_day(add_months(date_trunc('quarter', {{ date }}), 2))
{%- elif datepart | lower == 'year' -%} make_date(year({{ date }}), 12, 31)
{%- elif datepart | lower == 'week' -%} date_add(date_trunc('week', {{ date }}), 6)
{%- else -%} {{ exceptions.raise_compiler_error("dbt.last_day() doesn't know the date part `" ~ datepart ~ "`") }}
{%- endif -%}
{%- endmacro -%}

{%- macro length(expression) -%} length({{ expression }}) {%- endmacro -%}

{#- A list must not depend on the order in which rows are read: it is sorted by its own texts. -#}
{%- macro listagg(measure, delimiter_text="','", order_by_clause=none, limit_num=none) -%}
{%- set ordered = (order_by_clause or '') | lower | replace('order by', '') | trim -%}
{%- if ordered not in ('', measure | lower, measure | lower ~ ' asc') -%}
{{ exceptions.raise_compiler_error("dbt.listagg() can only be ordered by its own texts, so that equal keys leave no choice: order by " ~ measure) }}
{%- endif -%}
array_join({% if limit_num %}slice({% endif %}sort_array(collect_list(cast({{ measure }} as string)))
{%- if limit_num %}, 1, {{ limit_num }}){% endif %}, {{ delimiter_text }})
{%- endmacro -%}

{%- macro position(substring_text, string_text) -%} locate({{ substring_text }}, {{ string_text }}) {%- endmacro -%}

{%- macro replace(field, old_chars, new_chars) -%} replace({{ field }}, {{ old_chars }}, {{ new_chars }}) {%- endmacro -%}

{%- macro right(string_text, length_expression) -%} right({{ string_text }}, {{ length_expression }}) {%- endmacro -%}

{%- macro safe_cast(field, type) -%} try_cast({{ field }} as {{ type }}) {%- endmacro -%}

{%- macro split_part(string_text, delimiter_text, part_number) -%}
split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro -%}

{%- macro string_literal(value) -%} '{{ dbt.escape_single_quotes(value) }}' {%- endmacro -%}

{%- macro type_bigint() -%} bigint {%- endmacro -%}
{%- macro type_boolean() -%} boolean {%- endmacro -%}
{%- macro type_float() -%} double {%- endmacro -%}
{%- macro type_int() -%} int {%- endmacro -%}
{%- macro type_numeric() -%} decimal(28, 6) {%- endmacro -%}
{%- macro type_string() -%} string {%- endmacro -%}
{%- macro type_timestamp() -%} timestamp {%- endmacro -%}
