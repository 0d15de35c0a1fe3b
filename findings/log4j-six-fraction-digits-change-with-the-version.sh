#!/usr/bin/env bash
# Log4j's date pattern: no six fraction digits are microseconds in both 2.24 and 2.25.
#
# Versions: log4j-core 2.24.3 and 2.25.3, Java 17 or newer; needs Maven.
#
# Expected: `%d{HH:mm:ss.SSSSSS}` prints microseconds, as in Java's DateTimeFormatter, and
# `%d{HH:mm:ss.nnnnnn}`, Log4j's own notation for them, prints the same after an upgrade.
#
# What happens, at 0.045678901 s: 2.24.3 prints `.000045` for `SSSSSS`, the milliseconds padded to
# six digits, so each line seems to be from the first thousandth of its second. 2.25.3 prints
# `.045678` for it, but `.45678901` for `nnnnnn`, which was right before: the nanoseconds, padded to
# six digits only. That reads as ten times the fraction, and lines get out of order, yet nine lines
# in ten are right: those at 0.1 s or later in their second have nine digits anyway. No version
# warns of it. Nine `n` are right in both.
#
# Source: apache/logging-log4j2, log4j-core, org/apache/logging/log4j/core/util/datetime/
# FixedDateFormat.java (`n`) and FastDatePrinter.java (`S`), both for 2.24 and for
# `log4j2.instantFormatter=legacy`; java.time.format.DateTimeFormatter, "n" (a number) and "S" (a
# fraction); release notes of 2.25.0, "Date & time formatting", which name `n` without an example.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for version in 2.24.3 2.25.3; do
  mkdir "$version"
  cat >"$version/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>example</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$version/pom.xml" dependency:copy-dependencies -DoutputDirectory=jars >maven.log 2>&1 ||
    { cat maven.log; exit 2; }
done
cat >Show.java <<'JAVA'
import org.apache.logging.log4j.core.config.DefaultConfiguration;
import org.apache.logging.log4j.core.impl.Log4jLogEvent;
import org.apache.logging.log4j.core.layout.PatternLayout;
import org.apache.logging.log4j.core.time.MutableInstant;

public class Show {
    public static void main(String[] args) {
        for (String fraction : new String[] {"SSSSSS", "nnnnnn", "nnnnnnnnn"}) {
            PatternLayout layout = PatternLayout.newBuilder()
                .withConfiguration(new DefaultConfiguration())
                .withPattern("%d{HH:mm:ss." + fraction + "}{UTC}")
                .build();
            for (int nanos : new int[] {45_678_901, 456_789_012}) {
                MutableInstant instant = new MutableInstant();
                instant.initFromEpochSecond(1_767_225_600L, nanos);
                System.out.printf("%s, %s: 0.%09d s -> %s%n", args[0], fraction, nanos,
                    layout.toSerializable(Log4jLogEvent.newBuilder().setInstant(instant).build()));
            }
        }
    }
}
JAVA
{
  java -cp '2.24.3/jars/*' Show.java 2.24.3
  java -cp '2.25.3/jars/*' Show.java 2.25.3
  java -Dlog4j2.instantFormatter=legacy -cp '2.25.3/jars/*' Show.java '2.25.3 legacy'
} | tee seen.txt
cat >known.txt <<'KNOWN'
2.24.3, SSSSSS: 0.045678901 s -> 00:00:00.000045
2.24.3, SSSSSS: 0.456789012 s -> 00:00:00.000456
2.24.3, nnnnnn: 0.045678901 s -> 00:00:00.045678
2.24.3, nnnnnn: 0.456789012 s -> 00:00:00.456789
2.24.3, nnnnnnnnn: 0.045678901 s -> 00:00:00.045678901
2.24.3, nnnnnnnnn: 0.456789012 s -> 00:00:00.456789012
2.25.3, SSSSSS: 0.045678901 s -> 00:00:00.045678
2.25.3, SSSSSS: 0.456789012 s -> 00:00:00.456789
2.25.3, nnnnnn: 0.045678901 s -> 00:00:00.45678901
2.25.3, nnnnnn: 0.456789012 s -> 00:00:00.456789012
2.25.3, nnnnnnnnn: 0.045678901 s -> 00:00:00.045678901
2.25.3, nnnnnnnnn: 0.456789012 s -> 00:00:00.456789012
2.25.3 legacy, SSSSSS: 0.045678901 s -> 00:00:00.000045
2.25.3 legacy, SSSSSS: 0.456789012 s -> 00:00:00.000456
2.25.3 legacy, nnnnnn: 0.045678901 s -> 00:00:00.045678
2.25.3 legacy, nnnnnn: 0.456789012 s -> 00:00:00.456789
2.25.3 legacy, nnnnnnnnn: 0.045678901 s -> 00:00:00.045678901
2.25.3 legacy, nnnnnnnnn: 0.456789012 s -> 00:00:00.456789012
KNOWN
if diff known.txt seen.txt; then
  echo "as described: SSSSSS is too small in 2.24.3, nnnnnn too large in 2.25.3"
else
  echo "changed"
  exit 1
fi
