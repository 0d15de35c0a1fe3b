#!/usr/bin/env bash
# librdkafka: with a wrong password, an idle client logs in every second, whatever its back-off.
#
# Versions: confluent-kafka 2.16.1 (librdkafka 2.16.1), broker of Kafka 4.4.0; needs Java 17 or newer,
# Maven and Python 3.11 or newer.
#
# Expected: `reconnect.backoff.ms` (5 s here) and `reconnect.backoff.max.ms` (20 s) keep the attempts
# to connect to a broker apart, as the documentation says: at most six in 25 s. An idle client needs
# no connection at all.
#
# What happens: a producer that never produces tries the password about once a second, by the log of
# the broker, as long as it exists; a consumer without a subscription does the same, and with the
# default back-off (0.1 to 10 s) three times a second, without growing. Ten programs with an expired
# password are 600 to 1,700 refused logins a minute on each cluster, and can lock accounts of an LDAP or
# OAuth back end. The error is not fatal and is only seen by an `error_cb`: who must not try again has
# to close the client.
#
# Source: librdkafka, CONFIGURATION.md (`reconnect.backoff.ms`, `reconnect.backoff.max.ms`), and
# src/rdkafka_broker.c (`rd_kafka_broker_update_reconnect_backoff`, `rd_kafka_connect_any`).
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
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.3</version></dependency>
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
cat >log.properties <<'CONF'
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%m%n
CONF
cat >server.properties <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=SASL_PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="broker" password="example" user_broker="example";
controller.listener.names=CONTROLLER
log.dirs=$work/data
offsets.topic.replication.factor=1
CONF
java -Xmx512m -cp 'jars/*' kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c server.properties >format.log 2>&1
java -Dlog4j2.configurationFile=log.properties -Xmx512m -cp 'jars/*' kafka.Kafka server.properties >broker.log 2>&1 &
broker=$!
until grep -q 'Kafka Server started' broker.log; do kill -0 "$broker"; sleep 0.2; done
cat >idle.py <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, Producer

kind, port, *settings = sys.argv[1:]
common = {
    "bootstrap.servers": f"127.0.0.1:{port}",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "broker",
    "sasl.password": "expired",
    **dict(setting.split("=") for setting in settings),
}
client = Producer(common) if kind == "producer" else Consumer({**common, "group.id": "idle"})
end = time.monotonic() + 25
while time.monotonic() < end:
    client.poll(0.2)
PYTHON
# Of the 25 attempts at one a second, a slow machine may miss some; the back-off allows six.
show() {
  local before after
  before=$(grep -c 'Failed authentication' broker.log || true)
  env/bin/python idle.py "$1" "$port" "${@:2}" 2>/dev/null
  after=$(grep -c 'Failed authentication' broker.log || true)
  echo "$((after - before)) refused logins of an idle $* in 25 s" >&2
  [ $((after - before)) -gt 12 ] && echo "$1: more than 12" || echo "$1: up to 12"
}
slow=(reconnect.backoff.ms=5000 reconnect.backoff.max.ms=20000)
{ show producer "${slow[@]}"; show consumer "${slow[@]}"; show consumer; } >seen.txt
cat >known.txt <<'KNOWN'
producer: more than 12
consumer: more than 12
consumer: more than 12
KNOWN
if diff known.txt seen.txt; then
  echo "as described: refused logins are not held back"
else
  echo "changed"
  exit 1
fi
