#!/usr/bin/env bash
# MirrorMaker 2: a list with a repeated item is refused by validation and accepted by the connector.
#
# Versions: connect-mirror 4.3.1 and 4.1.2; needs Java 17 or newer and Maven.
#
# Expected: `Connector.validate` and the constructor of the connector's configuration evaluate one
# ConfigDef, so they agree. KIP-1161 (Kafka 4.2) speaks of lists that become strict, and of repeated
# items that are removed with a warning.
#
# What happens since 4.2: `new MirrorSourceConfig` accepts `topics=orders,orders`, logs a warning and
# returns one item; `validate` of the same properties reports an error, and Connect's REST API and
# dedicated mode, which validate first, do not start the connector. So a file that ran for years stops
# the flow with the upgrade, while every program that reads it with Kafka's own class finds it valid.
# An empty item (`orders,,payments`) is refused by both, and was an item of its own before.
#
# Source: KIP-1161; Kafka, ConfigDef.ValidList, Connector.validate, AbstractHerder.validateConnectorConfig.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >Show.java <<'JAVA'
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.mirror.MirrorSourceConfig;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;

public class Show {
  public static void main(String[] unused) {
    for (String topics : List.of("orders,payments", "orders,orders", "orders,,payments")) {
      Map<String, String> properties = new HashMap<>();
      properties.put("name", "MirrorSourceConnector");
      properties.put("connector.class", "MirrorSourceConnector");
      properties.put("source.cluster.alias", "us");
      properties.put("target.cluster.alias", "eu");
      properties.put("topics", topics);
      String made;
      try {
        made = new MirrorSourceConfig(properties).getList("topics").toString();
      } catch (ConfigException error) {
        made = "refused";
      }
      long errors = new MirrorSourceConnector().validate(properties).configValues().stream()
          .filter(each -> each.name().equals("topics")).mapToLong(each -> each.errorMessages().size()).sum();
      System.out.println(topics + ": class " + made + ", validate " + (errors == 0 ? "accepts" : "refuses"));
    }
  }
}
JAVA
for version in 4.1.2 4.3.1; do
  cat >pom.xml <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
  mvn -q -B dependency:copy-dependencies -DoutputDirectory="jars-$version" >maven.log 2>&1 || { cat maven.log; exit 2; }
  echo "Kafka $version"
  java -cp "jars-$version/*" Show.java 2>/dev/null
done | tee seen.txt
cat >known.txt <<'KNOWN'
Kafka 4.1.2
orders,payments: class [orders, payments], validate accepts
orders,orders: class [orders, orders], validate accepts
orders,,payments: class [orders, , payments], validate accepts
Kafka 4.3.1
orders,payments: class [orders, payments], validate accepts
orders,orders: class [orders], validate refuses
orders,,payments: class refused, validate refuses
KNOWN
if diff known.txt seen.txt; then
  echo "as described: validation refuses what the connector's class accepts"
else
  echo "changed"
  exit 1
fi
