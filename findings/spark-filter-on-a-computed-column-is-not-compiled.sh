#!/usr/bin/env bash
# Spark SQL: a filter on a computed column is slower than computing the column for all rows.
#
# Version: pyspark 4.0.1, Java 17; needs pip.
#
# Expected: rows are hashed, and `where` keeps one in a hundred by that hash, as a sample does. The
# hash is computed once per row either way, and less is left to do afterwards, so the filter can
# only make the job faster. The largest method that Spark generates stays small in both cases, since
# Spark splits large expressions into several methods.
#
# What happens: the optimizer moves a deterministic filter below the projection, so that the hash
# becomes part of the condition. Spark splits expressions that a projection uses more than once into
# methods of their own, but not a condition: all of it is generated into `processNext`. Above 8,000
# bytes of code HotSpot does not compile a method (-XX:+DontCompileHugeMethods), so the loop over
# all rows runs in Java's interpreter. Spark's own limit (spark.sql.codegen.hugeMethodLimit) is
# 65,535 bytes: neither plan nor log says so, and `*(1)` still marks the stage as generated code. A
# column that is not deterministic in the projection keeps the filter above it.
#
# Source: apache/spark, sql/catalyst, PushPredicateThroughNonJoin (Filter through Project, "all
# fields deterministic"); sql/core, ProjectExec.doConsume (subexpression elimination) and
# FilterExec.doConsume; documentation of spark.sql.codegen.hugeMethodLimit; OpenJDK, globals.hpp
# (DontCompileHugeMethods, HugeMethodLimit=8000).
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip -q install "pyspark==4.0.1" >pip.log 2>&1 || { cat pip.log; exit 2; }
cat >sample.py <<'PY'
import contextlib, io, re, time
from pyspark.sql import SparkSession, functions as F

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.adaptive.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
tag = lambda n: F.struct(F.lit(f"tag-{n}").alias("key"), F.col("id").cast("string").cast("binary").alias("value"))
rows = spark.range(3_000_000).select(
    F.col("id").cast("string").cast("binary").alias("key"), F.array(tag(1), tag(2)).alias("tags")
).repartition(1).persist()
rows.count()

# A hash skips nulls: a bit for each of the first tags says whether its value is one.
missing = F.lit(0)
for place in range(24):
    each = F.get("tags", F.lit(place))
    missing = missing + F.when(each.isNotNull() & each["value"].isNull(), 1 << place).otherwise(0)
hashed = rows.select(F.xxhash64("key", "tags", missing).alias("hash"), F.spark_partition_id().alias("part"))
sampled = F.pmod(F.xxhash64("hash"), F.lit(100)) == 0
jobs = {
    "all rows": hashed.select("hash"),
    "one in a hundred": hashed.select("hash").where(sampled),
    "one in a hundred, filter kept above": hashed.where(sampled & (F.col("part") >= 0)).select("hash"),
}
for name, job in jobs.items():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        job.explain(mode="codegen")
    size = max(map(int, re.findall(r"maxMethodCodeSize:(\d+)", text.getvalue())))
    best = 1e9
    for _ in range(3):
        since = time.monotonic()
        job.write.format("noop").mode("overwrite").save()
        best = min(best, time.monotonic() - since)
    print(f"{name}: {'above' if size > 8000 else 'below'} 8,000 bytes ({size}), {best:.1f} s", flush=True)
PY
SPARK_LOCAL_IP=127.0.0.1 venv/bin/python sample.py 2>/dev/null | tee seen.txt
sed -E 's/ \([0-9]+\), .*//' seen.txt >places.txt
cat >known.txt <<'KNOWN'
all rows: below 8,000 bytes
one in a hundred: above 8,000 bytes
one in a hundred, filter kept above: below 8,000 bytes
KNOWN
if diff known.txt places.txt; then
  echo "as described: the filter makes a method that Java does not compile"
else
  echo "changed"
  exit 1
fi
