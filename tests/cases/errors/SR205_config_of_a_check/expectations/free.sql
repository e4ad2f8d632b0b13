{{ config(severity='fatal') }}
select * from {{ ref('menu') }} where price = 0
