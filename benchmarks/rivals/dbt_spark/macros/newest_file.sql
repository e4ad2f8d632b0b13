{#- The last file that a model has read, as a constant: Spark opens no older ones then. -#}
{%- macro newest_file() -%}
    {%- if is_incremental() and execute -%}
        {{ run_query("select max(file) from " ~ this).columns[0].values()[0] or '' }}
    {%- endif -%}
{%- endmacro -%}
