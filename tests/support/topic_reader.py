"""Reads the words of a board from a topic of Kafka: `topic_reader.py BROKERS TOPIC FILE`. The words of the newest run go to FILE,
what the messages say to standard output as JSON.
"""

import json
import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition


def messages(brokers, topic):
    """The headers and the words of all committed messages."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader", "isolation.level": "read_committed",
                         "enable.auto.commit": False, "enable.partition.eof": True})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(30)
        assert message is not None, "the broker does not answer"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            consumer.close()
            return
        yield {name: value.decode() for name, value in message.headers()}, message.value() or b""


def main(brokers, topic, path):
    found = {"run": None, "messages": 0, "replaced_bytes": 0, "largest": 0}
    with open(path, "wb") as file:
        for headers, words in messages(brokers, topic):
            if headers["run"] != found["run"]:
                found.update(run=headers["run"], messages=0, replaced_bytes=0, largest=0, end=None)
                file.truncate(0)
                file.seek(0)
            first = int(headers["first_byte"])
            assert first <= file.tell(), f"bytes {file.tell()} to {first} are missing"
            found["replaced_bytes"] += file.tell() - first
            file.seek(first)
            file.truncate()
            file.write(words)
            found["messages"] += 1
            found["largest"] = max(found["largest"], len(words))
            found["origin"] = json.loads(headers.get("origin", "null"))
            found["end"] = json.loads(headers.get("end", "null"))
    print(json.dumps(found))


main(*sys.argv[1:])
