"""A Kafka broker on loopback, of its own for the tests that want one."""

import contextlib
import fcntl
import socket
import subprocess
import sys
import time

from support.netns import PATIENCE
from support.paths import BUILD, TOP

JARS = TOP / "build/kafka"
# Tests name lower ones themselves.
PORTS = range(11_000, 32_000)
CLUSTER = "RmFkZWxpbmtUZXN0QnJva2U"


def free_ports(count):
    """Ports that nobody listens at and no other test has, outside the range from which the kernel takes ports for connections."""
    ports = []
    with open(BUILD / "last_port", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = int(file.read() or PORTS[0])
        while len(ports) < count:
            port = port + 1 if port + 1 in PORTS else PORTS[0]
            with contextlib.suppress(OSError):
                socket.create_server(("127.0.0.1", port)).close()
                ports.append(port)
        file.truncate(0)
        file.write(str(port))
    return ports


def secured(folder, host, port, user, password):
    """Settings of a listener with TLS that lets one user in, and its certificate."""
    key, certificate, store = folder / "key.pem", folder / "broker.pem", folder / "store.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker", "-addext", f"subjectAltName=IP:{host}"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    store.write_text(key.read_text() + certificate.read_text())
    modules, name = "org.apache.kafka.common.security", "listener.name.sasl_ssl"
    return certificate, {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": store,
        f"{name}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{name}.plain.sasl.jaas.config": f'{modules}.plain.PlainLoginModule required user_{user}="{password}";',
        f"{name}.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
    }


class Broker:
    """The broker: at `host`, an address of loopback; `start` and `kill` may be called in turns. `within`: what enters its network.
    `user`, with a password: it is let in at another port, `secured`, by TLS."""

    def __init__(self, folder, host="127.0.0.1", environment=None, within=(), user=None):
        assert any(JARS.glob("kafka_2*.jar")), f"{JARS} is empty: `make kafka` fetches the broker"
        port, control = free_ports(2)
        self.host, self.port, self.folder, self.environment, self.within = host, port, folder, environment, within
        self.address = f"{host}:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / "kafka",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            # A broker that was killed comes back only when its last session is over.
            "broker.heartbeat.interval.ms": 200,
            "broker.session.timeout.ms": 2000,
            "message.max.bytes": 1 << 26,
        }
        format = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", folder / "server.properties"]
        if user:
            (port,) = free_ports(1)
            self.secured = f"{host}:{port}"
            self.certificate, more = secured(folder, host, port, *user)
            settings |= more
            for listeners in ("listeners", "advertised.listeners"):
                settings[listeners] += f",SASL_SSL://{self.secured}"
            format += ["--add-scram", "SCRAM-SHA-512=[name={},password={}]".format(*user)]
        self.config = folder / "server.properties"
        self.config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}", "-cp", f"{JARS}/*"]
        subprocess.run([*self.java, *format], check=True, capture_output=True)
        self.log = open(folder / "kafka.log", "w")
        self.start()

    def start(self):
        """Starts the broker, the first time or after `kill`, and waits until it answers."""
        self.process = subprocess.Popen([*self.within, *self.java, "kafka.Kafka", self.config], stdout=self.log, stderr=subprocess.STDOUT,
                                        env=self.environment)  # fmt: skip
        end = time.monotonic() + PATIENCE
        connect = f"import socket; socket.create_connection(({self.host!r}, {self.port}), 1)"
        while subprocess.run([*self.within, sys.executable, "-c", connect], capture_output=True).returncode:
            assert time.monotonic() < end and self.process.poll() is None, (self.folder / "kafka.log").read_text()[-2000:]
            time.sleep(0.1)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.log.close()
