#!/usr/bin/env bash
# Kafka Connect's RegexRouter: the topic that decides is not the topic that is replaced.
#
# Versions: connect-transforms 4.1.1 (Apache Kafka), Java 17 or newer; needs Maven.
#
# Expected: a router replaces what its `regex` matched. It applies only to topics that `regex`
# matches as a whole, so the whole name should become `replacement`: with `regex=orders|orders-eu`
# and `replacement=sales`, `orders-eu` should be written to `sales`.
#
# What happens: the whole name is tested with `Matcher.matches()`, but replaced with
# `Matcher.replaceFirst()`, which resets the matcher and searches from the start again. The first
# alternative that is found wins, although it covers a part of the name only: `orders-eu` is written
# to `sales-eu`. The longer alternative first gives `sales`. A name is thus routed by a match that is
# not the one that selected it, and copies land in topics that were never created.
#
# Source: apache/kafka, connect/transforms, org/apache/kafka/connect/transforms/RegexRouter.java
# (`apply`); java.util.regex.Matcher, documentation of `replaceFirst` ("first resets this matcher").
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-transforms</artifactId><version>4.1.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 || { cat maven.log; exit 2; }
cat >Route.java <<'JAVA'
import java.util.Map;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.RegexRouter;

public class Route {
    public static void main(String[] args) {
        for (String regex : new String[] {"orders|orders-eu", "orders-eu|orders"}) {
            try (RegexRouter<SourceRecord> router = new RegexRouter<>()) {
                router.configure(Map.of("regex", regex, "replacement", "sales"));
                for (String topic : new String[] {"orders-eu", "orders", "orders-eu-2"}) {
                    SourceRecord record = new SourceRecord(Map.of(), Map.of(), topic, null, null);
                    System.out.println(regex + ": " + topic + " -> " + router.apply(record).topic());
                }
            }
        }
    }
}
JAVA
java -cp 'jars/*' Route.java 2>/dev/null | tee seen.txt
cat >known.txt <<'KNOWN'
orders|orders-eu: orders-eu -> sales-eu
orders|orders-eu: orders -> sales
orders|orders-eu: orders-eu-2 -> orders-eu-2
orders-eu|orders: orders-eu -> sales
orders-eu|orders: orders -> sales
orders-eu|orders: orders-eu-2 -> orders-eu-2
KNOWN
if diff known.txt seen.txt; then
  echo "as described: orders-eu is routed to sales-eu, or to sales, by the order of the alternatives"
else
  echo "changed"
  exit 1
fi
