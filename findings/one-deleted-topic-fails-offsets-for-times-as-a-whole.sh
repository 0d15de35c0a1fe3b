#!/usr/bin/env bash
# confluent-kafka: one deleted topic fails offsets_for_times as a whole, if the client has seen it.
#
# Versions: confluent-kafka 2.16.1 (librdkafka 2.16.1), broker of Kafka 4.4.0; needs Java 17 or newer,
# Maven and Python 3.11 or newer.
#
# Expected: `Consumer.offsets_for_times` returns each partition with its own offset or its own
# `error`, as it does for a partition that does not exist, and as `AdminClient.list_offsets` does.
#
# What happens: after a topic is deleted, a consumer that has asked for it before raises
# UNKNOWN_TOPIC_OR_PART for the whole call: the offsets of all other topics are lost with it. A new
# consumer with the same arguments returns all of them, and that error for the one partition. So a
# monitor that polls many topics in one call is blind for all of them after one deletion, and its
# restart makes the fault go away. The timestamp that was asked for stays in `offset` of a partition
# with an error: who forgets to look at `error` reads 1600000000000 as an offset.
#
# Source: librdkafka, src/rdkafka.c: `rd_kafka_offsets_for_times` takes errors of partitions from
# `rd_kafka_topic_partition_list_query_leaders`, whose answer may be cached, and the error of a
# ListOffsets response, here of one partition, for the call (`rd_kafka_get_offsets_for_times_resp_cb`).
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
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 || { cat maven.log; exit 2; }
python3 -m venv env
env/bin/pip install -q confluent-kafka==2.16.1
read -r port controller < <(python3 -c '
import socket
found = [socket.socket() for _ in range(2)]
for each in found: each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in found))')
cat >server.properties <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
controller.listener.names=CONTROLLER
log.dirs=$work/data
offsets.topic.replication.factor=1
auto.create.topics.enable=false
CONF
java -Xmx512m -cp 'jars/*' kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done
cat >show.py <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

TIME = 1_600_000_000_000
address = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(address)
topics = [NewTopic("orders", 1), NewTopic("payments", 1)]
for each in admin.create_topics(topics, operation_timeout=30).values():
    each.result()
producer = Producer(address)
producer.produce("orders", b"x", timestamp=TIME + 1)
producer.flush(30)


def show(label, consumer, *names):
    asked = [TopicPartition(name[:-2], int(name[-1]), TIME) for name in names]
    try:
        answer = consumer.offsets_for_times(asked, timeout=10)
    except KafkaException as error:
        print(f"{label}: raises {error.args[0].name()}")
        return
    found = (f"{each.topic}-{each.partition} {each.error.name() if each.error else each.offset}" for each in answer)
    print(f"{label}: {', '.join(found)}")


old = Consumer({**address, "group.id": "old"})
show("both topics", old, "orders-0", "payments-0")
show("missing partition", old, "orders-0", "orders-7")
for each in admin.delete_topics(["payments"], operation_timeout=30).values():
    each.result()
while "payments" in admin.list_topics(timeout=10).topics:
    time.sleep(0.1)
show("payments deleted", old, "orders-0", "payments-0")
new = Consumer({**address, "group.id": "new"})
show("payments deleted, new consumer", new, "orders-0", "payments-0")
request = {TopicPartition(name, 0): OffsetSpec.for_timestamp(TIME) for name in ("orders", "payments")}
for place, future in admin.list_offsets(request).items():
    error = future.exception()
    print(f"list_offsets: {place.topic} {error.args[0].name() if error else future.result().offset}")
old.close()
new.close()
PYTHON
env/bin/python show.py "127.0.0.1:$port" 2>/dev/null | tee seen.txt
cat >known.txt <<'KNOWN'
both topics: orders-0 0, payments-0 -1
missing partition: orders-0 0, orders-7 _UNKNOWN_PARTITION
payments deleted: raises UNKNOWN_TOPIC_OR_PART
payments deleted, new consumer: orders-0 0, payments-0 UNKNOWN_TOPIC_OR_PART
list_offsets: orders 0
list_offsets: payments UNKNOWN_TOPIC_OR_PART
KNOWN
if diff known.txt seen.txt; then
  echo "as described: one deleted topic fails the whole call of a consumer that knew it"
else
  echo "changed"
  exit 1
fi
