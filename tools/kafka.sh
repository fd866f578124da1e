#!/usr/bin/env bash
# Fetches the Kafka broker that the tests start, into build/kafka.
set -euo pipefail
cd "$(dirname "$0")/.."
pom=tests/system/kafka/pom.xml
if ! cmp -s $pom build/kafka/pom.xml; then
    rm -rf build/kafka
    mkdir -p build/kafka
    # No file of statistics in the machine's /tmp.
    MAVEN_OPTS=-XX:-UsePerfData mvn -q -B -f $pom org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$PWD/build/kafka"
    cp $pom build/kafka/pom.xml
fi
