#!/usr/bin/env bash
# MirrorMaker 2, active-active: a group that moves to the other region starts its topics again.
#
# Versions: connect-mirror and brokers 4.3.1; needs Java 17 or newer and Maven.
#
# Expected: a group on us reads orders and eu.orders, the copy of eu's own topic. With
# sync.group.offsets.enabled its positions are on eu when it moves there: that on orders as us.orders,
# and that on eu.orders as orders. MirrorCheckpointTask has code for the second one, which renames a
# topic that came from the target cluster back to its original name.
#
# What happens: eu gets the position on us.orders alone. A position is translated with offset syncs of
# its topic, and the flow us->eu has none of eu.orders, which it does not copy (a cycle): the renaming
# is never reached. The group reads all of orders on eu a second time, or, with
# auto.offset.reset=latest, nothing of what it had not read yet.
#
# Source: Kafka, MirrorCheckpointTask.checkpointsForGroup, translateDownstream and
# renameTopicPartition, OffsetSyncStore.translateDownstream; KIP-382 (failback).
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

write() { seq "$2" | run org.apache.kafka.tools.ConsoleProducer --bootstrap-server "127.0.0.1:$1" --topic orders >write.log 2>&1; }
ends() { run org.apache.kafka.tools.GetOffsetShell --bootstrap-server "127.0.0.1:$1" --topic "$2" 2>/dev/null | cut -d: -f3; }
positions() {
  run org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "127.0.0.1:$1" --describe --group shop 2>/dev/null |
    awk '$1 == "shop" { print $2 "=" $4 }' | sort | paste -sd ' '
}
read_as_shop() { # port, topics as a pattern, milliseconds of silence that end it
  run org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "127.0.0.1:$1" --include "$2" --group shop \
    --command-property auto.offset.reset=earliest --timeout-ms "$3" 2>/dev/null | wc -l
}

for port in "$us_port" "$eu_port"; do
  run org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --create --topic orders >topic.log 2>&1
done
write "$us_port" 10
write "$eu_port" 20
cat >mm2.properties <<CONF
clusters=us,eu
us.bootstrap.servers=127.0.0.1:$us_port
eu.bootstrap.servers=127.0.0.1:$eu_port
us->eu.enabled=true
eu->us.enabled=true
topics=orders
groups=shop
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
refresh.groups.interval.seconds=1
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
until [ "$(ends "$eu_port" us.orders)" = 10 ] && [ "$(ends "$us_port" eu.orders)" = 20 ]; do kill -0 "$mirror"; sleep 1; done
{
  echo "shop has read on us: $(read_as_shop "$us_port" '(eu\.)?orders' 10000) records"
  echo "its positions on us: $(positions "$us_port")"
  until positions "$eu_port" | grep -q us.orders=10; do kill -0 "$mirror"; sleep 1; done
  # Later commits of the group are synced: a whole round has passed.
  write "$us_port" 1
  echo "shop has read on us: $(read_as_shop "$us_port" '(eu\.)?orders' 10000) more"
  until positions "$eu_port" | grep -q us.orders=11; do kill -0 "$mirror"; sleep 1; done
  echo "its positions on eu: $(positions "$eu_port")"
  echo "shop then reads on eu: $(read_as_shop "$eu_port" '(us\.)?orders' 10000) records"
} | tee seen.txt
cat >known.txt <<'KNOWN'
shop has read on us: 30 records
its positions on us: eu.orders=20 orders=10
shop has read on us: 1 more
its positions on eu: us.orders=11
shop then reads on eu: 20 records
KNOWN
if diff known.txt seen.txt; then
  echo "as described: the group has read eu's own records a second time"
else
  echo "changed"
  exit 1
fi
