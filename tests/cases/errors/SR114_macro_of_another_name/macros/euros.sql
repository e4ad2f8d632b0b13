{#- Cents as euros. -#}
{%- macro as_euros(cents) -%}
    {{ cents }} / 100
{%- endmacro -%}
