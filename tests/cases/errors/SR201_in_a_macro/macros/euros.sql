{#- Cents as euros. -#}
{%- macro euros(cents) -%}
    {{ cent }} / 100
{%- endmacro -%}
