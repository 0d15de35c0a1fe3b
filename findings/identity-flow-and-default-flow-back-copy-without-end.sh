#!/usr/bin/env bash
# MirrorMaker 2: an identity flow and a default flow back copy each other's copies without end.
#
# Versions: connect-mirror and brokers 4.3.1; needs Java 17 or newer and Maven.
#
# Expected: a policy may differ by flow: us->eu keeps names, for consumers that cannot change them, and
# eu->us has the default policy, which recognizes cycles. orders of us is orders on eu, and comes back
# once at most, as eu.orders: from then on each name says that it has been on eu.
#
# What happens: the default policy of eu->us asks whether a name on eu has been on us, its target. All
# names on eu say at most that they come from eu itself, since the identity policy adds no alias: each
# copy is taken as new, gets another prefix on its way back, and goes round again. Each refresh of the
# topics adds one on both clusters, with all records, until names are too long or disks are full.
# KAFKA-9914, which looks for the source's alias as well, comes with 4.4.
#
# Source: Kafka, MirrorSourceConnector.isCycle and shouldReplicateTopic, IdentityReplicationPolicy.
set -euo pipefail

work=$(mktemp -d)
us="" eu="" mirror=""
trap 'kill $mirror $us $eu 2>/dev/null || true; wait; rm -rf "$work"' EXIT
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

read -r us_port eu_port us_controller eu_controller < <(python3 -c '
import socket
found = [socket.socket() for _ in range(4)]
for each in found: each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in found))')
run() { java -Xmx512m -cp 'jars/*' "$@"; }
format() { # name, port, port of the controller
  cat >"$1.properties" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$3
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
controller.listener.names=CONTROLLER
log.dirs=$work/$1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
CONF
  run kafka.tools.StorageTool format -t "$4" -c "$1.properties" >"$1.format.log" 2>&1
}
format us "$us_port" "$us_controller" AAAAAAAAAAAAAAAAAAAAAQ
format eu "$eu_port" "$eu_controller" AAAAAAAAAAAAAAAAAAAAAg
java -Xmx512m -cp 'jars/*' kafka.Kafka us.properties >us.log 2>&1 &
us=$!
java -Xmx512m -cp 'jars/*' kafka.Kafka eu.properties >eu.log 2>&1 &
eu=$!
for port in "$us_port" "$eu_port"; do
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do kill -0 "$us" "$eu"; sleep 0.2; done
done

ends() { run org.apache.kafka.tools.GetOffsetShell --bootstrap-server "127.0.0.1:$1" --topic "$2" 2>/dev/null | cut -d: -f3; }

run org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$us_port" --create --topic orders >topic.log 2>&1
seq 10 | run org.apache.kafka.tools.ConsoleProducer --bootstrap-server "127.0.0.1:$us_port" --topic orders >write.log 2>&1
cat >mm2.properties <<CONF
clusters=us,eu
us.bootstrap.servers=127.0.0.1:$us_port
eu.bootstrap.servers=127.0.0.1:$eu_port
us->eu.enabled=true
eu->us.enabled=true
us->eu.replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy
refresh.topics.interval.seconds=2
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
# The third round is enough: the name of the second one had its alias twice.
until [ "$(ends "$eu_port" eu.eu.eu.orders)" = 10 ]; do kill -0 "$mirror"; sleep 1; done
kill "$mirror"
wait "$mirror" || true
mirror=""
for each in orders eu.orders eu.eu.orders eu.eu.eu.orders; do
  echo "records in $each: $(ends "$us_port" "$each") on us, $(ends "$eu_port" "$each") on eu"
done | tee seen.txt
cat >known.txt <<'KNOWN'
records in orders: 10 on us, 10 on eu
records in eu.orders: 10 on us, 10 on eu
records in eu.eu.orders: 10 on us, 10 on eu
records in eu.eu.eu.orders: 10 on us, 10 on eu
KNOWN
if diff known.txt seen.txt; then
  echo "as described: each copy is copied again under a longer name"
else
  echo "changed"
  exit 1
fi
