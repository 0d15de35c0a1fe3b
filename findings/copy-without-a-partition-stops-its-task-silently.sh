#!/usr/bin/env bash
# MirrorMaker 2: one copy that cannot get a partition stops all topics of its task, without a failure.
#
# Versions: connect-mirror and broker 4.3.1; needs Java 17 or newer and Maven.
#
# Expected: orders has two partitions, its copy one, and MirrorMaker 2 may not add partitions (no
# Alter). It warns of that; the partition that exists is copied, the other one is not or makes the
# task fail, and other topics go on.
#
# What happens: the task keeps its source partitions, and its producer waits for metadata of the
# partition that does not exist. Connect sets max.block.ms of its producers to the largest long, so
# that this never ends: send() blocks the thread of the task. Nothing is copied any more, of orders
# and of each other topic of that task, its heartbeats included. Task and connector stay RUNNING;
# the log has the warning of each topic refresh, and no error.
#
# Source: Kafka, MirrorSourceConnector.computeAndCreateTopicPartitions, MirrorSourceTask.convertRecord,
# Worker.baseProducerConfigs, KafkaProducer.waitOnMetadata.
set -euo pipefail

work=$(mktemp -d)
broker="" mirror=""
trap 'kill $mirror $broker 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.3</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>2.25.3</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 || { cat maven.log; exit 2; }

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
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
CONF
run() { java -Xmx512m -cp 'jars/*' "$@"; }
run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done

topic() { run org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic "$1" --partitions "$2" >topic.log 2>&1; }
write() {
  seq 40 | sed 's/.*/&:&/' | run org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$servers" --topic "$1" \
    --reader-property parse.key=true --reader-property key.separator=: >write.log 2>&1
}
ends() { run org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$servers" --topic "$1" 2>/dev/null | cut -d: -f3 | paste -sd+ | bc; }
acl() { run org.apache.kafka.tools.AclCommand --bootstrap-server "$servers" --add --topic us.orders "$@" >acl.log 2>&1; }
states() {
  run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$servers" --topic mm2-status.us.internal \
    --from-beginning --timeout-ms 5000 --formatter-property print.key=true 2>/dev/null | grep 'task-MirrorSourceConnector-0' | tail -1 | grep -o '"state":"[A-Z]*"'
}
# Both aliases are one cluster: the copies are us.orders and us.prices.
topic orders 2
topic prices 1
topic us.orders 1
topic us.prices 1
acl --allow-principal 'User:*' --operation All
acl --deny-principal 'User:*' --operation Alter
cat >mm2.properties <<CONF
clusters=us,eu
us.bootstrap.servers=$servers
eu.bootstrap.servers=$servers
us->eu.enabled=true
eu->us.enabled=false
topics=orders,prices
tasks.max=1
refresh.topics.interval.seconds=2
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
CONF
cat >log.properties <<'CONF'
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%p %m%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
CONF
java -Xmx512m -Dlog4j2.configurationFile=log.properties -cp 'jars/*' org.apache.kafka.connect.mirror.MirrorMaker mm2.properties >mirror.log 2>&1 &
mirror=$!
warnings() { grep -c 'Could not create topic-partitions for us.orders' mirror.log || true; }
wait_rounds() { # of topic refreshes
  local goal=$(($(warnings) + $1))
  until [ "$(warnings)" -ge "$goal" ]; do kill -0 "$mirror"; sleep 1; done
}
write prices
until [ "$(ends us.prices)" = 40 ]; do kill -0 "$mirror"; sleep 1; done
{
  echo "before orders has records: $(ends us.prices) of 40 prices are copied"
  write orders
  wait_rounds 5
  write prices
  wait_rounds 45 # longer than the 60 s that a producer blocks by default
  echo "later: $(ends us.prices) of 80 prices"
  echo "the task: $(states)"
  echo "errors in the log: $(grep -c '^ERROR' mirror.log || true)"
} | tee seen.txt
cat >known.txt <<'KNOWN'
before orders has records: 40 of 40 prices are copied
later: 40 of 80 prices
the task: "state":"RUNNING"
errors in the log: 0
KNOWN
if diff known.txt seen.txt; then
  echo "as described: the task has stopped, and nothing says so"
else
  echo "changed"
  exit 1
fi
