#!/usr/bin/env bash
# MirrorMaker 2, dedicated mode: a blank after `enabled=true` stops a flow only without heartbeats.
#
# Version: connect-mirror 4.3.1; needs Java 17 or newer and Maven.
#
# Expected: java.util.Properties keeps blanks at the end of a line, but Kafka's settings are trimmed
# before they are parsed, so `us->eu.enabled=true ` with a blank is true. Whether heartbeats are
# emitted is another question and changes nothing about it.
#
# What happens: whether a pair of clusters gets a herder is decided before any setting is parsed, by
# Java's own `Boolean.parseBoolean`, which does not trim: `true ` is false there, and any other text
# as well. As long as heartbeats are on, which is the default, the pair has a herder because of them,
# and the connector's configuration trims: the flow runs, for years. With
# `emit.heartbeats.enabled=false` the same line starts nothing, and neither log nor exit code say so,
# though the configuration of the connector, if asked, is still enabled. Likewise `yes`: refused with
# heartbeats, without them a flow that is silently off.
#
# Source: Kafka, MirrorMakerConfig.clusterPairs (Boolean.parseBoolean of the originals),
# ConfigDef.parseType (trims), Utils.loadProps, java.util.Properties.load.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 || { cat maven.log; exit 2; }
cat >Show.java <<'JAVA'
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.mirror.*;

public class Show {
    public static void main(String[] files) throws Exception {
        SourceAndTarget flow = new SourceAndTarget("us", "eu");
        for (String file : files) {
            MirrorMakerConfig config = new MirrorMakerConfig(Utils.propsToStringMap(Utils.loadProps(file)));
            Map<String, String> connector = config.connectorBaseConfig(flow, MirrorSourceConnector.class);
            String enabled;
            try {
                enabled = new MirrorSourceConfig(connector).getBoolean("enabled").toString();
            } catch (ConfigException refused) {
                enabled = "refused";
            }
            System.out.println(file + ": herder " + config.clusterPairs().contains(flow) + ", connector enabled: " + enabled);
        }
    }
}
JAVA
for heartbeats in true false; do
  for value in "true" "true " "yes"; do
    file="heartbeats $heartbeats, [$value]"
    printf '%s\n' clusters=us,eu us.bootstrap.servers=127.0.0.1:9092 eu.bootstrap.servers=127.0.0.1:9093 \
      "emit.heartbeats.enabled=$heartbeats" "us->eu.enabled=$value" >"$file"
  done
done
java -cp 'jars/*' Show.java heartbeats* 2>/dev/null | LC_ALL=C sort -r | tee seen.txt
cat >known.txt <<'KNOWN'
heartbeats true, [yes]: herder true, connector enabled: refused
heartbeats true, [true]: herder true, connector enabled: true
heartbeats true, [true ]: herder true, connector enabled: true
heartbeats false, [yes]: herder false, connector enabled: refused
heartbeats false, [true]: herder true, connector enabled: true
heartbeats false, [true ]: herder false, connector enabled: true
KNOWN
if diff known.txt seen.txt; then
  echo "as described: a blank that does no harm stops the flow when heartbeats are switched off"
else
  echo "changed"
  exit 1
fi
