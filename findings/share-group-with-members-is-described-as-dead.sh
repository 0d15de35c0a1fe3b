#!/usr/bin/env bash
# confluent-kafka: a share group with members is a dead classic group without offsets, and no error.
#
# Versions: confluent-kafka 2.16.1 (librdkafka 2.16.1), broker and tools of Kafka 4.4.0; needs Java
# 17 or newer, Maven and Python 3.11 or newer.
#
# Expected: `list_consumer_groups` leaves out share groups (KIP-932), but a request by name says
# what is wrong: the broker answers ConsumerGroupDescribe and DescribeGroups with GROUP_ID_NOT_FOUND
# and a text for it ("Group billing is not a classic group."), and Kafka's own Admin client raises
# GroupIdNotFoundException.
#
# What happens: `describe_consumer_groups` succeeds with the state DEAD, the type CLASSIC and no
# members, the same as for a group that never existed; `list_consumer_group_offsets` succeeds with no
# offsets for both. Only the deprecated `list_groups`, which asks for no type, has the id, with the
# state Dead and an empty protocol. A monitor that reads groups by name reports a running
# application as gone. Streams groups (KIP-1071) are described likewise, but their offsets are read.
#
# Source: librdkafka, src/rdkafka_admin.c (`rd_kafka_DescribeConsumerGroupsResponse_parse`),
# confluentinc/librdkafka pull request 5576 (KIP-1043, open); Kafka, GroupCoordinatorService and
# `GroupMetadataManager.consumerGroup`, `KafkaAdminClient.describeConsumerGroups`.
set -euo pipefail

work=$(mktemp -d)
broker="" consumer=""
trap 'kill $broker $consumer 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.4.0</version></dependency>
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
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
CONF
run() { java -Xmx512m -cp 'jars/*' "$@"; }
run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done
run org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --create --topic orders >topic.log 2>&1
java -Xmx512m -cp 'jars/*' org.apache.kafka.tools.consumer.ConsoleShareConsumer --bootstrap-server "127.0.0.1:$port" --topic orders --group billing >consumer.log 2>&1 &
consumer=$!
until run org.apache.kafka.tools.consumer.group.ShareGroupCommand --bootstrap-server "127.0.0.1:$port" --describe --group billing --state 2>&1 | grep Stable >state.log; do
  kill -0 "$consumer"
done
echo "Kafka's tool: the share group billing is Stable"
cat >show.py <<'PYTHON'
import sys
import warnings

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

warnings.simplefilter("ignore")
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
listed = admin.list_consumer_groups().result().valid
print("list_consumer_groups:", sorted(each.group_id for each in listed))
for group in ("billing", "never-existed"):
    found = admin.describe_consumer_groups([group])[group].result()
    print(f"describe {group}: {found.state.name} {found.type.name}, members {len(found.members)}")
    request = ConsumerGroupTopicPartitions(group)
    offsets = admin.list_consumer_group_offsets([request])[group].result()
    print(f"offsets of {group}: {offsets.topic_partitions}")
for each in admin.list_groups(timeout=10):
    print(f"list_groups: {each.id} {each.state}, protocol {each.protocol_type!r}")
PYTHON
env/bin/python show.py "127.0.0.1:$port" 2>/dev/null | tee seen.txt
cat >known.txt <<'KNOWN'
list_consumer_groups: []
describe billing: DEAD CLASSIC, members 0
offsets of billing: []
describe never-existed: DEAD CLASSIC, members 0
offsets of never-existed: []
list_groups: billing Dead, protocol ''
KNOWN
if diff known.txt seen.txt; then
  echo "as described: a running share group looks like one that never existed"
else
  echo "changed"
  exit 1
fi
