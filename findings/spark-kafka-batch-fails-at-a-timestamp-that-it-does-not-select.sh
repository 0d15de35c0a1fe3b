#!/usr/bin/env bash
# Spark's Kafka source: one record with a timestamp in nanoseconds fails a batch that selects values.
#
# Versions: pyspark 4.0.1, spark-sql-kafka 4.0.0, broker and tools of Kafka 4.3.1, confluent-kafka
# 2.11.1; needs Java 17 or newer, Maven and pip.
#
# Expected: Kafka takes any timestamp that the topic's message.timestamp.after.max.ms allows, so that a
# producer with nanoseconds is noticed late. Spark's timestamps are microseconds in 64 bits. A value
# that does not fit should fail the queries that use it, or be null, as a value that cannot be cast:
# a query that selects only `value` does not need it, and column pruning removes what is not needed.
#
# What happens: the source converts all seven columns of each record before any is selected, and the
# conversion to microseconds is exact: the task fails with "long overflow", whatever the query selects
# and with spark.sql.ansi.enabled=false as well. Neither offset nor partition is named. Consumers read
# the record, and a batch that ends before it succeeds.
#
# Source: apache/spark, connector/kafka-0-10-sql, KafkaRecordToRowConverter.toUnsafeRow and
# KafkaBatchPartitionReader; DateTimeUtils.millisToMicros (Math.multiplyExact).
set -euo pipefail

work=$(mktemp -d)
broker=""
trap 'kill $broker 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 || { cat maven.log; exit 2; }
mkdir spark && sed -e '/kafka-tools/d' -e 's/org.apache.kafka/org.apache.spark/;s/kafka_2.13/spark-sql-kafka-0-10_2.13/;s/4\.3\.1/4.0.0/' pom.xml >spark/pom.xml
mvn -q -B -f spark/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DincludeArtifactIds=spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2 -DoutputDirectory="$work/connector" >maven.log 2>&1 || { cat maven.log; exit 2; }
python3 -m venv env
env/bin/pip -q install "pyspark==4.0.1" "confluent-kafka==2.11.1" >pip.log 2>&1 || { cat pip.log; exit 2; }

read -r port controller < <(python3 -c '
import socket
found = [socket.socket() for _ in range(2)]
for each in found: each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in found))')
servers="127.0.0.1:$port"
cat >server.properties <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:$controller
controller.listener.names=CONTROLLER
log.dirs=$work/data
offsets.topic.replication.factor=1
CONF
run() { java -Xmx512m -cp 'jars/*' "$@"; }
run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done
run org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic orders --partitions 1 \
  --config message.timestamp.after.max.ms=9223372036854775807 >topic.log 2>&1

cat >write.py <<'PY'
import sys, time
from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": sys.argv[1]})
for number in range(100):
    now = time.time_ns() if number == 50 else time.time_ns() // 1_000_000
    producer.produce("orders", str(number), timestamp=now)
assert producer.flush(30) == 0
PY
env/bin/python write.py "$servers"

cat >read.py <<'PY'
import glob, json, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.ansi.enabled", "false")
    .config("spark.jars", ",".join(glob.glob("connector/*.jar")))
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
options = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": "orders"}


def values(first, end):
    def at(offset):
        return json.dumps({"orders": {"0": offset}})

    rows = spark.read.format("kafka").options(
        **options, startingOffsets=at(first), endingOffsets=at(end)
    )
    try:
        return f"{len(rows.load().select('value').collect())} values"
    except Exception as error:
        return "long overflow" if "long overflow" in str(error) else str(error)[:200]


print("Spark, offsets 0 to 49:", values(0, 50))
print("Spark, offsets 51 to 99:", values(51, 100))
print("Spark, all:", values(0, 100))
PY
{
  printf "Kafka's consumer: %s values\n" "$(run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$servers" --topic orders --from-beginning --max-messages 100 2>consumer.log | wc -l)"
  SPARK_LOCAL_IP=127.0.0.1 env/bin/python read.py "$servers" 2>spark.log
} | tee seen.txt
if diff - seen.txt <<'SEEN'; then
Kafka's consumer: 100 values
Spark, offsets 0 to 49: 50 values
Spark, offsets 51 to 99: 49 values
Spark, all: long overflow
SEEN
  echo "as described: a timestamp that is not selected fails the batch"
else
  echo "changed"
  exit 1
fi
