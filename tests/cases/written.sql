select k, 'a' as name, s as v from t union all select k, 's', s from t;
select x from (select k as x from t union all select 1 from t) group by x;
with z as (select k, s from t union all select 1, s from t) select count(*) as n, s from z group by s;
with z as (select k, 'a' as name, s as v from t union all select k, 's', s from t) select name, v, count(*) as n from z group by name, v;
with z as (select k, 'a' as name, s as v from t union all select k, 's', s from t) select name, max(v) as v, sum(k) as n from z group by name;
select k, s, x from t union all select k, s, s from t;
select k, s, x from t union all select k, x, x from t union all select a, s, s from u;
select k as a, k as b from t union all select a, a from u;
select k as a, k as b from t union select a, a from u;
select k as a, k as b from t except select a, a from u;
select k as a, k as b from t intersect select a, a from u;
select k, 1 as one, 1 as two from t union all select k, 1, 1 from u;
select k, 1 as one, 2 as two from t union all select k, 2, 2 from u union all select 5, 5, 5;
select k, null as z, null as y from t union all select k, a, a from u;
select a.k, a.s, b.s as s2 from t a join u b on a.k = b.k union all select a.k, a.s, b.s from t a join u b on a.k = b.k;
select a.k as k1, b.k as k2 from t a left join u b on a.k = b.k union all select a.k, b.k from w a left join u b on a.k = b.k;
select * from (select k, s from t) union all select * from (select k, s from u);
select k, s, a from t union all select a.k, a.s, b.a from u a join w b on a.k = b.k;
with z as (select * from u) select k, a, s, b from z union all select * from z;
select k, a from t union all select * from (select a, k from w);
select k, a from t union all select a, k from w;
select k, a from t union all (select k, a from w order by k limit 2);
select k, a as q from t union all (select k as z, a as k from w order by z limit 2);
select k, a as q from t union all (select a as z, k as a from w order by a desc limit 2);
(select k, a from t order by k limit 1) union all (select k, c from w order by k desc limit 2);
select k, a from t union all select k, a from w order by k, a limit 3;
select k, a from t union select k, a from w order by 1 desc, 2 desc limit 3;
select k, 'x' from t union all select k, 'y' from w;
select k, 'x', s from t union all select k, s, 's' from u;
select 'x', k from t union all select s, 1 from u;
select distinct k, s as v from t union all select distinct k, 'v' from u;
select k, count(*) as n from t group by k union all select k, count(*) from u group by k;
select s, count(*) as n, sum(a) as m from t group by s union all select s, sum(a), sum(a) from u group by s;
select s, sum(a) as n, sum(a) as m from t group by s union all select s, count(*), count(*) from u group by s;
select sum(n) as n, v from (select k as n, s as v from t union all select a, 's' from u) group by v;
select v, count(distinct n) as c from (select k as n, s as v from t union all select a, s from u union all select 1, 'a') group by v;
with p as (select k, s from t), q as (select k, s from p union all select k, 's' from p union all select k, s from u) select s, count(*) as n, min(k) as m from q group by s having count(*) > 1;
select k, row_number() over (partition by s order by k) as r from (select k, s from t union all select k, 's' from w);
select k, s from t where k in (select a from u union all select k from w);
select k, s from t where exists (select 1 from (select k, 's' as a from u union all select a, s from u) z where z.k = t.k);
select k, (select count(*) from (select k from u union all select a from u) z where z.k = t.k) as n from t;
select k, s from t union all select k, s from u union select k, x from t;
select k, s from t union select k, s from u union all select k, x from t;
select k from t union select k from u intersect select a from u;
select k from t union all select k from u intersect select a from u;
select k from t except select k from u intersect select a from u;
select k from t intersect select a from u union select k from w;
select k from t intersect select a from u except select k from w;
select k from t except select a from u except select k from w;
select k from t except (select a from u except select k from w);
select k from t union all select k from u except select k from w;
select k from t union all (select k from u except select k from w);
(select k from t union all select k from u) intersect select a from u;
(select k from t except select a from u) union all (select a from u except select k from t);
select k from t minus select a from u;
select k from t minus all select a from u;
-- refused SR550
select k, s from t union all select k from u;
-- refused SR550
select k from t union all select k, s from u;
-- refused SR550
select k from t union select k, s from u;
-- refused SR550
select k, s from t except select k from u;
-- refused SR550
select k, s from t intersect select s from u;
-- refused SR550
select k, s from t union all select s, k from u;
-- refused SR550
select k from t union all select s from u;
-- refused SR550
select s from t union all select k from u;
select k from t union all select m from t;
select m from t union all select 1 from u;
select a from t union all select cast(m as double) from t;
-- refused SR550
select k, true as f from t union all select k, a from u;
-- refused SR550
select k, current_timestamp() as f from t union all select k, s from u;
select date'2026-01-01' as d, k from t union all select timestamp'2026-01-01 10:00:00', k from u;
select k as `A`, s as a2 from t union all select a, S from u;
select u1.* from (select k, s from t) u1 union all select u2.* from (select a, x from t) u2;
select t.*, 1 as e from t union all select t.*, 2 from t;
select z.k, z.n from (select k, 'n' as n, 's' as s from t union all select k, s, s from u) z where z.n = 'n' or z.k > 2;
with z(a, b) as (select k, s from t union all select k, 's' from u) select b, count(*) as n, max(a) as m from z group by b;
with z(a, b) as (select k, k from t union all select a, a from u) select a, b from z;
with z(a, b) as (select k, k from t) select a, b from z;
select a, b from (select k as a, 1 as b from t union all select k, k from t union all select 1, 1 from t union all select a, k from t);
-- refused SR308
select * from (select k, 'a' as n from t union all select k, 'b' from t union all select k, 'c' from t) z left join u on z.k = u.a and z.n = u.s where u.k is null or u.b > 1;
select count(*) as n from (select k, k from t);
select count(*) as n from (select k, s, s from t union all select k, s, x from t) z;
with z as (select k, s, s from t) select k from z;
-- refused SR308
with z as (select k, s, x as s from t) select s from z;
-- refused SR308
with z as (select k, 's' as s, s from t) select z.s from z;
-- refused SR308
select q.k from (select t.k, u.k from t join u on t.k = u.k) q;
select z.a from (select t.k as a, u.k, u.a as k from t join u on t.k = u.k) z;
select k from t where exists (select max(b) from u where u.k = t.k);
select k from t where not exists (select max(b) from u where u.k = t.k);
select k, exists (select max(b) from u where u.k = t.k) as e from t;
select k, not exists (select count(*) from u where u.k = t.k) as e from t;
select k from t where exists (select count(*) from u where u.k = t.k) or a > 2;
select k from t where a > 2 or not exists (select sum(b) from u where u.k = t.k);
select k from t where exists (select max(b) from u);
select k from t where not exists (select max(b) from u where b > 100);
select k from t where exists (select max(b) from u having max(b) > 100);
select k from t where exists (select max(b) from u where u.k = t.k having max(b) > 1);
select k from t where not exists (select max(b) from u where u.k = t.k having max(b) > 1);
select k from t where exists (select max(b) from u where u.k = t.k having count(*) > 1);
select k from t where exists (select max(b) from u where u.k = t.k having count(*) = 0);
select k from t where exists (select max(b) from u where u.k = t.k group by u.k);
select k from t where not exists (select max(b) from u where u.k = t.k group by u.k);
select k from t where exists (select s, max(b) from u where u.k = t.k group by s);
select k from t where exists (select max(b) from u where u.k = t.k group by s having max(b) > 1);
select k from t where not exists (select max(b) from u where u.k = t.k group by s having max(b) > 1);
select k, exists (select max(b) from u where u.k = t.k group by s having count(*) > 1) as e from t;
select k from t where exists (select max(b) from u where u.k = t.k limit 1);
select k from t where exists (select max(b) from u where u.k = t.k limit 0);
select k from t where exists (select max(b) from u where u.k = t.k limit 1 offset 1);
select k from t where exists (select max(b) from u limit 1 offset 1);
select k from t where not exists (select max(b) from u limit 1 offset 1);
select k from t where exists (select 1 from u where u.k = t.k limit 1);
select k from t where exists (select 1 from u where u.k = t.k limit 0);
select k from t where exists (select 1 from u where u.k = t.k order by b limit 1);
select k from t where exists (select 1 from u where u.k = t.k limit 1 offset 1);
select k from t where exists (select 1 from u limit 0);
select k from t where not exists (select b from u where u.k = t.k order by b);
select k from t where exists (select distinct b from u where u.k = t.k);
select k from t where exists (select distinct max(b) from u where u.k = t.k);
select k from t where exists (select 1 + count(*) from u where u.k = t.k);
select k from t where exists (select count(*) filter (where b > 1) from u where u.k = t.k);
select k from t where exists (select max(b) over () from u where u.k = t.k);
select k from t where exists (select row_number() over (order by b, a, s) as r from u where u.k = t.k);
select k from t where exists (select row_number() over (order by b, a, s) as r from u where u.k = t.k qualify r > 1);
-- refused SR304
select k from t where exists (select * from (select max(b) as b from u where u.k = t.k) z where z.b > 1);
select k from t where exists (select 1 from (select count(*) as n from u) z where z.n > t.k);
select k from t where exists (select 1 from u where u.k = t.k and exists (select max(c) from w where w.k = u.a));
select k from t where exists (select 1 from u where u.k = t.k and not exists (select max(c) from w where w.k = u.a));
select k from t where exists (select 1 from u where u.k = t.k and u.b > (select max(c) from w where w.k = u.a));
select k from t where (select count(*) from u where u.k = t.k) = 0;
select k from t where exists (select max(b) from u where u.k > t.k);
select k from t where not exists (select max(b) from u where u.k > t.k);
select k, exists (select max(b) from u where u.k > t.k) as e from t;
select k, exists (select 1 from u where u.k > t.k) as e from t;
select k from t where exists (select max(b) from u where u.k = t.k) and exists (select 1 from w where w.k = t.k);
select k from t where not (exists (select max(b) from u where u.k = t.k) and exists (select 1 from w where w.k = t.k));
select s, count(*) as n from t where exists (select max(b) from u where u.s = t.s) group by s;
select s, count(*) as n from t group by s having exists (select max(b) from u where u.s = t.s);
select s, count(*) as n from t group by s having not exists (select 1 from u where u.s = t.s);
select case when exists (select max(b) from u where u.k = t.k) then 1 else 0 end as e, k from t;
select k from t where exists (select max(b), min(a) from u where u.k = t.k);
-- refused SR304
select k from t where exists (select 1 from u where u.k = t.k union all select 1 from w where w.k = t.k);
select k from t where exists (select k from u union select k from w);
select k from t where exists (select max(k) from u union select k from w where c > 100);
select k from t where exists (select max(b) from u join w on u.k = w.k where u.a = t.k);
select k from t left join u using (k) where exists (select sum(c) from w where w.k = u.a);
select k from t where t.a = (select max(b) from u where u.k = t.k);
select k from t where t.a in (select max(b) from u where u.k = t.k);
select k from t where t.a not in (select max(b) from u where u.k = t.k);
select k from t where t.a in (select count(*) from u where u.k = t.k);
select k from t where t.a in (select max(b) from u where u.k = t.k group by s);
select k from t where t.a in (select max(b) from u group by k);
select k from t where t.a in (select max(b) from u);
select k from t where t.a in (select b from u where u.k = t.k limit 1);
select s, a, count(*) as n from t group by s, a grouping sets ((s), (a));
select s, a, count(*) as n from t group by s, a grouping sets ((s, a), (s), ());
select s, a, count(*) as n from t group by s, a grouping sets (s, a, ());
select s, a, count(*) as n from t group by s, a with rollup;
select s, a, count(*) as n from t group by s, a with cube;
select s, a, count(*) as n, grouping_id() as g from t group by s, a with cube;
select s, a, count(*) as n, grouping_id() as g from t group by a, s grouping sets ((s), (a), (s, a));
select s, a, count(*) as n, grouping_id() as g from t group by s, a grouping sets ((a), (s));
select s, a, count(*) as n, grouping_id(s, a) as g from t group by s, a with rollup;
-- refused SR551
select s, a, count(*) as n, grouping_id(a, s) as g from t group by s, a with rollup;
select s, a, count(*) as n, grouping(s) as gs, grouping(a) as ga from t group by s, a with rollup;
select s, a, count(*) as n from t group by s, rollup(a);
select s, a, count(*) as n from t group by s, rollup(a), cube(k);
select s, a, x, count(*) as n, grouping_id() as g from t group by s, rollup(a), cube(x);
select s, a, count(*) as n from t group by rollup(s), rollup(a);
select s, a, count(*) as n from t group by cube(s), grouping sets ((a), ());
select s, a, count(*) as n from t group by cube(s, a), grouping sets ((a), (s));
select s, a, x, count(*) as n from t group by grouping sets ((s, a), rollup(x, a));
select s, a, x, count(*) as n from t group by grouping sets (grouping sets ((s), (a)), cube(x, a));
select s, a, count(*) as n from t group by rollup(1, 2);
select s, a, count(*) as n from t group by cube(1, 2);
select s, a, count(*) as n from t group by grouping sets ((1), (2), ());
select s, a, count(*) as n from t group by grouping sets ((1, 2), (2), ());
select s, a, count(*) as n from t group by grouping sets (1, 2);
select s, a, count(*) as n from t group by 1, 2 with rollup;
select s, a, count(*) as n from t group by 1, 2 with cube;
select s, a, count(*) as n from t group by 1, 2 grouping sets ((1), (2));
select s, a, count(*) as n from t group by 1, 2 grouping sets ((s), (a));
select s, a, count(*) as n from t group by s, a grouping sets ((1), (2));
select s, a, count(*) as n from t group by 1, rollup(2);
select s, a, count(*) as n from t group by 1, cube(2);
select s, a, count(*) as n from t group by 1, grouping sets ((2), ());
select s, a, count(*) as n from t group by 1, 2, cube(1, 2);
-- refused SR551
select s, a, count(*) as n from t group by rollup(1, 3);
-- refused SR551
select s, a, count(*) as n from t group by cube(-1);
-- refused SR551
select s, a, count(*) as n from t group by rollup(4);
select s, a, count(*) as n from t group by rollup((1, 2), x);
select s, a, count(*) as n from t group by rollup((s, a));
select s, a, x, count(*) as n from t group by rollup((s, a), x);
select s, a, x, count(*) as n from t group by cube((s, a), x);
-- refused SR551
select s, a, count(*) as n from t group by s, a grouping sets ((s), (s));
select s, count(*) as n from t group by grouping sets ((s), (s), ());
-- refused SR551
select s, a, count(*) as n from t group by s, a grouping sets ((x));
select s, count(*) as n from t group by s, a grouping sets ((s));
select s, x, count(*) as n from t group by s, x, a grouping sets ((s), (x));
-- refused SR551
select s, x, a, count(*) as n, grouping_id() as g from t group by s, x, a grouping sets ((s), (x));
select s, count(*) as n from t group by s, s with rollup;
select a + 1 as b, count(*) as n from t group by a + 1 with rollup;
select a + 1 as b, s, sum(k) as n from t group by rollup(a + 1, s);
select a + 1 as b, s, sum(k) as n from t group by b, s with rollup;
select a + 1 as b, s, sum(k) as n from t group by cube(b, s);
select a + 1 as b, s, sum(k) as n from t group by b, s grouping sets ((b), (s));
select s, sum(a) as n from t group by s, a with cube;
select a, sum(a) as n from t group by a with rollup;
select s, a, count(*) as n from t group by s, a with rollup having grouping(a) = 1;
select s, a, count(*) as n from t group by s, a with rollup having a is null;
select s, a, count(*) as n from t group by s, a grouping sets ((s), (a)) having count(*) > 1;
select s, a, count(*) as n, rank() over (partition by grouping_id() order by count(*) desc) as r from t group by s, a with cube;
select count(*) as n from t group by s, a with rollup;
select count(*) as n from t group by grouping sets (());
select count(*) as n from t where k > 1000 group by grouping sets (());
select count(*) as n from t where k > 1000 group by s with rollup;
select s, count(*) as n from t group by all;
select s, a, count(distinct x) as n from t group by s, a with rollup;
select s, a, max(k) as n from t group by s, a grouping sets ((s), (a), (s, a), ());
select coalesce(s, 'all') as s, coalesce(a, -1) as a, count(*) as n from t group by s, a with rollup;
select t.s, u.b, sum(t.k) as n from t join u on t.k = u.k group by t.s, u.b with cube;
select distinct s, count(*) as n from t group by s, a with rollup;
select s, a, count(*) as n from t group by s, a with rollup union all select s, a, 1 from u;
with r as (select s, a, count(*) as n from t group by s, a with rollup) select s, sum(n) as n from r group by s;
-- refused SR502
select s, a, count(*) as n from t group by s, a with rollup order by n desc, s, a limit 2;
select s, a, sum(k) as n from t group by a, s with rollup;
select k from t where k in (select a from u group by a, s with rollup);
select s, a from t group by s, a with rollup;
select s from t group by s with cube;
-- refused SR551
select s, a, count(*) as n from t group by s, a with rollup with cube;
-- refused SR551
select s, a, count(*) as n from t group by rollup(s), a with cube;
select date'2026-01-01' as d, s, count(*) as n from t group by rollup(1, 2);
select 1 as d, s, count(*) as n from t group by d, s with rollup;
select k, v, s from g qualify row_number() over (partition by k order by v desc, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v desc nulls first, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v desc nulls last, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v nulls first, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v nulls last, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v asc nulls last, s desc nulls first, n) = 1;
select k, v, s from g qualify row_number() over (partition by k order by s desc nulls first, v nulls last, n desc) = 1;
select k, v, s from g qualify row_number() over (partition by k order by s nulls last, v desc nulls first, n desc nulls first) = 1;
select k, s from g qualify row_number() over (partition by k order by v nulls last, n) = 1;
select k, s from g qualify row_number() over (partition by k order by v desc nulls first, n) = 1;
select s, count(*) as n, sum(v) as v from (select k, v, s, row_number() over (partition by k order by v nulls last, n) as r from g) where r = 1 group by s;
select s, count(*) as n, sum(v) as v from (select k, v, s, row_number() over (partition by k order by v desc nulls first, n) as r from g) where r <= 1 group by s;
select k, v, s from (select k, v, s, row_number() over (partition by k order by x desc nulls first, n) as r from g) where r = 1;
select k, x, n from g qualify row_number() over (partition by k, s order by x nulls last, n desc) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v nulls last, s nulls last, x nulls last, n nulls last) = 1;
select k, v, s from g qualify row_number() over (partition by k order by v desc nulls first, s desc nulls first, x desc nulls first, n desc nulls first) = 1;
select k, v, s from g where v is null or v > 1 qualify row_number() over (partition by k order by v nulls last, n) = 1;
with l as (select k, v, s from g qualify row_number() over (partition by k order by v nulls last, n) = 1) select l.k, l.v, t.s from l left join t on l.k = t.k;
with l as (select k, v, s from g qualify row_number() over (partition by k order by v desc nulls first, n) = 1) select l.k, l.v, t.s from l left join t on l.k = t.k;
with l as (select k, v, s from g qualify row_number() over (partition by k order by v desc nulls first, n) = 1) select v, count(*) as c from l group by v;
select k, v from t2 qualify row_number() over (partition by k order by v nulls last, n) = 1;
select k, v + 1 as w, s from g qualify row_number() over (partition by k order by -v nulls last, n) = 1;
select k, v from g qualify row_number() over (partition by k order by v nulls last, n) = 2;
select k, v from g qualify row_number() over (partition by k order by v nulls last, n) <= 2;
select k, v, rank() over (order by v desc nulls first) as r, dense_rank() over (partition by s order by v nulls last) as d from g;
select k, first_value(v) over (partition by s order by v nulls last, n) as f, lag(v) over (partition by s order by v desc nulls first, n) as l from g;
select k, a from t order by a nulls last, k limit 3;
select k, a from t order by a desc nulls first, k limit 3;
select k, a from t order by a, k limit 3;
select k, a from t order by a desc, k limit 3;
select k, a from t order by a nulls last, k limit 2 offset 2;
select k, a from t order by 2 desc nulls first, 1 limit 3;
select s, max(a) as m from t group by s order by m desc nulls first, s nulls last limit 2;
select distinct s from t order by s nulls last limit 2;
select distinct s from t order by s desc nulls first limit 2;
select k, sum(a) over (partition by s order by a nulls last, k) as c from t;
-- refused SR502
select k, sum(a) over (partition by s order by a desc nulls first rows between unbounded preceding and current row) as c from t;
select k, max(a) over (partition by s order by a desc nulls first, k rows between 1 preceding and 1 following) as c from t;
-- refused SR505
select s, count(case when a in (select b from u) then 1 end) as n from t group by s;
-- refused SR505
select s, sum(case when a in (select b from u) then 0 else 1 end) as n from t group by s;
-- refused SR505
select s, count(*) filter (where a in (select b from u)) as n from t group by s;
-- refused SR505
select s, count(*) filter (where a not in (select b from u)) as n from t group by s;
-- refused SR505
select s, sum(cast(a in (select b from u) as int)) as n from t group by s;
-- refused SR505
select s, bool_or(a in (select b from u)) as n from t group by s;
-- refused SR505
select t.k, u.b from t join u on t.k = u.k and t.a in (select b from u);
-- refused SR505
select t.k, u.b from t left join u on t.k = u.k and t.a in (select b from u);
-- refused SR505
select t.k, u.b from t left join u on t.k = u.k and t.a not in (select b from u);
select t.k, u.b from t left join u on t.k = u.k and exists (select 1 from w where w.k = u.a);
-- refused SR505
select t.k, u.b from t join u on t.k = u.k and (t.a in (select b from u) or u.b is null);
-- refused SR505
select t.k, u.b from t join u on (t.a in (select b from u)) = (u.b > 1);
-- refused SR505
select k, a in (select b from u) as i from t;
-- refused SR505
select k, a not in (select b from u) as i from t;
select k, coalesce(a, 0) in (select coalesce(b, 0) from u) as i from t;
-- refused SR505
select k, (a in (select b from u)) is null as i from t;
-- refused SR505
select k from t where (a in (select b from u)) is null;
-- refused SR505
select k from t where (a in (select b from u)) = false;
-- refused SR505
select k from t where coalesce(a in (select b from u), true);
select k from t where not (a in (select b from u) and k > 1);
select k from t where not (a not in (select b from u) or k > 3);
select k from t where a in (select b from u) or a > 2;
select k from t where a not in (select b from u) or a > 2;
select k from t where a not in (select b from u);
select k from t where a not in (select b from u where b is not null);
-- refused SR505
select k from t where case when a in (select b from u) then true else false end;
-- refused SR505
select k from t where if(a in (select b from u), 1, 0) = 0;
-- refused SR505
select k, case when a in (select b from u) then 'y' else 'n' end as i from t;
-- refused SR505
select k, case when a not in (select b from u) then 'y' else 'n' end as i from t;
-- refused SR505
select k, sum(a) over (partition by a in (select b from u) order by k) as i from t;
-- refused SR505
select k, row_number() over (order by a in (select b from u), k) as i from t;
-- refused SR505
select a in (select b from u) as i, count(*) as n from t group by a in (select b from u);
-- refused SR505
select a in (select b from u) as i, count(*) as n from t group by 1;
select s, count(*) as n from t group by s having max(a) in (select b from u);
select s, count(*) as n from t group by s having max(a) not in (select b from u);
-- refused SR505
select s, max(a) in (select b from u) as n from t group by s;
-- refused SR505
select s, max(a in (select b from u)) as n from t group by s;
-- refused SR505
select k from t order by a in (select b from u), k limit 2;
select k from t where (k, a) in (select k, b from u);
select k from t where (k, a) not in (select k, b from u);
select k from t where k in (1, null);
select k, a in (1, null) as i from t;
select k, a not in (1, null) as i from t;
select s, count(case when a in (1, null) then 1 end) as n, count(case when a not in (1, null) then 1 end) as m from t group by s;
select k from t where a in (select b from u where u.k = t.k);
select k from t where a not in (select b from u where u.k = t.k);
-- refused SR505
select k, a in (select b from u where u.k = t.k) as i from t;
-- refused SR505
select array_contains(array(a in (select b from u)), true) as i, k from t;
-- refused SR505
select k, named_struct('i', a in (select b from u)).i as i from t;
select k, exists (select 1 from u where u.b = t.a) as i from t;
-- refused SR505
select k from t qualify row_number() over (partition by s order by a in (select b from u), k) = 1;
-- refused SR505
select t.k from t left semi join u on t.k = u.k and t.a in (select b from u);
-- refused SR505
select t.k from t left anti join u on t.k = u.k and t.a in (select b from u);
select k, a <=> (select max(b) from u) as i from t;
select * from t natural join w;
select count(*) as n from (select * from t natural join w join u on t.k = u.k);
-- refused SR308
select * from t natural join w join u on t.k = u.k;
select * from (select k, s from t) p natural join (select k, c from w) q join (select a, b from u) r on p.k = r.a;
select * from (select k, s from t) p natural join (select k, c from w) q join (select k as kk, b from u) r on p.k = r.kk;
select * from (select k, s from t) p natural join (select k, c from w) q natural join (select k, b from u) r;
select * from (select s, k from t) p natural join (select c, k from w) q natural join (select b, s from u) r;
select p.*, q.c from (select s, k from t) p natural join (select c, k from w) q;
select q.*, p.s from (select s, k from t) p natural join (select c, k from w) q;
select q.*, s from (select s, k from t) p natural left join (select c, k from w) q;
select p.*, c from (select s, k from t) p natural right join (select c, k from w) q;
select * from (select s, k from t) p natural full join (select c, k from w) q;
select * from (select s, k from t) p natural full outer join (select c, k from w) q natural full join (select k, b from u) r;
select * from (select s, k from t) p full join (select c, k from w) q using (k) full join (select k, b from u) r using (k);
select * from (select s, k from t) p full join (select c, k from w) q using (k) left join (select k, b from u) r using (k);
select * from (select s, k from t) p right join (select c, k from w) q using (k) left join (select k, b from u) r using (k);
select * from (select s, k from t) p left join (select c, k from w) q using (k) right join (select k, b from u) r using (k);
select * from (select s, k from t) p right join (select c, k from w) q using (k) join (select k, b from u) r using (k);
select k, s, c, b from (select s, k from t) p right join (select c, k from w) q using (k) left join (select k, b from u) r using (k);
select k, s, c, b from (select s, k from t) p full join (select c, k from w) q using (k) full join (select k, b from u) r using (k);
select k, p.k as pk, q.k as qk, r.k as rk from (select s, k from t) p full join (select c, k from w) q using (k) full join (select k, b from u) r using (k);
select k, count(*) as n from t full join w using (k) group by k;
select k, count(*) as n from t full join w using (k) where k > 1 group by k having k < 5;
select k from t right join w using (k) order by k desc limit 2;
-- refused SR308
select k from t join w using (k) join u on t.k = u.k;
select t.k from t join w using (k) join u on t.k = u.k;
-- refused SR308
select k from t join u on t.k = u.k join w using (k);
select k, a, t.s, b from t join u using (k, a);
select k, a, t.s, b from t join u using (a, k);
select * from (select k, a, s from t) p join (select k, a, b from u) q using (a, k);
select * from (select k, a, s from t) p left join (select k, a, b from u) q using (a, k);
select * from (select k, a, s from t) p right join (select k, a, b from u) q using (a, k);
-- refused SR308
select * from (select k, a, s from t) p full join (select k, a, b from u) q using (a);
select * from t left semi join u using (k);
select * from t left anti join u using (k);
select * from (select k, s from t) p left semi join u using (k) join (select k, c from w) q using (k);
select p.k, s, q.k as qk from (select k, s from t) p left join (select k, c from w) q using (k);
select k + 1 as kk, upper(s) as s from (select k, s from t) p join (select k, c from w) q using (k) where k in (select k from u) and exists (select 1 from u where u.a = k);
select k, (select count(*) from u where u.k = p.k) as n from (select k, s from t) p join (select k, c from w) q using (k);
select k, (select count(*) from u where a = c) as n from (select k, s from t) p join (select k, c from w) q using (k);
select * from (select 1 as one) p natural join (select 2 as two) q;
select * from (select k, s from t) p natural join (select 2 as two) q;
select * from t cross join (select 2 as two) q natural join (select k, c from w) z;
select * except (c) from (select s, k from t) p natural join (select c, k from w) q;
select * except (k) from (select s, k from t) p natural join (select c, k from w) q;
with p as (select k, s from t), q as (select k, c from w) select * from p natural join q;
with p as (select * from t), q as (select k, c from w) select * from p natural join q;
with p as (select * from t natural join (select k, c from w)) select * from p natural left join (select k, b from u);
-- refused SR550
select k, s from (select * from (select k, s from t) p join (select k, c from w) q using (k)) union all select * from (select s as k, b as s from (select b, a as s from u));
select p.* from (select s, k from t) p join (select c, k from w) q using (k) union all select k, s from t where false;
select q.* from (select s, k from t) p join (select c, k from w) q using (k) union all select k, k * 100 from t;
select p.s, q.s as qs, k from t p join u q using (k);
-- refused SR308
select s from t p join u q using (k);
-- refused SR304
select * from t join u using (zz);
select * from t natural join u where u.b > 1;
select s, sum(b) as n from t natural join u group by s;
select s, sum(b) as n from t natural left join u group by s with rollup;
select k, e from (select k, array(a, 1) as xs from t) p join w using (k) lateral view explode(xs) z as e;
-- refused SR308
select * from (select k from t) p join (select k from w) q using (k) join (select k from u) r on r.k = q.k + 1;
select z.* from (select * from t natural join w) z;
select p.k from (select k from t) p, (select k from w) q join (select k from u) r using (k);
-- refused SR308
select * from (select k from t) p cross join (select k, c from w) q join (select k, b from u) r using (k);
-- refused SR552
select * from ((select k, s from t) p join (select k, c from w) q using (k)) join (select k, b from u) r using (k);
-- refused SR552
select * from (select k, s from t) p join ((select k, c from w) q join (select k, b from u) r using (k)) using (k);
select k from t join w using (k) order by k limit 2;
select k as j, max(k) as m from t full join w using (k) group by k;
select sum(k) as n, count(k) as c, count(t.k) as d, count(w.k) as e from t full join w using (k);
select k, rank() over (order by k) as r from t full join w using (k);
select coalesce(k, 0) as k, t.k is null as l, w.k is null as r from t full join w using (k);
select k from t full join w using (k) union all select k from t right join w using (k);
select t.a as ta, w.a as wa, k from t full join w using (k) where k in (select a from u);
select k, s from t union all (select k, s from u union select a, 's' from w);
select k, 'a' as n from t union all (select k, 'b' from u except select k, 'b' from w);
with a as (select k, 1 as v from t union all select k, 2 from u), b as (select v, k from a union all select k, v from a) select v, count(*) as n from b group by v;
select z.k, z.v from (select k, s as v from t union select k, x from t) z join (select k, 's' as v from u union all select a, s from u) y on z.k = y.k and z.v = y.v;
select k, sum(v) as v from (select k, a as v from t union all select k, -b from u) group by k having sum(v) > 0;
select k, array(a) as st from t union all select k, array(b, a) from u;
select cast(k as bigint) as k from t union select a from u;
select k / 2 as h from t union all select m from t;
select m as h from t union select k from u;
select k as h from t intersect select m from t;
select m as h from t except select k from u;
select k, date'2026-01-01' as d from t union all select k, null from u;
select k, cast(null as string) as d from t union all select k, s from u;
select k from t where k not in (select a from u union select c from w where c is not null);
select k from t where k not in (select a from u where a is not null union all select c from w where c is not null);
select k from t where exists (select k, k from u);
select k from t where (k, k) in (select a, b from u);
select k from t where (k, a) in (select a as z, b as z from u);
select k from t where not exists (select 1 from u where u.k = t.k having max(b) > 2);
select k from t where exists (select 1 from u where u.k = t.k group by s having count(*) > 1);
select k from t where exists (select distinct count(*) from u where u.k = t.k limit 5);
select k from t where exists (select explode(array(1, 2)) from u where u.k = t.k);
select k, exists (select max(b) from u where u.k = t.k having max(b) is null) as e from t;
select k, exists (select max(b) from u where u.k = t.k having count(b) = 0) as e, exists (select 1 from u where u.k = t.k having count(*) = 0) as f from t;
select k, case when exists (select sum(b) from u where u.k = t.k having sum(b) > 3) then 'y' else 'n' end as e from t;
select s, count(*) as n from t where exists (select max(b) from u where u.s = t.s having max(b) > 2) group by s with rollup;
select s, sum(case when exists (select max(b) from u where u.k = t.k) then 1 else 0 end) as n from t group by s;
-- refused SR519
select s, count(*) filter (where exists (select 1 from u where u.k = t.k)) as n from t group by s;
select t.k from t left join u on t.k = u.k and exists (select max(c) from w where w.k = u.a);
select t.k, u.b from t left join u on t.k = u.k and not exists (select max(c) from w where w.k = u.a);
select k from t where 1 in (select count(*) from u where u.k = t.k);
select k from t where 0 not in (select count(b) from u where u.k = t.k);
select k from t where a + 1 in (select max(b) + min(a) from u where u.k = t.k);
select k, coalesce(a, 0) in (select count(*) from u where u.k = t.k) as i from t;
select k from t where exists (select max(u.b) from u, w where u.a = w.k and u.k = t.k);
select s, a, x, count(*) as n from t group by s, a, x with rollup;
select s, a, x, count(*) as n from t group by cube(s, a, x);
select s, a, x, grouping_id() as g, count(*) as n from t group by rollup(s), a, cube(x);
select s, a, x, grouping_id() as g, count(*) as n from t group by x, rollup(s, a);
select s, a, grouping(a) + grouping(s) as g, count(*) as n from t group by grouping sets ((s), (a), ());
select s, a, count(*) as n from t group by s, a grouping sets ((s, a), (s, a));
select s, a, count(*) as n from t group by s, grouping sets ((s), (a));
select upper(s) as u, a % 2 as p, count(*) as n from t group by upper(s), a % 2 with cube;
select upper(s) as u, a % 2 as p, count(*) as n from t group by 1, 2 with cube having count(*) > 1;
select upper(s) as u, a % 2 as p, grouping(upper(s)) as g, count(*) as n from t group by upper(s), a % 2 with rollup;
select upper(s) as u, count(*) as n from t group by u with rollup;
select s as u, a as s, count(*) as n from t group by s, a with rollup;
select s, sum(a) as a, count(*) as n from t group by s, a with rollup;
select s, max(a) over (partition by s) as z from (select s, a from t group by s, a with rollup);
-- refused SR502
select k, s, row_number() over (partition by grouping(s) order by k, s) as r from t group by k, s with rollup;
select max(n) as m from (select s, count(*) as n from t group by s with cube);
select s, n from (select s, count(*) as n from t group by s with rollup) where s is null or n > 1;
select t.s, u.s as us, count(*) as n from t left join u on t.k = u.k group by t.s, u.s grouping sets ((t.s), (u.s), ());
select s, case when grouping(s) = 1 then 'all' else coalesce(s, '?') end as l, sum(m) as m from t group by s with rollup;
select count(distinct s) as d, a from t group by a with rollup;
select sum(distinct a) as d, s, x from t group by s, x with cube;
select s, a, sum(k) filter (where k > 2) as f from t group by s, a grouping sets ((s), (a));
select * from t join w using (k, a);
select * from t left join w using (a, k);
select k, a, s, c from t full join w using (k, a);
select w.*, t.s from t full join w using (k, a);
select t.*, c from t right join w using (a);
select * from (select k, a from t) p join (select k, c from w) q using (k) join (select a, b from u) r using (a);
select * from (select k, a from t) p left join (select k, c from w) q using (k) full join (select a, b from u) r using (a);
select * from (select k, a from t) p full join (select k, c from w) q using (k) left join (select a as k, b from u) r using (k);
select * from (select k, a from t) p natural full join (select k, c from w) q natural left join (select k, b from u) r;
select * from (select k, a from t) p natural join (select k, a as a2 from w) q natural join (select k, a, b from u) r;
select p.k, q.k as qk, r.* from (select k, a from t) p left join (select k, c from w) q using (k) right join (select k as kk, b from u) r on q.k = r.kk;
select k, sum(c) as c from t natural left join (select k, c from w) group by k;
select k, c from t join (select k, c from w) q using (k) where k in (select k from u join t using (k));
select k from t join w using (k) where exists (select 1 from u join w using (k) where k = t.k);
select k from t left join w using (k) where w.k is null;
select k, w.k is null as missing from t left join w using (k);
select a.k, b.a from t a join t b using (k) join t c using (k);
select k, max(a.a) as x, min(b.a) as y from t a full join w b using (k) group by k having max(k) > 1;
select k from t full join w using (k) where t.k is null or w.k is null;
select if(k > 2, 'hi', 'lo') as h, count(*) as n from t right join w using (k) group by if(k > 2, 'hi', 'lo');
select t.k, u.b from t, w left join u on w.k = u.a where t.k = w.k;
select t.k, u.b from t cross join w right join u on w.k = u.a;
select k, v, s from (select *, row_number() over (partition by k order by v desc nulls first, s nulls last, n) as r from g) where r = 1;
select k, v, s from (select *, row_number() over (partition by k order by v nulls last, s desc nulls first, n desc) as r from g) where r = 1;
select k, v, s from (select *, row_number() over (partition by k order by v, s desc, n desc) as r from g) where r = 1;
select k, s, x from (select k, s, x, row_number() over (partition by k order by s desc, x nulls last, n) as r from g) where r = 1;
select s, count(*) as c, max(v) as v from (select k, v, s, row_number() over (partition by k order by v desc nulls first, n) as r from g) where r = 1 group by s;
select s, max(v) as v from (select k, v, s, row_number() over (partition by k, x order by s nulls last, n) as r from g) where r = 1 group by s;
select k, v from (select k, v, row_number() over (partition by k order by v nulls first, n desc nulls first) as r from g where v is null or v < 4) where 1 = r;
select l.k, l.v, t.s from (select k, v, row_number() over (partition by k order by v nulls last, n) as r from g) l join t on t.k = l.k where l.r = 1;
-- refused SR551
select s, x, a, count(*) as n from t group by s, x, a grouping sets ((s), (x));
select s, sum(a) as m from t group by s, a grouping sets ((s), ());
-- refused SR551
select s, max(a + 1) as m, a + 1 as b from t group by s, a grouping sets ((s), ());
select k, s from t where k in (select k from u where exists (select max(c) from w where w.k = u.k));
select s, n from (select s, count(*) as n from t group by s) z where exists (select max(b) from u where u.s = z.s having max(b) > z.n);
select s, count(*) as n from t group by s having exists (select max(b) from u where u.s = t.s having max(b) > 1);
select s, count(*) as n from t group by s having count(*) in (select count(*) from u where u.s = t.s);
select k from t where (select max(b) from u where u.k = t.k) is null or exists (select 1 from u where u.k = t.k having count(*) > 1);
select k from t where not (exists (select 1 from u where u.k = t.k) or exists (select max(b) from u where u.k = t.k having max(b) > 1));
select k, not exists (select 1 from u where u.k = t.k limit 0) as e from t;
select k from t where exists (select 1 from u where u.k = t.k limit 1) and not exists (select 1 from u where u.k = t.k and u.b > 2 limit 1);
-- refused SR504
select k from t where exists (select 1 from u limit 1 offset 2);
select k from t where exists (select 1 from u where b > 100 limit 1);
select k from t where exists (select 1 where t.k > 2);
select k from t where exists (select 1 where false);
select k from t where exists (select max(1) where false);
select k from t where exists (select 1 from u group by s having max(b) > 3);
with z as (select k, count(*) as n from u group by k) select k from t where exists (select max(n) from z where z.k = t.k having max(n) > 1);
with z as (select k, a from t union all select k, b from u) select k, sum(a) as a, count(*) as n from z group by k with rollup;
with z as (select 'l' as side, k, a from t union all select 'r', k, b from u) select side, k, sum(a) as a, grouping_id() as g from z group by side, k grouping sets ((side), (k), (side, k));
with z as (select 'l' as side, * from t union all select 'r', k, a, s, 'x', 1.00 from u) select side, count(*) as n, max(m) as m from z group by side;
with z as (select * from t union all select k, a, s, s, 0.5 from u) select x, s, count(*) as n from z group by cube(x, s);
select a.k, b.n from (select k, 'n' as n from t union all select k, s from t) a join (select k, s as n from u union all select a, 's' from u) b on a.k = b.k and a.n = b.n;
select k, n from (select k, 1 as n from t union select k, 2 from t union select a, 3 from u) z where n <> 2;
select k, n, sum(n) over (partition by k order by n) as c from (select k, 1 as n from t union select k, 2 from u);
select n, count(*) as c from (select k as n from t union all select a from t union all select b from u) group by n having n is not null;
select distinct n from (select s as n from t union all select 'zz' union all select x from t);
(select k from t) union (select a from u) intersect (select b from u) except (select c from w);
select k from (select k from t union all select k from u) z where k not in (select a from t where a is not null intersect select b from u);
select k from (select k, s from t except select k, s from u) z natural join (select k, c from w) y;
select * from (select k, s from t intersect select k, s from u) z natural full join (select k, c from w) y;
select k, c from (select k from t union select a from u) z left join w using (k);
select k, count(*) as n from t left join u using (k) group by k with rollup;
select k, s, count(*) as n from (select k, s from t) p left join (select k, b from u) q using (k) group by rollup(k, s);
select k, s, count(*) as n from (select k, s from t) p full join (select k, b from u) q using (k) group by 1, 2 with cube;
select k from t full join u using (k) group by k grouping sets ((k), ());
select k + 1 as j, count(*) as n from t full join u using (k) group by k + 1;
select k, row_number() over (partition by s order by k) as r from (select k, s from t) p join (select k, c from w) q using (k);
select k, lag(c) over (order by k) as l from (select k, s from t) p right join (select k, c from w) q using (k);
select * from (select k, max(s) as s from t group by k) p natural left join (select k, sum(b) as b from u group by k) q;
select p.k as pk, k, q.k as qk from (select k from t) p left join (select k from w) q using (k);
select k from t left join u using (k) where u.k is not null union select k from w;
select k, s from (select k, s from t) p join (select k from w) q using (k) where exists (select max(b) from u where u.k = p.k having max(b) is not null);
select s, a, count(*) as n from (select s, a from t union all select s, b from u) group by s, a with cube;
select s, a, n from (select s, a, count(*) as n, grouping(s) as g from t group by s, a with cube) where g = 0;
select coalesce(s, 'total') as s, sum(m) as m, avg(a) as v from t group by s with rollup;
select s, x, count(*) as n, sum(count(*)) over (partition by s) as t from t group by s, x grouping sets ((s, x), (s));
select length(s) as l, s, count(*) as n from t group by length(s), s with rollup;
select a, b, count(*) as n from (select t.a, u.b from t join u using (k)) group by a, b with cube having count(*) > 1 or grouping(a) = 1;
-- refused SR504
select s, any_value(s) as v from t group by s;
-- refused SR505
select k, (select count(*) from u where u.k = t.k) in (select count(*) from w group by a) as i from t;
select k from t where (a, s) in (select b, s from u);
select k from t where (a, s) not in (select b, s from u where b is not null and s is not null);
select k from t where k in (select k from u union all select k from w) and k not in (select max(k) from w);
select k from t where a in (select max(b) from u group by s with rollup);
-- refused SR550
select k, struct(a, s) as st from t union all select k, struct(b, s) from u;
-- refused SR550
select k, array(struct(k as p)) as st from t union all select k, array(struct(a as q)) from u;
select k, struct(k as p, a as q) as st from t union all select k, struct(a as p, b as q) from u;
select count(*) as n from (select k, s from t union select k, s from u) natural join (select k from w);
select n.x, c.x as y from (with b as (select k as x from t) select x from b) as n join (with b as (select a as x from u) select x from b) as c on n.x = c.x;
with a as (with b as (select k as x from t) select x from b), c as (with b as (select a as x from u) select x from b) select count(*) as n from a join c on a.x = c.x;
with a as (with a as (select k as x from t) select x from a where x > 1) select x, count(*) as n from a group by x;
select s, count(distinct sign(k), abs(k)) as n from t group by s;
select count(distinct round(cast(k as decimal(10, 3)) / 3, 1), sign(k + 1), upper(s)) as n from t;
select a, count(distinct date_format(current_timestamp(), 'yyyy-MM'), s) as n from t group by a;
select a, count(distinct date_format(current_timestamp(), 'yyyy-MM')) as n, sum(distinct k + year(current_date())) as m from t group by a;
select a, count(distinct s) filter (where k < hour(current_timestamp())) as n from t group by a;
