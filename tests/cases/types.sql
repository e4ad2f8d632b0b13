-- What type Spark gives an expression over `t`: `expression -- type`, and a ? behind it where sqlrun says unknown.
-- tests/test_column_types.py reads it, tests/spark/test_types_spark.py asks Spark; SQLRUN_WRITE=1 there writes the types.

-- literals
1 -- int
3000000000 -- bigint
99999999999999999999 -- decimal(20,0)
-7 -- int
1.5 -- decimal(2,1)
0.05 -- decimal(2,2)
12.340 -- decimal(5,3)
.5 -- decimal(1,1)
1e3 -- double
1.5e-2 -- double
2L -- bigint
-2147483648 -- int
2147483648 -- bigint
-9223372036854775808 -- bigint
1.5D -- double
2.50BD -- decimal(3,2)
'x' -- string
null -- void
true -- boolean
date '2026-05-04' -- date
timestamp '2026-05-04 12:00:00' -- timestamp
interval 1 day -- interval day ?

-- columns and fields
c -- decimal(10,2)
t.s -- string
st.x -- int
st.y.z -- string
arr -- array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>
arr.quantity -- array<int>
arr[0] -- struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>
arr[0].unit_price -- decimal(10,2)
m['a'] -- int
m -- map<string,int>
element_at(ia, 1) -- int

-- whole numbers
ti + si -- smallint
si + i -- int
i + b -- bigint
i - 1 -- int
i * b -- bigint
-i -- int
-s -- double ?
-(i) -- int
abs(s) -- double ?
1 + 1.0 -- decimal(3,1)
3000000000 * c -- decimal(21,2)
mod(i, 2) -- int
-c -- decimal(10,2)
abs(c) -- decimal(10,2)
i / 2 -- double
b / i -- double
i div 2 -- bigint
c div 2 -- bigint
i % 2 -- int
b % i -- bigint
i & 1 -- int

-- decimals
c + 1 -- decimal(11,2)
c + i -- decimal(13,2)
c - b -- decimal(23,2)
c * 2 -- decimal(12,2)
c * i -- decimal(21,2)
c * e -- decimal(29,4)
e * e -- decimal(37,4)
c + e -- decimal(19,2)
c / 3 -- decimal(14,6)
c / e -- decimal(31,21)
e / g -- decimal(38,12)
g * g -- decimal(38,6)
g + g -- decimal(38,9)
g / c -- decimal(38,8)
c % 7 -- decimal(3,2)
c % e -- decimal(10,2)
h * 100 -- decimal(9,5)
c * 1.5 -- decimal(13,3)
c + 0.001 -- decimal(12,3)
1 - c -- decimal(11,2)
-1 * c -- decimal(12,2)
(c + 1) * 2 -- decimal(13,2)
c * -10 -- decimal(13,2)
round(c) -- decimal(9,0)
round(c, 1) -- decimal(10,1)
round(e, 5) -- decimal(19,2)
round(c, -1) -- decimal(9,0)
round(i, 1) -- int
round(b) -- bigint
round(f, 1) -- float
round(d, 1) -- double
floor(c) -- decimal(9,0)
ceil(c, 1) -- decimal(10,1)
ceil(c) -- decimal(9,0)
floor(d) -- bigint
ceil(i) -- bigint
floor(h) -- decimal(1,0)

-- floating point
d + 1 -- double
f + 1 -- double
f + f -- float
f * d -- double
c * d -- double
i + f -- double
f / 2 -- double
d % 2 -- double
sign(d) -- double
i ^ 1 -- int
try_divide(i, 2) -- double
sqrt(i) -- double
exp(i) -- double
ln(d) -- double
pow(i, 2) -- double
abs(d) -- double

-- one of several
coalesce(i, 0) -- int
coalesce(b, 0) -- bigint
coalesce(c, 0) -- decimal(12,2)
coalesce(c, 0.0) -- decimal(10,2)
coalesce(c, i) -- decimal(12,2)
coalesce(c, b) -- decimal(22,2)
coalesce(c, e) -- decimal(18,2)
coalesce(c, d) -- double
coalesce(g, e) -- decimal(38,10)
coalesce(f, i) -- double
coalesce(s, 'x') -- string
coalesce(null, i) -- int
coalesce(da, at) -- timestamp
coalesce(arr, array()) -- array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>
coalesce(i, s) -- bigint ?
nvl(c, 0) -- decimal(12,2)
nullif(i, 0) -- int
nvl2(i, 1, b) -- bigint
greatest(i, b) -- bigint
least(c, e, 1) -- decimal(18,2)
if(bo, 1, null) -- int
if(bo, c, 0) -- decimal(12,2)
if(bo, ti, i) -- int
case when bo then 1 else 2.5 end -- decimal(11,1)
case when bo then i end -- int
case i when 1 then c when 2 then e else 0 end -- decimal(18,2)
case when bo then 'a' else null end -- string
case when bo then ia else array() end -- array<int>

-- conditions
i = 1 -- boolean
i > 1 and not bo -- boolean
i between 1 and 2 -- boolean
i in (1, 2) -- boolean
s like 'x%' -- boolean
i is null -- boolean
i is not null -- boolean
i <=> b -- boolean
isnull(i) -- boolean
exists(ia, x -> x > 1) -- boolean
exists(select 1 from t as u where u.i = t.b) -- boolean
array_contains(ia, 1) -- boolean
map_contains_key(m, 'a') -- boolean
startswith(s, 'a') -- boolean
endswith(s, 'a') -- boolean
contains(s, 'a') -- boolean
s rlike 'a' -- boolean
forall(ia, x -> x > 1) -- boolean
isnan(d) -- boolean

-- texts
upper(s) -- string
lower(s) -- string
initcap(s) -- string
trim(s) -- string
length(s) -- int
substring(s, 1, 2) -- string
substring(i, 1, 1) -- string
concat(s, 'x') -- string
concat(s, i) -- string
concat(ia, ia) -- array<int>
s || 'x' -- string
concat_ws('-', s, s) -- string
replace(s, 'a', 'b') -- string
regexp_replace(s, 'a', 'b') -- string
regexp_extract(s, '(a)', 1) -- string
repeat(s, 2) -- string
translate(s, 'a', 'b') -- string
substring_index(s, 'a', 1) -- string
instr(s, 'a') -- int
levenshtein(s, 'a') -- int
ascii(s) -- int
split(s, ',') -- array<string>
md5(s) -- string
sha2(s, 256) -- string
date_format(at, 'yyyy') -- string
get_json_object(s, '$.a') -- string
right(s, 1) -- string
hex(i) -- string
to_json(st) -- string
from_unixtime(b) -- string
array_join(ia, ',') -- string
locate('a', s) -- int
s || i -- string
left(s, 1) -- string

-- times
current_timestamp() -- timestamp
current_date() -- date
cast(at as date) -- date
to_date(s) -- date
to_date(at) -- date
date(at) -- date
date_trunc('hour', at) -- timestamp
date_trunc('day', da) -- timestamp
trunc(da, 'month') -- date
at + interval 5 minutes -- timestamp
at - interval 1 day -- timestamp
da + interval 1 day -- date
da - interval 2 months -- date
da + interval 1 hour -- timestamp
da + 1 -- date
at - at -- interval day to second ?
da - da -- interval day ?
date_add(da, 1) -- date
date_add(at, 1) -- date
date_sub(da, 1) -- date
add_months(da, 1) -- date
last_day(da) -- date
datediff(at, at) -- int
months_between(at, at) -- double
year(at) -- int
month(at) -- int
day(at) -- int
dayofmonth(at) -- int
hour(at) -- int
minute(at) -- int
second(at) -- int
quarter(at) -- int
dayofweek(at) -- int
dayofyear(at) -- int
weekofyear(at) -- int
extract(hour from at) -- int
unix_micros(at) -- bigint
unix_seconds(at) -- bigint
unix_millis(at) -- bigint
unix_date(da) -- int
timestamp_seconds(b) -- timestamp
timestamp_micros(b) -- timestamp
timestamp_millis(b) -- timestamp
timestamp_seconds((unix_micros(at) + 299999999) div 300000000 * 300) -- timestamp
to_timestamp(s, 'yyyy') -- timestamp
to_date(s, 'yyyy') -- date
unix_timestamp(at) -- bigint
dateadd(hour, 1, at) -- timestamp
timestampdiff(hour, at, at) -- bigint
datediff(hour, at, at) -- bigint
from_unixtime(b, 'yyyy') -- string
to_timestamp(s) -- timestamp

-- casts
cast(i as string) -- string
cast(c as decimal(20, 4)) -- decimal(20,4)
cast(s as decimal) -- decimal(10,0)
cast(ia as array<bigint>) -- array<bigint>
try_cast(s as int) -- int
i::bigint -- bigint
cast(null as date) -- date

-- arrays, maps and structs
array() -- array<void>
array(1, 2) -- array<int>
array(i, b) -- array<bigint>
array(c, 1) -- array<decimal(12,2)>
array(s, null) -- array<string>
size(m) -- int
sort_array(ia) -- array<int>
array_position(ia, 1) -- bigint
arrays_zip(ia, ia) -- array<struct<ia:int,ia:int>> ?
array(array(1), array()) -- array<array<int>>
size(arr) -- int
array_sort(ia) -- array<int>
array_distinct(ia) -- array<int>
array_remove(ia, 1) -- array<int>
array_compact(ia) -- array<int>
slice(ia, 1, 2) -- array<int>
array_max(ia) -- int
array_min(arr.unit_price) -- decimal(10,2)
flatten(array(ia)) -- array<int>
reverse(ia) -- array<int>
reverse(s) -- string
sequence(1, 3) -- array<int>
transform(ia, x -> x + 1) -- array<int>
transform(ia, (x, i) -> x * i + b) -- array<bigint>
transform(arr, x -> x.unit_price * x.quantity) -- array<decimal(21,2)>
filter(arr, x -> x.quantity > 1) -- array<struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>>
aggregate(ia, 0, (sum, x) -> sum + x) -- int
aggregate(arr, cast(0 as decimal(18, 2)), (sum, x) -> cast(sum + x.quantity * x.unit_price as decimal(18, 2))) -- decimal(18,2)
aggregate(ia, 0, (sum, x) -> sum + x, sum -> sum / 2) -- double
struct(i, c as price) -- struct<i:int,price:decimal(10,2)>
struct(i + 1, i + 2) -- struct<col1:int,col2:int>
struct(st.x) -- struct<x:int>
struct(1, 'x' as y) -- struct<col1:int,y:string>
struct(i + 1) -- struct<col1:int>
named_struct('a', i, 'b', s) -- struct<a:int,b:string>
named_struct('a', i).a -- int
map_keys(m) -- array<string>
map(s, i, s, b) -- map<string,bigint>
map() -- map<void,void>
map('a', 1) -- map<string,int>
bit_count(i) -- int
isnotnull(i) -- boolean

-- aggregates
count(*) -- bigint
count(i) -- bigint
count(distinct i) -- bigint
count_if(bo) -- bigint
approx_count_distinct(i) -- bigint
sum(ti) -- bigint
sum(i) -- bigint
sum(b) -- bigint
sum(c) -- decimal(20,2)
sum(e) -- decimal(28,2)
sum(g) -- decimal(38,10)
sum(h) -- decimal(15,5)
sum(f) -- double
sum(d) -- double
sum(c * i) -- decimal(31,2)
sum(distinct c) -- decimal(20,2)
sum(c) filter (where bo) -- decimal(20,2)
sum(cast(c as double)) -- double
avg(i) -- double
avg(c) -- decimal(14,6)
avg(e) -- decimal(22,6)
avg(g) -- decimal(38,14)
avg(h) -- decimal(9,9)
avg(d) -- double
min(c) -- decimal(10,2)
max(s) -- string
max(at) -- timestamp
max(st) -- struct<x:int,y:struct<z:string>>
any_value(i) -- int
first(i) -- int
last(c) -- decimal(10,2)
max_by(s, i) -- string
min_by(c, at) -- decimal(10,2)
approx_percentile(i, 0.5) -- int
mode(i) -- int
bool_and(bo) -- boolean
bool_or(bo) -- boolean
every(bo) -- boolean
stddev(c) -- double
stddev_pop(i) -- double
stddev_samp(i) -- double
variance(c) -- double
var_pop(c) -- double
corr(i, b) -- double
median(i) -- double
percentile(i, 0.5) -- double
collect_list(i) -- array<int>
collect_set(c) -- array<decimal(10,2)>
collect_list(struct(i as i, s as s)) -- array<struct<i:int,s:string>>
array_sort(collect_list(struct(i as rank, s as name))) -- array<struct<rank:int,name:string>>
array_agg(distinct i) -- array<int>
sum(i) / count(*) -- double
cast(sum(c) as decimal(18, 2)) -- decimal(18,2)
coalesce(sum(c), 0) -- decimal(20,2)
sum(i) * 1.1 -- decimal(23,1)

-- window functions
row_number() over (partition by s order by i) -- int
rank() over (order by i) -- int
dense_rank() over (order by i) -- int
ntile(4) over (order by i) -- int
percent_rank() over (order by i) -- double
cume_dist() over (order by i) -- double
lag(c) over (order by i) -- decimal(10,2)
lag(c, 1) over (order by i) -- decimal(10,2)
lag(i, 1, 0) over (order by i) -- int
lag(c, 1, 0) over (order by i) -- decimal(10,2)
lead(at) over (order by i) -- timestamp
first_value(c) over (order by i) -- decimal(10,2)
last_value(c) over (order by i) -- decimal(10,2)
last_value(c) ignore nulls over (order by i) -- decimal(10,2)
lag(i) respect nulls over (order by i) -- int
nth_value(c, 2) over (order by i) -- decimal(10,2)
sum(c) over (partition by s) -- decimal(20,2)
avg(c) over (order by i rows between 1 preceding and current row) -- decimal(14,6)
count(*) over () -- bigint
cast(row_number() over (order by i) as int) -- int

-- whole queries
select x from ref.t lateral view explode(ia) l as x -- int
select x from ref.t lateral view outer explode(arr) l as x -- struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>
select x.unit_price from ref.t lateral view explode(arr) l as x -- decimal(10,2)
select n from ref.t lateral view posexplode(ia) l as n, x -- int
select x from ref.t lateral view posexplode_outer(arr) l as n, x -- struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>
select v from ref.t lateral view explode(m) l as k, v -- int
select p from ref.t lateral view inline(arr) l as d, q, p -- decimal(10,2)
select explode(ia) as x from ref.t -- int
select i as x from ref.t union all select b from ref.t -- bigint
select 1 as x union all select c from ref.t -- decimal(12,2)
select c as x from ref.t union all select e from ref.t union all select d from ref.t -- double
select null as x union all select i from ref.t -- int
select i as x from ref.t union all select s from ref.t -- bigint ?
select da as x from ref.t union select at from ref.t -- timestamp
select i as x from ref.t except select b from ref.t -- bigint
select array(i) as x from ref.t intersect select array(b) from ref.t -- array<bigint>
select (select max(c) from ref.t) as x -- decimal(10,2)
select u.c + 1 as x from (select c from ref.t) as u -- decimal(11,2)
with u as (select i, sum(c) as c from ref.t group by i) select avg(u.c) as x from u -- decimal(24,6)
with u as (select c as x from ref.t) select x * 2 as x from u -- decimal(12,2)
select a.c * b.i as x from ref.t as a left join ref.t as b on a.i = b.i -- decimal(21,2)
select c as x from ref.t as a left semi join ref.t as b on a.i = b.i -- decimal(10,2)

-- functions by their names
acos(d) -- double
acosh(d) -- double
asin(d) -- double
asinh(d) -- double
atan(d) -- double
atan2(d, i) -- double
atanh(d) -- double
cbrt(d) -- double
cos(d) -- double
cosh(d) -- double
cot(d) -- double
csc(d) -- double
degrees(d) -- double
e() -- double
expm1(d) -- double
hypot(i, d) -- double
log(d) -- double
log(2, i) -- double
log10(d) -- double
log1p(d) -- double
log2(d) -- double
pi() -- double
radians(d) -- double
rint(d) -- double
sec(d) -- double
signum(d) -- double
sin(d) -- double
sinh(d) -- double
tan(d) -- double
tanh(d) -- double
covar_pop(i, d) -- double
covar_samp(i, d) -- double
regr_avgx(i, d) -- double
regr_avgy(i, d) -- double
regr_count(i, d) -- bigint
regr_intercept(i, d) -- double
regr_r2(i, d) -- double
regr_slope(i, d) -- double
regr_sxx(i, d) -- double
regr_sxy(i, d) -- double
regr_syy(i, d) -- double
bit_and(i) -- int
bit_or(b) -- bigint
bit_xor(si) -- smallint
some(bo) -- boolean
base64(encode(s, 'utf-8')) -- string
encode(s, 'utf-8') -- binary
unbase64(s) -- binary
to_binary(s, 'utf-8') -- binary
unhex(s) -- binary
bin(b) -- string
bit_length(s) -- int
btrim(s) -- string
char(i) -- string
chr(i) -- string
conv(s, 10, 16) -- string
crc32(encode(s, 'utf-8')) -- bigint
dayname(da) -- string
equal_null(s, s) -- boolean
factorial(i) -- bigint
find_in_set(s, s) -- int
format_number(c, 2) -- string
format_string('%s', s) -- string
from_utc_timestamp(at, 'UTC') -- timestamp
hash(i) -- int
json_array_length(s) -- int
len(s) -- int
lpad(s, 2, 'a') -- string
rpad(s, 2, 'a') -- string
make_date(i, i, i) -- date
make_timestamp(i, i, i, i, i, c) -- timestamp
monthname(da) -- string
next_day(da, 'mon') -- date
octet_length(s) -- int
positive(c) -- decimal(10,2)
printf('%s', s) -- string
regexp_count(s, 'a') -- int
regexp_instr(s, 'a') -- int
regexp_substr(s, 'a') -- string
schema_of_json('{}') -- string
sha(s) -- string
sha1(s) -- string
soundex(s) -- string
space(i) -- string
split_part(s, ',', 1) -- string
date_diff(da, da) -- int
date_diff(hour, at, at) -- bigint
date_add(hour, 1, at) -- timestamp
date_from_unix_date(i) -- date
dateadd(da, 1) -- date
timestampadd(hour, 1, da) -- timestamp
to_char(c, '999') -- string
to_varchar(c, '999') -- string
to_unix_timestamp(s) -- bigint
to_utc_timestamp(at, 'UTC') -- timestamp
try_to_date(s) -- date
try_to_timestamp(s) -- timestamp
url_decode(s) -- string
url_encode(s) -- string
weekday(da) -- int
xxhash64(i) -- bigint
hll_sketch_estimate(hll_sketch_agg(i)) -- bigint
array_except(ia, ia) -- array<int>
array_intersect(ia, ia) -- array<int>
array_union(ia, array(b)) -- array<bigint>
array_append(ia, 1) -- array<int>
array_prepend(ia, 1) -- array<int>
array_repeat(s, 2) -- array<string>
arrays_overlap(ia, ia) -- boolean
cardinality(ia) -- int
map_values(m) -- array<int>
map_entries(m) -- array<struct<key:string,value:int>>

-- percentiles, moments and grouping sets
percentile(c, 0.5) -- double
percentile(d, array(0.1, 0.9)) -- array<double>
percentile(i, 0.5, 2) -- double
percentile(i, 0.5) over (partition by s) -- double
percentile(s, 0.5) -- double ?
percentile_cont(0.5) within group (order by i) -- double
percentile_cont(0.5) within group (order by c desc) -- double
percentile_cont(array(0.1, 0.9)) within group (order by f) -- array<double>
percentile_cont(0.5) within group (order by i) filter (where bo) -- double
percentile_disc(0.5) within group (order by i) -- double
percentile_disc(0.5) within group (order by c desc) -- double
percentile_disc(array(0.1, 0.9)) within group (order by ti) -- array<double>
approx_percentile(ti, 0.5, 100) -- tinyint
approx_percentile(c, array(0.1, 0.9)) -- array<decimal(10,2)>
approx_percentile(da, 0.5) -- date
percentile_approx(at, 0.5) -- timestamp
percentile_approx(f, array(0.5), 10) -- array<float>
percentile_approx(b, 0.5) filter (where bo) -- bigint
median(c) -- double
median(f) -- double
median(at - at) -- interval day to second ?
skewness(i) -- double
skewness(c) -- double
kurtosis(d) -- double
kurtosis(f) over (partition by s) -- double
try_avg(i) -- double
try_avg(c) -- decimal(14,6)
try_avg(f) -- double
try_sum(ti) -- bigint
try_sum(c) -- decimal(20,2)
try_sum(f) -- double
listagg(s) -- string
listagg(s, ',') within group (order by s) -- string
listagg(distinct s, ',') -- string
string_agg(s, ',') -- string
select grouping(s) as x from ref.t group by rollup(s) -- tinyint
select grouping_id() as x from ref.t group by cube(s, i) -- bigint
select grouping_id(s) as x from ref.t group by grouping sets ((s), ()) -- bigint
select grouping_id() + 1 as x from ref.t group by rollup(s) -- bigint
select grouping(s) + grouping(i) as x from ref.t group by rollup(s, i) -- tinyint

-- elements and entries
get(ia, 0) -- int
get(arr, 0) -- struct<dish_id:string,quantity:int,unit_price:decimal(10,2)>
get(arr, 0).quantity -- int
get(split(s, ','), 1) -- string
try_element_at(m, 'a') -- int
try_element_at(ia, 1) -- int
element_at(m, 'a') -- int
m.a -- int ?
map('a', c)['a'] -- decimal(10,2)
map_from_arrays(array(s), ia) -- map<string,int>
map_from_arrays(array(s), array(i, b))['a'] -- bigint
map_from_entries(array(struct(s, c))) -- map<string,decimal(10,2)>
map_from_entries(map_entries(m)) -- map<string,int>
map_concat(m, m) -- map<string,int>
map_concat(m, map('a', b)) -- map<string,bigint> ?
map_filter(m, (k, v) -> v > 1) -- map<string,int>
transform_keys(m, (k, v) -> length(k)) -- map<int,int>
transform_keys(m, (k, v) -> concat(k, 'a')) -- map<string,int>
transform_values(m, (k, v) -> v + b) -- map<string,bigint>
transform_values(m, (k, v) -> k) -- map<string,string>
map_zip_with(m, m, (k, x, y) -> x + y) -- map<string,int>
map_zip_with(m, map('a', b), (k, x, y) -> y) -- map<string,bigint>
map_zip_with(m, map('a', c), (k, x, y) -> k) -- map<string,string>
zip_with(ia, ia, (x, y) -> x + y) -- array<int>
zip_with(ia, array(c), (x, y) -> x * y) -- array<decimal(21,2)>
zip_with(arr, ia, (x, y) -> x.unit_price * y) -- array<decimal(21,2)>
array_insert(ia, 1, 2) -- array<int>
array_insert(ia, 1, b) -- array<bigint>
array_insert(ia, 1, null) -- array<int>
array_insert(array(b), 1, 2) -- array<bigint>
array_append(ia, b) -- array<bigint>
array_append(array(b), 1) -- array<bigint>
array_append(ia, null) -- array<int>
array_prepend(ia, b) -- array<bigint>
array_prepend(array(d), i) -- array<double>
array_append(array(), i) -- array<int>
array_append(cast(null as array<int>), ti) -- array<int>
array_remove(ia, b) -- array<bigint>
array_except(ia, array(b)) -- array<bigint>
array_intersect(ia, array(b)) -- array<bigint>
sequence(ti, si) -- array<smallint>
sequence(i, b) -- array<bigint>
sequence(1, 5, 2L) -- array<bigint>
sequence(1, 5, 2) -- array<int>
sequence(da, da) -- array<date>
sequence(da, da, interval 1 day) -- array<date>
sequence(da, at, interval 1 month) -- array<timestamp>
sequence(at, at, interval 1 hour) -- array<timestamp>
sequence(da, da, interval 1 hour) -- array<date>
sequence(to_date(s), current_date(), interval 1 day) -- array<date>
sequence(i, null) -- array<int>
aggregate(ia, 0, (sum, x) -> sum + x, sum -> sum + 1) -- int
aggregate(ia, 0L, (sum, x) -> sum + x, sum -> cast(sum as string)) -- string
aggregate(ia, struct(0 as n, 0L as total), (a, x) -> struct(a.n + 1 as n, a.total + x as total), a -> a.total / a.n) -- double
reduce(ia, 0, (a, x) -> a + x, a -> a > 1) -- boolean
array_sort(ia, (x, y) -> x - y) -- array<int>
transform(array_sort(arr, (x, y) -> x.quantity - y.quantity), x -> x.unit_price) -- array<decimal(10,2)>
json_object_keys(s) -- array<string>
explode(sequence(1, i)) -- int
explode(json_object_keys(s)) -- string
explode_outer(sequence(da, da, interval 1 day)) -- date
explode(map_values(m)) -- int
explode(map_entries(m)) -- struct<key:string,value:int>
str_to_map(s) -- map<string,string>
str_to_map(s, ',', ':')['a'] -- string
from_json(s, 'a int, b string') -- struct<a:int,b:string>
from_json(s, 'struct<a: int>').a -- int
from_json(s, 'array<int>') -- array<int>
from_json(s, 'map<string, double>') -- map<string,double>
from_json(s, 'a int not null') -- struct<a:int>
from_json(s, 'A int') -- struct<A:int>
from_json(s, 'struct<a: struct<b: int>>').a.b -- int
from_json(s, 'a timestamp, b date', map('mode', 'FAILFAST')) -- struct<a:timestamp,b:date>

-- numbers by their bits, and without errors
i & b -- bigint
ti & si -- smallint
ti | i -- int
si ^ ti -- smallint
~ti -- tinyint
~b -- bigint
1 << 3 -- int
ti << 1 -- int
b << 1 -- bigint
i >> 1 -- int
b >> i -- bigint
si >> 1 -- int
shiftleft(si, 1) -- int
shiftright(b, 1) -- bigint
shiftrightunsigned(b, 1) -- bigint
shiftrightunsigned(ti, 1) -- int
bit_get(i, 0) -- tinyint
getbit(b, 0) -- tinyint
bround(c) -- decimal(9,0)
bround(c, 1) -- decimal(10,1)
bround(d, 1) -- double
bround(f) -- float
bround(i, -1) -- int
bround(ti) -- tinyint
bround(c, -1) -- decimal(9,0)
nanvl(d, 1) -- double
nanvl(f, f) -- float
nanvl(f, d) -- double
nanvl(d, f) -- double
nanvl(f, i) -- double
nanvl(i, f) -- double
nanvl(i, c) -- double
nanvl(f, null) -- float
nanvl(d, null) -- double
nanvl(f, c) -- double
negative(i) -- int
negative(ti) -- tinyint
negative(c) -- decimal(10,2)
negative(3000000000) -- bigint
negative(2147483648) -- bigint
positive(s) -- double ?
positive(ti) -- tinyint
nullifzero(i) -- int
nullifzero(c) -- decimal(10,2)
nullifzero(ti) -- tinyint
nullifzero(d) -- double
zeroifnull(i) -- int
zeroifnull(ti) -- int
zeroifnull(b) -- bigint
zeroifnull(c) -- decimal(12,2)
zeroifnull(h) -- decimal(15,5)
zeroifnull(d) -- double
zeroifnull(f) -- double
try_add(i, b) -- bigint
try_add(c, 1) -- decimal(11,2)
try_add(c, i) -- decimal(13,2)
try_add(d, c) -- double
try_add(ti, si) -- smallint
try_add(da, 1) -- date
try_add(da, interval 1 day) -- date
try_add(at, interval 1 hour) -- timestamp
try_subtract(c, e) -- decimal(19,2)
try_subtract(i, 1) -- int
try_subtract(da, 1) -- date
try_subtract(1, c) -- decimal(11,2)
try_multiply(c, e) -- decimal(29,4)
try_multiply(i, b) -- bigint
try_multiply(c, 2) -- decimal(12,2)
try_multiply(f, f) -- float
try_mod(i, 2) -- int
try_mod(c, 7) -- decimal(3,2)
try_mod(b, i) -- bigint
try_divide(c, 3) -- decimal(14,6)
try_divide(i, c) -- decimal(23,11)
width_bucket(d, 0.2, 10.6, 5) -- bigint
width_bucket(i, 1, 5, 4) -- bigint
to_number(s, '999') -- decimal(3,0)
to_number(s, '000.00') -- decimal(5,2)
to_number(s, '$99.99') -- decimal(4,2)
to_number(s, '9,999.9') -- decimal(5,1)
to_number(s, 'S999D99') -- decimal(5,2)
to_number(s, '99.') -- decimal(2,0)
to_number(s, '.99') -- decimal(2,2)
to_number(s, '99PR') -- decimal(2,0)
to_number(s, '9G999MI') -- decimal(4,0)

-- texts of other types
'a' || 1 -- string
i || c -- string
bo || s -- string
da || s -- string
d || s -- string
encode(s, 'utf-8') || encode(s, 'utf-8') -- binary
ia || ia -- array<int>
ia || array(b) -- array<bigint>
concat(i, c) -- string
concat(bo, s) -- string
concat(da, at) -- string
concat(i) -- string
concat(d, f) -- string
concat(ia, array(b)) -- array<bigint>
concat(s, null) -- string
concat(encode(s, 'utf-8'), encode(s, 'utf-8')) -- binary
s like 'a' escape '#' -- boolean
s not like 'a' escape '#' -- boolean
s ilike 'a' -- boolean
substring(c, 1, 2) -- string
substring(da, 1, 4) -- string
substring(bo, 1, 4) -- string
substring(at, 1, 4) -- string
substring(encode(s, 'utf-8'), 1, 2) -- binary ?
left(i, 1) -- string
left(da, 4) -- string
right(c, 1) -- string
lpad(i, 3, '0') -- string
rpad(c, 3, '0') -- string
lpad(s, 3) -- string
lpad(da, 12, ' ') -- string
decode(encode(s, 'utf-8'), 'utf-8') -- string
decode(i, 1, 'a', 2, 'b', 'c') -- string
decode(i, 1, 'a') -- string
decode(i, 1, b, i) -- bigint
decode(i, 1, 2, 3, c, 5) -- decimal(12,2)
decode(i, 1, ti) -- bigint ?
elt(1, s, 'b') -- string
elt(i, s) -- string
overlay(s placing 'a' from 1) -- string
overlay(s placing 'a' from 1 for 2) -- string
overlay(s, 'a', 1, 0) -- string
overlay(i, 'a', 1) -- string
parse_url(s, 'HOST') -- string
regexp_extract_all(s, '(a)', 1) -- array<string>
regexp_extract_all(s, 'a', 0)[0] -- string
typeof(i) -- string
x'1F' -- binary
upper(i) -- string
trim(i) -- string
reverse(i) -- string
repeat(i, 2) -- string

-- parts of times, and times moved
extract(year from at) -- int
extract(second from at) -- decimal(8,6)
extract(minute from at) -- int
extract(week from da) -- int
extract(dow from da) -- int
extract(dayofweek from da) -- int
extract(dayofweek_iso from da) -- int
extract(doy from da) -- int
extract(quarter from da) -- int
extract(month from da) -- int
extract(day from at) -- int
extract(yearofweek from at) -- int
extract(years from da) -- int
extract(seconds from at) -- decimal(8,6)
extract(hours from da) -- int
extract(day from at - at) -- int ?
date_part('year', da) -- int
date_part('SECOND', at) -- decimal(8,6)
date_part('dow', at) -- int
datepart('month', da) -- int
datepart('seconds', at) -- decimal(8,6)
try_make_timestamp(i, 1, 2, 3, 4, 5) -- timestamp
convert_timezone('Europe/Berlin', 'America/New_York', timestamp_ntz '2026-01-02 12:00:00') -- timestamp_ntz
convert_timezone('America/New_York', at) -- timestamp_ntz
at + make_dt_interval(1, 2, 3, 4) -- timestamp
at + make_interval(0, 1) -- timestamp
at - make_ym_interval(1, 1) -- timestamp
at - make_interval(0, 1) -- timestamp
da + make_ym_interval(1, 1) -- date
da + make_dt_interval(1, 2) -- timestamp
da + make_interval(0, 1) -- date ?
da + interval 1 hour -- timestamp
da - interval 30 minutes -- timestamp
da + interval 1 week -- date
da + interval '1' day -- date
da + interval '1-2' year to month -- date
da + interval '1 2' day to hour -- timestamp
da + interval 1 day 2 hours -- timestamp
at + interval '1 2' day to hour -- timestamp
interval 1 day + da -- date
interval 1 hour + da -- timestamp
interval 1 hour + at -- timestamp
1 + da -- date
da + 1 -- date
da - 1 -- date
da + ti -- date
da + si -- date
da - si -- date
at + interval 1 day + interval 1 hour -- timestamp
current_date() - interval 1 day -- date
current_date() - 1 -- date
timestamp_ntz '2026-01-02 12:00:00' + interval 1 hour -- timestamp_ntz

-- rows written out
select x from values (1, 'a') as v(x, y) -- int
select y from values (1, 'a') as v(x, y) -- string
select y from (values (1, 'a'), (2, null)) as v(x, y) -- string
select x from values (1, 'a'), (2.5, 'b') as v(x, y) -- decimal(11,1)
select x from values (1), (3000000000) as v(x) -- bigint
select x from values (1.25), (100.5) as v(x) -- decimal(5,2)
select x from values (1), (2e0) as v(x) -- double
select x from values (array(1)), (array(2L)) as v(x) -- array<bigint>
select x from values (date '2026-01-01'), (timestamp '2026-01-02 00:00:00') as v(x) -- timestamp
select x from values (null), (null) as v(x) -- void
select x from values (named_struct('a', 1)), (named_struct('a', 2)) as v(x) -- struct<a:int>
select x from values (cast('1.5' as decimal(10, 2))), (1) as v(x) -- decimal(12,2)
select x from values (map('a', 1)) as v(x) -- map<string,int>
select x from values (-1), (+2) as v(x) -- int
select x from values (current_date()) as v(x) -- date
select x + 1 as y from values (1.5) as v(x) -- decimal(3,1)
select v.y from ref.t join values (1, 'a') as v(x, y) on t.i = v.x -- string
select v.x from ref.t cross join (values (1.5, 'a')) as v(x, y) -- decimal(2,1)
with v as (select * from values (1, 2.5) as v(x, y)) select y from v -- decimal(2,1)
select max(x) from (values (1), (2L)) as v(x) -- bigint
select l.e from (values (array(1, 2))) as v(x) lateral view explode(v.x) l as e -- int

-- rows of generators
select x from ref.t lateral view explode(sequence(1, i)) l as x -- int
select x from ref.t lateral view explode(sequence(da, da, interval 1 day)) l as x -- date
select x from ref.t lateral view explode(json_object_keys(s)) l as x -- string
select x from ref.t lateral view explode(map_values(m)) l as x -- int
select x from ref.t lateral view explode(array(1, 2.5)) l as x -- decimal(11,1)
select q from ref.t lateral view inline(arr) l as d, q, p -- int
select q from ref.t lateral view inline_outer(arr) l as d, q, p -- int
select q from ref.t lateral view outer inline(arr) l as d, q, p -- int
select v from ref.t lateral view inline(map_entries(m)) l as k, v -- int
select v from ref.t lateral view posexplode(m) l as p, k, v -- int
select p from ref.t lateral view posexplode_outer(m) l as p, k, v -- int
select v from ref.t lateral view explode_outer(m) l as k, v -- int
select p from ref.t lateral view stack(2, 1, 'a', 2, 'b') l as p, q -- int
select q from ref.t lateral view stack(2, 1, 'a', 2, null) l as p, q -- string
select q from ref.t lateral view stack(2, i, null, i, s) l as p, q -- string
select q from ref.t lateral view stack(2, i, c, i) l as p, q -- decimal(10,2)
select p from ref.t lateral view stack(1, i, c) l as p, q -- int
select p from ref.t lateral view stack(2, i, i) l as p -- int
select x from ref.t, lateral explode(ia) as l(x) -- int
select y from ref.t lateral view explode(array(ia)) l as x lateral view explode(x) k as y -- int
select x.key from ref.t lateral view explode(map_entries(m)) l as x -- string
