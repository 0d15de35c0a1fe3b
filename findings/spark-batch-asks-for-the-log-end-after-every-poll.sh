#!/usr/bin/env bash
# Spark's Kafka source: a batch asks for the start and the end of the log after every poll.
#
# Versions: pyspark 4.0.1, spark-sql-kafka 4.0.0 (kafka-clients 3.9.1), broker and tools of Kafka
# 4.3.1; needs Java 17 or newer, Maven and pip.
#
# Expected: the driver fixes the offsets of a batch, and each task reads its range with Kafka's
# consumer. Requests are Fetches, and a poll that returns records from its buffer costs none, so
# that `max.poll.records`, 500 by default, says nothing about requests.
#
# What happens: after each poll the connector learns which offsets are available: it seeks both ends of
# the log and asks for the position at each. That is two ListOffsets, whether a Fetch was needed or not:
# buffered records cost requests, one for 250 records. Each waits for its answer before the next record
# is handed on, and as it goes over the connection of the Fetch that was sent ahead, it is also answered
# after that one. On links with a long round trip this time is the job's. `kafka.max.poll.records`,
# which the documentation does not name, bounds it: a poll then returns all that a Fetch brought.
#
# Source: apache/spark, connector/kafka-0-10-sql, KafkaDataConsumer.scala (InternalKafkaConsumer.fetch
# and getAvailableOffsetRange); Kafka, KafkaConsumer.position, ConsumerConfig (max.poll.records).
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
env/bin/pip -q install "pyspark==4.0.1" >pip.log 2>&1 || { cat pip.log; exit 2; }

read -r port controller jmx < <(python3 -c '
import socket
found = [socket.socket() for _ in range(3)]
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
java -Xmx512m -Dcom.sun.management.jmxremote.port="$jmx" -Dcom.sun.management.jmxremote.host=127.0.0.1 \
  -Djava.rmi.server.hostname=127.0.0.1 -Dcom.sun.management.jmxremote.authenticate=false \
  -Dcom.sun.management.jmxremote.ssl=false -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done
run org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic orders --partitions 1 >topic.log 2>&1
run org.apache.kafka.tools.ProducerPerformance --bootstrap-server "$servers" --topic orders \
  --num-records 100000 --record-size 300 --throughput -1 >write.log 2>&1

# Requests that the broker has answered so far, over all versions of the request.
requests() {
  run org.apache.kafka.tools.JmxTool --jmx-url "service:jmx:rmi:///jndi/rmi://127.0.0.1:$jmx/jmxrmi" --one-time \
    --object-name "kafka.network:type=RequestMetrics,name=RequestsPerSec,*" --attributes Count --report-format tsv 2>jmx.log |
    awk -v name="request=$1," 'index($0, name) { sum += $NF } END { print sum + 0 }'
}
counted() {
  local name=$1 lists fetches
  lists=$(requests ListOffsets) fetches=$(requests FetchConsumer)
  shift
  "$@" >reader.log 2>&1 || { cat reader.log; exit 2; }
  lists=$(($(requests ListOffsets) - lists)) fetches=$(($(requests FetchConsumer) - fetches))
  echo "$name: $lists ListOffsets, $fetches Fetch"
}
cat >read.py <<'PY'
import glob, sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.jars", ",".join(glob.glob("connector/*.jar")))
    .getOrCreate()
)
options = {"kafka.bootstrap.servers": sys.argv[1], "kafka.max.poll.records": sys.argv[2], "subscribe": "orders"}
rows = spark.read.format("kafka").options(**options).load()
rows.write.format("noop").mode("overwrite").save()
PY
{
  counted "Kafka's consumer" run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$servers" --topic orders --from-beginning --max-messages 100000
  counted "Spark, 500 records a poll" env SPARK_LOCAL_IP=127.0.0.1 env/bin/python read.py "$servers" 500
  counted "Spark, 10,000 records a poll" env SPARK_LOCAL_IP=127.0.0.1 env/bin/python read.py "$servers" 10000
} | tee seen.txt
# Over twice as many ListOffsets as polls of 500 records; a consumer needs one to find the start.
read -r consumer small large < <(sed -E 's/.*: ([0-9]+) ListOffsets.*/\1/' seen.txt | tr '\n' ' ')
if ((consumer <= 2 && small >= 400 && large >= 20 && large < small / 4)); then
  echo "as described: two ListOffsets for each poll"
else
  echo "changed"
  exit 1
fi
