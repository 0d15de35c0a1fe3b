#!/usr/bin/env bash
# MirrorMaker 2, dedicated mode: a flow that is switched off copies once more at the next start.
#
# Versions: connect-mirror and broker 4.3.1; needs Java 17 or newer and Maven.
#
# Expected: after `us->eu.enabled = false` in the properties file, a restart copies nothing over
# us->eu: the connector is given `enabled=false`, with which it has no tasks.
#
# What happens: the herder of us->eu still runs, for its heartbeats (KAFKA-10710). It first resumes
# the connector as the configuration topic has it, enabled, with its tasks and positions; the new
# configuration is stored only then, about a second later. Records that were written meanwhile are
# copied by a flow that is off. Reversing a flow of the identity policy in one restart (us->eu off,
# eu->us on) thus copies records in a circle for that time, and leaves duplicates on both sides.
# Switching off its heartbeats as well (`us->eu.emit.heartbeats.enabled = false`) starts no herder.
#
# Source: Kafka, MirrorMaker.start and configureConnector, MirrorMakerConfig.clusterPairs,
# DistributedHerder.startWork, MirrorSourceConnector.start.
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
CONF
run() { java -Xmx512m -cp 'jars/*' "$@"; }
run kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$broker"; sleep 0.2; done

write() { seq "$1" | run org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$servers" --topic orders >write.log 2>&1; }
copies() { run org.apache.kafka.tools.GetOffsetShell --bootstrap-server "$servers" --topic us.orders 2>/dev/null | cut -d: -f3; }
stored() {
  run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$servers" --topic mm2-configs.us.internal \
    --from-beginning --timeout-ms 5000 2>/dev/null | grep '"name":"MirrorSourceConnector"' | tail -1 | grep -o '"enabled":"[a-z]*"'
}
# Both aliases are one cluster: the copy of orders is us.orders.
start() {
  cat >mm2.properties <<CONF
clusters=us,eu
us.bootstrap.servers=$servers
eu.bootstrap.servers=$servers
us->eu.enabled=$1
eu->us.enabled=false
topics=orders
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
CONF
  java -Xmx512m -cp 'jars/*' org.apache.kafka.connect.mirror.MirrorMaker mm2.properties >mirror.log 2>&1 &
  mirror=$!
}
stop() { kill "$mirror"; wait "$mirror" || true; mirror=""; }

run org.apache.kafka.tools.TopicCommand --bootstrap-server "$servers" --create --topic orders >topic.log 2>&1
write 10
start true
until [ "$(copies)" = 10 ]; do kill -0 "$mirror"; sleep 1; done
stop
{
  echo "us->eu.enabled=true: $(copies) of 10 records were copied"
  write 5
  start false
  until [ "$(stored)" = '"enabled":"false"' ]; do kill -0 "$mirror"; sleep 1; done
  stop
  echo "us->eu.enabled=false: $(copies) of 15 records were copied"
} | tee seen.txt
cat >known.txt <<'KNOWN'
us->eu.enabled=true: 10 of 10 records were copied
us->eu.enabled=false: 15 of 15 records were copied
KNOWN
if diff known.txt seen.txt; then
  echo "as described: the flow that was switched off has copied the new records"
else
  echo "changed"
  exit 1
fi
